"""controller_mutation_rate: partitions that a client has created and deleted (KIP-599)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast
from uuid import UUID

import pytest
from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.types import TopicName
from kio.static.primitive import f64, i16, i32
from memory_node import MINUTE, World, create_topic, run
from metadata_cluster import Cluster
from typed_ids import node_ids

from penstock.broker.apis import topic_mutations
from penstock.broker.network.request import RequestContext
from penstock.broker.quotas.client_quotas import ClientQuotas
from penstock.client.connection import connect
from penstock.protocol.errors import ErrorCode
from penstock.protocol.ids import BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicId
from penstock.quorum.decisions.partitions import create_partitions
from penstock.quorum.decisions.topics import create_topics, delete_topics
from penstock.quorum.metadata.quota_precedence import CONTROLLER_MUTATION_RATE
from penstock.quorum.metadata.records import DIRECTORY_UNASSIGNED, PartitionRecord, RegisterBrokerRecord, TopicRecord
from penstock.quorum.permissions.requester import PermissionsChangedError

NONE, EXCEEDED = int(ErrorCode.NONE), int(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
EXISTING = TopicId(UUID(int=77))


class Client:
    """A client of broker 1 with a quota of one partition a second: eleven at once."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.cluster.replay(
            [
                RegisterBrokerRecord(
                    broker_id=NodeId(1), incarnation_id=UUID(int=1), broker_epoch=BrokerEpoch(1), is_fenced=False
                ),
                TopicRecord(name="existing", topic_id=EXISTING),
                *(
                    PartitionRecord(
                        topic_id=EXISTING,
                        partition_id=number,
                        replicas=node_ids(1),
                        isr=node_ids(1),
                        leader=NodeId(1),
                        leader_epoch=LeaderEpoch(0),
                        partition_epoch=PartitionEpoch(0),
                        directories=(DIRECTORY_UNASSIGNED,),
                    )
                    for number in range(8)
                ),
            ]
        )
        self.now_ms = 0
        quotas = ClientQuotas(sample_count=11, window_ms=1000, monotonic_ms=lambda: self.now_ms)
        quotas.set_quotas({(("user", None),): {CONTROLLER_MUTATION_RATE: 1.0}})
        context = RequestContext(listener_name="PLAINTEXT", peer_host="127.0.0.1", client_id="a")
        self.context = replace(context, quota=quotas.find(context))
        self.submitted: list[Any] = []

    @property
    def tokens(self) -> float:
        """How many partitions are left."""
        assert self.context.quota is not None
        mutations: Any = self.context.quota.mutations
        sensor = mutations._limit.sensor
        return cast(float, sensor.bucket.tokens(sensor.bound, self.now_ms))

    def ask(self, handle: Any, decide: Any, request: Any, version: int = 7, **given: Any) -> Any:
        async def submit(admitted: Any) -> Any:
            self.submitted.append(admitted)
            return self.cluster.submit(decide, admitted)

        context = replace(self.context, api_version=version)
        waiting = handle(request, context, submit, image=self.cluster.image, **given)
        with pytest.raises(StopIteration) as ended:
            waiting.send(None)
        return ended.value.value

    def create(self, *topics: tuple[str, int], version: int = 7) -> Any:
        request = CreateTopicsRequest(
            topics=tuple(
                CreatableTopic(
                    name=TopicName(name),
                    num_partitions=i32(count),
                    replication_factor=i16(1),
                    assignments=(),
                    configs=(),
                )
                for name, count in topics
            )
        )
        handle = topic_mutations.create_topics
        return self.ask(handle, create_topics, request, version, default_partition_count=5)

    def delete(self, *topics: DeleteTopicState, version: int = 6) -> Any:
        return self.ask(
            topic_mutations.delete_topics, delete_topics, DeleteTopicsRequest(topics=topics, timeout=MINUTE), version
        )

    def grow(self, *topics: tuple[str, int], version: int = 3) -> Any:
        request = CreatePartitionsRequest(
            topics=tuple(
                CreatePartitionsTopic(name=TopicName(name), count=i32(count), assignments=None)
                for name, count in topics
            ),
            timeout=MINUTE,
            validate_only=False,
        )
        return self.ask(topic_mutations.create_partitions, create_partitions, request, version)


@pytest.fixture
def client() -> Client:
    return Client()


def errors(results: Any) -> dict[str, int]:
    return {one.name: int(one.error_code) for one in results}


def test_topics_are_created_until_the_quota_is_exhausted(client: Client) -> None:
    response = client.create(("a", 6), ("b", 6), ("c", 6))
    assert errors(response.topics) == {"a": NONE, "b": NONE, "c": EXCEEDED}
    assert response.topics[2].error_message == "The throttling quota has been exceeded."
    assert response.throttle_time.total_seconds() == 1.0
    assert "c" not in client.cluster.image.topics.by_name
    client.now_ms = 1000
    again = client.create(("c", 6))
    assert (errors(again.topics), again.throttle_time.total_seconds()) == ({"c": NONE}, 0)


