"""What handlers ask the authorizer, how often a request names it, and which denials are logged: as Apache Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple

from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.offset_commit.v10.request import OffsetCommitRequest
from kio.schema.offset_for_leader_epoch.v4.request import OffsetForLeaderEpochRequest, OffsetForLeaderTopic
from kio.schema.txn_offset_commit.v5.request import TxnOffsetCommitRequest, TxnOffsetCommitRequestTopic
from kio.schema.types import GroupId, ProducerId, TopicName, TransactionalId
from kio.schema.write_txn_markers.v2.request import WriteTxnMarkersRequest
from kio.static.primitive import i16, i32, i64
from memory_node import World, run
from permission_cases import UNRESTRICTED, Permission, cluster, group, topic, transactional_id

from penstock.broker.network.own_requests import OwnRequests
from penstock.broker.network.request import Permit, RequestContext
from penstock.protocol.acls import AclOperation, ResourceType
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages import NO_THROTTLE

READ, WRITE, DESCRIBE, DELETE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.DELETE
SOME = "some"
A, G, T = TopicName("a"), GroupId("g"), TransactionalId("t")


class Question(NamedTuple):
    permission: Permission
    reference_count: int = 1
    is_logged: bool = True


class Asked:
    """An authorizer that remembers what it is asked."""

    def __init__(self, *allowed: Permission) -> None:
        self._allowed = frozenset(allowed)
        self.questions: list[tuple[ApiKey | str | None, Question]] = []

    def allows(
        self,
        _context: RequestContext,
        api_key: ApiKey | str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        count: int = 1,
        is_logged: bool = True,
    ) -> bool:
        permission = (operation, resource_type, name)
        self.questions.append((api_key, Question(permission, count, is_logged)))
        return permission in self._allowed

    def permit(self, _context: RequestContext) -> Permit:
        return Permit()

    def allows_some(self, _context: RequestContext, operation: AclOperation, resource_type: ResourceType) -> bool:
        self.questions.append((None, Question((operation, resource_type, SOME), is_logged=False)))
        return False


def unlogged(permission: Permission) -> Question:
    return Question(permission, is_logged=False)


class Expected(NamedTuple):
    request: Any
    questions: list[Question]
    allowed: tuple[Permission, ...] = ()


def expectations() -> Iterator[Expected]:
    yield Expected(
        DescribeGroupsRequest(groups=(G, G), include_authorized_operations=True), [Question(group(DESCRIBE, "g"))] * 2
    )
    yield Expected(DeleteGroupsRequest(groups_names=(G, G)), [Question(group(DELETE, "g"))])
    yield Expected(ListGroupsRequest(), [unlogged(cluster(DESCRIBE))])
    yield Expected(OffsetCommitRequest(group_id=G, member_id="", topics=()), [Question(group(READ, "g"))])
    commit = TxnOffsetCommitRequest(
        transactional_id=T,
        group_id=G,
        producer_id=ProducerId(1),
        producer_epoch=i16(0),
        topics=(TxnOffsetCommitRequestTopic(name=A, partitions=()),) * 2,
    )
    writes, reads = transactional_id(WRITE, "t"), group(READ, "g")
    yield Expected(commit, [Question(writes)])
    yield Expected(commit, [Question(writes), Question(reads)], (writes,))
    yield Expected(
        commit, [Question(writes), Question(reads), Question(topic(READ, "a"), reference_count=2)], (writes, reads)
    )
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id=G, member_id="m", member_epoch=i32(0), subscribed_topic_names=(A, A), topic_partitions=()
    )
    yield Expected(heartbeat, [Question(reads), Question(topic(DESCRIBE, "a"))], (reads,))
    yield Expected(
        InitProducerIdRequest(transactional_id=None, transaction_timeout=NO_THROTTLE),
        [
            unlogged(cluster(AclOperation.IDEMPOTENT_WRITE)),
            unlogged((WRITE, ResourceType.TOPIC, SOME)),
        ],
    )
    yield Expected(
        WriteTxnMarkersRequest(markers=()),
        [unlogged(cluster(AclOperation.ALTER)), Question(cluster(AclOperation.CLUSTER_ACTION))],
    )
    epochs = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic=A, partitions=()),))
    yield Expected(epochs, [unlogged(cluster(AclOperation.CLUSTER_ACTION)), Question(topic(DESCRIBE, "a"))])
    before = DeleteRecordsPartition(partition_index=i32(0), offset=i64(0))
    yield Expected(
        DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=A, partitions=(before,)),) * 2, timeout=NO_THROTTLE),
        [Question(topic(DELETE, "a"), reference_count=2)],
    )


def test_questions_are_those_of_apache_kafka() -> None:
    async def scenario() -> None:
        async with World().running() as (node, _):
            own = OwnRequests(node.parts.handlers, asyncio.get_running_loop())
            for expected in expectations():
                asked = Asked(*expected.allowed)
                context = _context(asked)
                await own.ask(expected.request, context)
                assert [question for _, question in asked.questions] == expected.questions, expected.request
                assert {api_key for api_key, _ in asked.questions} <= {expected.request.__api_key__, None}

    run(scenario)


def _context(asked: Asked) -> RequestContext:
    return RequestContext(
        listener_name=UNRESTRICTED.listener_name, peer_host=UNRESTRICTED.peer_host, client_id=None, authorizer=asked
    )