def test_nothing_is_submitted_when_nothing_is_left(client: Client) -> None:
    client.create(("a", 20))
    refused = client.create(("b", 1))
    assert errors(refused.topics) == {"b": EXCEEDED}
    assert refused.throttle_time.total_seconds() == 9.0
    assert len(client.submitted) == 1


def test_topics_that_are_not_created_are_given_back(client: Client) -> None:
    response = client.create(("existing", 5), ("twice", 5), ("twice", 5), ("no name!", 4), ("a", 3))
    assert errors(response.topics) == {
        "existing": ErrorCode.TOPIC_ALREADY_EXISTS,
        "twice": ErrorCode.INVALID_REQUEST,
        "no name!": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "a": NONE,
    }
    assert client.tokens == 8


def test_a_topic_that_does_not_say_has_the_default_number_of_partitions(client: Client) -> None:
    client.create(("a", -1))
    assert client.tokens == 6


def test_a_client_of_an_old_version_is_made_to_wait_only(client: Client) -> None:
    response = client.create(("a", 6), ("b", 6), ("c", 6), version=5)
    assert errors(response.topics) == {"a": NONE, "b": NONE, "c": NONE}
    assert response.throttle_time.total_seconds() == 7.0
    assert client.grow(("existing", 9), version=2).throttle_time.total_seconds() == 8.0
    assert client.delete(DeleteTopicState(name=TopicName("a"), topic_id=None), version=4).responses[0].error_code == 0


def test_topics_are_deleted_by_name_and_by_id_until_the_quota_is_exhausted(client: Client) -> None:
    created = client.create(("a", 4)).topics[0]
    unknown = DeleteTopicState(name=TopicName("unknown"), topic_id=None)
    response = client.delete(unknown, DeleteTopicState(name=None, topic_id=EXISTING))
    assert [int(one.error_code) for one in response.responses] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NONE]
    assert client.tokens == -1
    refused = client.delete(DeleteTopicState(name=None, topic_id=created.topic_id))
    (one,) = refused.responses
    assert (int(one.error_code), one.topic_id) == (EXCEEDED, created.topic_id)
    assert refused.throttle_time.total_seconds() == 1.0


def test_added_partitions_count(client: Client) -> None:
    response = client.grow(("existing", 12), ("unknown", 3))
    assert errors(response.results) == {"existing": NONE, "unknown": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert client.tokens == 7
    assert errors(client.grow(("existing", 11)).results) == {"existing": ErrorCode.INVALID_PARTITIONS}
    assert client.tokens == 7
    assert errors(client.grow(("existing", 20)).results) == {"existing": NONE}
    assert errors(client.grow(("existing", 21)).results) == {"existing": EXCEEDED}


def test_a_client_without_a_quota_of_changes_asks_as_before(client: Client) -> None:
    client.context = replace(client.context, quota=None)
    assert errors(client.create(("a", 1000)).topics) == {"a": NONE}
    assert errors(client.grow(("existing", 100)).results) == {"existing": NONE}
    assert int(client.delete(DeleteTopicState(name=TopicName("a"), topic_id=None)).responses[0].error_code) == NONE


def test_on_a_node_a_topic_above_the_quota_is_refused_with_the_throttle_time() -> None:
    async def scenario() -> None:
        async with World(controller_quota_window_num="1").running() as (node, administrator):
            entity = (EntityData(entity_type="client-id", entity_name="limited"),)
            change = OpData(key=CONTROLLER_MUTATION_RATE, value=f64(1.0), remove=False)
            await administrator.call(
                AlterClientQuotasRequest(entries=(EntryData(entity=entity, ops=(change,)),), validate_only=False)
            )
            async with await connect("127.0.0.1", node.bound_ports["PLAINTEXT"], client_id="limited") as limited:
                assert await create_topic(limited, "a", 100) == ErrorCode.NONE
                assert await create_topic(limited, "b") == ErrorCode.THROTTLING_QUOTA_EXCEEDED
                assert await create_topic(administrator, "b") == ErrorCode.NONE

    run(scenario)


def test_what_a_controller_was_not_allowed_to_do_is_given_back(client: Client) -> None:
    async def submit(_request: Any) -> Any:
        raise PermissionsChangedError

    request = DeleteTopicsRequest(topics=(DeleteTopicState(name=None, topic_id=EXISTING),), timeout=MINUTE)
    context = replace(client.context, api_version=6)
    waiting = topic_mutations.delete_topics(request, context, submit, image=client.cluster.image)
    with pytest.raises(PermissionsChangedError):
        waiting.send(None)
    assert client.tokens == 11
