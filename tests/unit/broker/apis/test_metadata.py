"""Metadata and DescribeTopicPartitions: which topics, which errors, which ids, which page."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from typing import Any
from uuid import UUID

import pytest
from kio.schema.describe_topic_partitions.v0.request import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from kio.schema.metadata.v13.request import MetadataRequestTopic
from kio.schema.metadata.v13.response import MetadataResponse, MetadataResponseTopic
from kio.schema.types import TopicName
from kio.static.primitive import i32
from typed_ids import node_ids

from penstock.broker.apis import metadata as metadata_api
from penstock.broker.apis.describe_topic_partitions import describe_topic_partitions
from penstock.broker.apis.metadata import MetadataHandler
from penstock.broker.apis.metadata_response import metadata_response
from penstock.broker.cluster.metadata_cache import MetadataCache
from penstock.broker.cluster.rules.recent_departures import RecentDepartures
from penstock.broker.cluster.rules.suspicions import Suspicions
from penstock.broker.cluster.suspected_peers import SuspectedPeers
from penstock.broker.network.large_messages import ITEMS_A_TURN
from penstock.broker.network.request import Answer, Request, RequestContext
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import BrokerEpoch, ControllerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicId
from penstock.protocol.messages import decode_response, encode_request
from penstock.protocol.metadata import MetadataRequest
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import EMPTY_IMAGE, MetadataImage
from penstock.quorum.metadata.records import (
    BrokerRegistrationChangeRecord,
    ClusterRecord,
    Endpoint,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)

A_ID, B_ID, UNKNOWN_ID = UUID(int=0xA), UUID(int=0xB), UUID(int=0xC)
CONTEXT = RequestContext(listener_name="PLAINTEXT", peer_host="::1", client_id=None)


def grown(image: MetadataImage, *records: MetadataRecord) -> MetadataImage:
    delta = MetadataDelta(image)
    for record in records:
        delta.replay(record)
    return delta.apply(offset=image.offset + 1, epoch=ControllerEpoch(1), timestamp_ms=0)


def topic_records(name: str, topic_id: UUID, partition_count: int) -> list[MetadataRecord]:
    return [
        TopicRecord(name=name, topic_id=TopicId(topic_id)),
        *(
            PartitionRecord(
                topic_id=TopicId(topic_id),
                partition_id=index,
                replicas=node_ids(1),
                isr=node_ids(1),
                directories=(UUID(int=100),),
                leader=NodeId(1),
                leader_epoch=LeaderEpoch(4),
                partition_epoch=PartitionEpoch(9),
            )
            for index in range(partition_count)
        ),
    ]


PLAINTEXT_CLIENT = RequestContext(listener_name="PLAINTEXT", peer_host="h", client_id=None)
OTHER_CLIENT = dataclasses.replace(PLAINTEXT_CLIENT, listener_name="OTHER")
IMAGE = grown(
    EMPTY_IMAGE,
    ClusterRecord(cluster_id="the-cluster"),
    RegisterBrokerRecord(
        broker_id=NodeId(1),
        incarnation_id=UUID(int=1),
        broker_epoch=BrokerEpoch(1),
        endpoints=(Endpoint(name="PLAINTEXT", host="here", port=9092),),
        is_fenced=False,
        log_dirs=(UUID(int=100),),
    ),
    *topic_records("a", A_ID, 3),
    *topic_records("b", B_ID, 2),
)


def asked(*topics: str | UUID | None, **options: bool) -> MetadataRequest:
    return MetadataRequest(
        topics=tuple(
            MetadataRequestTopic(name=None, topic_id=topic)
            if isinstance(topic, UUID)
            else MetadataRequestTopic(name=None if topic is None else TopicName(topic), topic_id=None)
            for topic in topics
        ),
        include_topic_authorized_operations=options.get("operations", False),
        allow_auto_topic_creation=options.get("create", False),
    )


ALL = MetadataRequest(topics=None, include_topic_authorized_operations=False)


def summary(topic: MetadataResponseTopic) -> tuple[ErrorCode, str | None, UUID | None, int]:
    return ErrorCode(int(topic.error_code)), topic.name, topic.topic_id, len(topic.partitions)


def ask(request: MetadataRequest, version: int = 13) -> list[tuple[ErrorCode, str | None, UUID | None, int]]:
    return [summary(topic) for topic in metadata_response(IMAGE, request, version, PLAINTEXT_CLIENT).topics]


def test_null_means_all_topics_and_an_empty_list_none() -> None:
    assert sorted(ask(ALL)) == [(ErrorCode.NONE, "a", A_ID, 3), (ErrorCode.NONE, "b", B_ID, 2)]
    assert ask(asked()) == []


def test_cluster_and_brokers_are_those_of_the_listener() -> None:
    response = metadata_response(IMAGE, ALL, 13, PLAINTEXT_CLIENT)
    assert [(one.node_id, one.host, one.port) for one in response.brokers] == [(1, "here", 9092)]
    assert (response.cluster_id, response.controller_id) == ("the-cluster", 1)
    other = metadata_response(IMAGE, ALL, 13, OTHER_CLIENT)
    assert (other.brokers, other.controller_id) == ((), -1)


def test_unknown_topic_has_no_id_and_an_invalid_name_its_own_error() -> None:
    assert ask(asked("a", "nowhere", "in/valid", "")) == [
        (ErrorCode.NONE, "a", A_ID, 3),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "nowhere", None, 0),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, "in/valid", None, 0),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, "", None, 0),
    ]


def test_topics_by_id() -> None:
    assert ask(asked(B_ID, UNKNOWN_ID)) == [
        (ErrorCode.NONE, "b", B_ID, 2),
        (ErrorCode.UNKNOWN_TOPIC_ID, None, UNKNOWN_ID, 0),
    ]


def test_topic_asked_for_twice_is_answered_once() -> None:
    assert ask(asked("a", "a")) == [(ErrorCode.NONE, "a", A_ID, 3)]


@pytest.mark.parametrize(("version", "code"), [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)])
def test_leader_without_the_listener_has_the_error_of_the_version(version: int, code: ErrorCode) -> None:
    (topic,) = metadata_response(IMAGE, asked("a"), version, OTHER_CLIENT).topics
    assert {int(partition.error_code) for partition in topic.partitions} == {code}


def test_authorized_operations_are_told_only_when_asked_for() -> None:
    (silent,) = metadata_response(IMAGE, asked("a"), 13, PLAINTEXT_CLIENT).topics
    (told,) = metadata_response(IMAGE, asked("a", operations=True), 13, PLAINTEXT_CLIENT).topics
    assert silent.topic_authorized_operations == -(2**31)
    # Read, write, create, delete, alter, describe, describe configs, alter configs.
    assert told.topic_authorized_operations == 3576


def test_internal_topics_are_marked() -> None:
    image = grown(IMAGE, *topic_records("__consumer_offsets", UNKNOWN_ID, 1))
    topics = metadata_response(image, ALL, 13, PLAINTEXT_CLIENT).topics
    assert {topic.name: topic.is_internal for topic in topics} == {"a": False, "b": False, "__consumer_offsets": True}


def without_suspicions(metadata: MetadataCache) -> SuspectedPeers:
    loop: Any = None
    return SuspectedPeers(Suspicions(NodeId(9), hold_ms=0), metadata, listener_name="PLAINTEXT", loop=loop)


class Asking:
    """A handler, and the answers it gave."""

    def __init__(self, *, creates: bool = False) -> None:
        self.metadata = MetadataCache()
        self.metadata.image = IMAGE
        self.created: list[tuple[str, ...]] = []
        self.answers: list[Answer] = []
        self.last_frame = b""
        self.now_ms = 0
        self.departures = RecentDepartures(lambda: self.now_ms)
        self.handler = MetadataHandler(
            self.metadata, self.create if creates else None, without_suspicions(self.metadata), self.departures
        )

    async def create(self, names: tuple[str, ...], _context: RequestContext) -> None:
        self.created.append(names)
        for number, name in enumerate(names):
            self.metadata.image = grown(self.metadata.image, *topic_records(name, UUID(int=200 + number), 1))

    def on_answer(self, _request: Request, answer: Answer) -> None:
        self.answers.append(answer)

    def hold_later_requests(self, request: Request) -> None: ...
    def release_later_requests(self, request: Request) -> None: ...
    def mute(self, throttle_time_ms: int) -> None: ...
    def set_context(self, context: RequestContext) -> None: ...

    def request(self, message: MetadataRequest, *, version: int = 13, correlation_id: int = 7) -> Request:
        body = memoryview(encode_request(3, version, correlation_id, None, message)[4:])
        return Request(self, 3, version, correlation_id, CONTEXT, body, 10 if version < 9 else 11)

    def ask_together(self, message: MetadataRequest, *, count: int) -> list[MetadataResponse]:
        async def begin() -> None:
            begun = [self.handler.begin(self.request(message)) for _ in range(count)]
            await asyncio.gather(*(one for one in begun if one is not None))

        asyncio.run(begin())
        return [decode_response(3, 13, answer[4:])[1] for answer in self.answers]  # type: ignore[index, arg-type, misc]

    def ask(self, message: MetadataRequest, *, version: int = 13, correlation_id: int = 7) -> MetadataResponse:
        request = self.request(message, version=version, correlation_id=correlation_id)

        async def begin() -> None:
            waiting = self.handler.begin(request)
            if waiting is not None:
                await waiting

        asyncio.run(begin())
        answer = self.answers[-1]
        frame = answer if isinstance(answer, bytes) else b"".join(answer)  # type: ignore[arg-type]
        told_id, response = decode_response(3, version, frame[4:])
        assert told_id == correlation_id
        self.last_frame = frame
        assert isinstance(response, MetadataResponse)
        return response


@pytest.mark.parametrize("version", [8, 9, 10])
@pytest.mark.parametrize(("is_asked", "operations"), [(True, 8096), (False, -(2**31))])
def test_authorized_operations_of_the_cluster_are_told_in_the_versions_that_ask(
    version: int, is_asked: bool, operations: int
) -> None:
    asking = Asking()
    asking.ask(dataclasses.replace(ALL, include_cluster_authorized_operations=is_asked), version=version)
    # The last field; from version 9 on one byte follows, which says that there are no tagged fields.
    end = len(asking.last_frame) - (1 if version >= 9 else 0)
    # Create, alter, describe, cluster action, describe configs, alter configs, idempotent write: what Kafka answers.
    assert int.from_bytes(asking.last_frame[end - 4 : end], "big", signed=True) == operations


def test_same_question_gets_the_same_bytes_with_its_own_correlation_id() -> None:
    asking = Asking()
    first = asking.ask(ALL, correlation_id=1)
    assert asking.ask(ALL, correlation_id=2) == first
    frames = [bytes(answer) for answer in asking.answers if isinstance(answer, bytes)]
    assert [frame[4:8] for frame in frames] == [b"\0\0\0\1", b"\0\0\0\2"]
    assert len({frame[8:] for frame in frames}) == 1
    assert asking.ask(ALL, version=12, correlation_id=3).topics == first.topics


LARGE = grown(IMAGE, *topic_records("large", UUID(int=77), ITEMS_A_TURN + 1))


@pytest.mark.thorough
def test_many_that_ask_for_a_large_answer_wait_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asking, made_in = Asking(), []

    def make(*arguments: Any) -> MetadataResponse:
        made_in.append(threading.get_ident())
        return metadata_response(*arguments)

    monkeypatch.setattr(metadata_api, "metadata_response", make)
    asking.metadata.image = LARGE
    answers = asking.ask_together(ALL, count=100)
    assert {len(topic.partitions) for answer in answers for topic in answer.topics} == {2, 3, ITEMS_A_TURN + 1}
    assert len(made_in) == 1
    assert made_in[0] != threading.get_ident()
    # And it is kept for those that come later.
    asking.ask(ALL)
    assert len(made_in) == 1


def test_an_answer_to_few_of_many_partitions_is_made_at_once() -> None:
    asking = Asking()
    asking.metadata.image = LARGE
    assert asking.handler.begin(asking.request(asked("a"))) is None
    assert len(asking.ask(asked("a", "large")).topics) == 2


def test_a_large_answer_that_is_made_while_the_metadata_change_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asking, is_changed = Asking(), threading.Event()

    def make(image: MetadataImage, *arguments: Any) -> MetadataResponse:
        if image is LARGE:
            assert is_changed.wait(30)
        return metadata_response(image, *arguments)

    monkeypatch.setattr(metadata_api, "metadata_response", make)

    async def ask() -> None:
        asking.metadata.image = LARGE
        first = asking.handler.begin(asking.request(ALL, correlation_id=1))
        assert first is not None
        asking.metadata.image = grown(LARGE, *topic_records("c", UNKNOWN_ID, 1))
        second = asking.handler.begin(asking.request(ALL, correlation_id=2))
        assert second is not None
        is_changed.set()
        await first
        await second

    asyncio.run(ask())
    told = dict(decode_response(3, 13, answer[4:]) for answer in asking.answers)  # type: ignore[index, arg-type]
    assert {number: len(answer.topics) for number, answer in told.items()} == {1: 3, 2: 4}  # type: ignore[union-attr]
    assert len(asking.ask(ALL).topics) == 4


def test_change_of_the_image_is_seen_at_once() -> None:
    asking = Asking()
    assert len(asking.ask(ALL).topics) == 2
    asking.metadata.image = grown(IMAGE, *topic_records("c", UNKNOWN_ID, 1))
    assert len(asking.ask(ALL).topics) == 3


def test_a_broker_that_has_just_been_fenced_is_still_listed_and_leads_nothing() -> None:
    asking = Asking()
    asking.departures.publish(MetadataDelta(EMPTY_IMAGE), IMAGE)
    asking.ask(ALL)
    fenced = grown(
        IMAGE, BrokerRegistrationChangeRecord(broker_id=NodeId(1), broker_epoch=BrokerEpoch(1), is_fenced=True)
    )
    asking.metadata.image = fenced
    asking.departures.publish(MetadataDelta(IMAGE), fenced)
    answer = asking.ask(ALL)
    assert [(one.node_id, one.host, one.port) for one in answer.brokers] == [(1, "here", 9092)]
    assert answer.controller_id == -1
    assert {partition.leader_id for topic in answer.topics for partition in topic.partitions} == {-1}
    asking.now_ms += 9_000
    assert asking.ask(ALL).brokers == ()


def test_a_broker_that_knows_of_no_unfenced_one_lists_itself_and_leads_nothing() -> None:
    """With topics and no brokers librdkafka asks never again (its issue 5301)."""
    asking = Asking()
    asking.metadata.node_id = NodeId(1)
    asking.metadata.image = grown(
        IMAGE, BrokerRegistrationChangeRecord(broker_id=NodeId(1), broker_epoch=BrokerEpoch(1), is_fenced=True)
    )
    answer = asking.ask(ALL)
    assert [(one.node_id, one.host, one.port) for one in answer.brokers] == [(1, "here", 9092)]
    assert answer.controller_id == -1
    assert {partition.leader_id for topic in answer.topics for partition in topic.partitions} == {-1}


def test_missing_topics_are_created_where_the_request_allows_it() -> None:
    asking = Asking(creates=True)
    assert summary(asking.ask(asked("new")).topics[0])[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answer = asking.ask(asked("new", "a", "in/valid", "__consumer_offsets", create=True))
    assert [summary(topic)[0] for topic in answer.topics] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert asking.created == [("new",)]


def test_nothing_is_created_where_the_configuration_forbids_it() -> None:
    answer = Asking(creates=False).ask(asked("new", create=True))
    assert summary(answer.topics[0])[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [10, 11])
def test_ids_in_requests_of_versions_10_and_11_are_refused(version: int) -> None:
    request = MetadataRequest(
        topics=(MetadataRequestTopic(name=TopicName("a"), topic_id=A_ID),), include_topic_authorized_operations=False
    )
    answer = Asking().ask(request, version=version)
    assert summary(answer.topics[0])[0] == ErrorCode.INVALID_REQUEST


def page(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> tuple[list[tuple[str, int]], object]:
    """(topic, partition) pairs of the page, and where the next begins."""
    request = DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=TopicName(name)) for name in names),
        response_partition_limit=i32(limit),
        cursor=None if cursor is None else Cursor(topic_name=TopicName(cursor[0]), partition_index=i32(cursor[1])),
    )
    response = describe_topic_partitions(IMAGE, request, PLAINTEXT_CLIENT, 2000)
    after = response.next_cursor
    return [(str(topic.name), one.partition_index) for topic in response.topics for one in topic.partitions], (
        None if after is None else (after.topic_name, after.partition_index)
    )


def test_pages_follow_each_other_without_gap() -> None:
    assert page("b", "a") == ([("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)], None)
    assert page(limit=2) == ([("a", 0), ("a", 1)], ("a", 2))
    assert page(limit=2, cursor=("a", 2)) == ([("a", 2), ("b", 0)], ("b", 1))
    assert page(limit=2, cursor=("b", 1)) == ([("b", 1)], None)
    assert page(limit=3) == ([("a", 0), ("a", 1), ("a", 2)], ("b", 0))
    assert page(limit=0) == ([("a", 0)], ("a", 1))


def test_who_may_lead_though_not_in_sync_is_told_kip_966() -> None:
    changes = (
        PartitionChangeRecord(
            topic_id=TopicId(A_ID),
            partition_id=0,
            leader=NodeId(-1),
            isr=(),
            elr=node_ids(1),
            last_known_elr=node_ids(1),
        ),
        PartitionChangeRecord(
            topic_id=TopicId(A_ID), partition_id=1, leader=NodeId(-1), isr=(), last_known_elr=node_ids(1)
        ),
    )
    request = DescribeTopicPartitionsRequest(topics=(TopicRequest(name=TopicName("a")),))
    (topic,) = describe_topic_partitions(grown(IMAGE, *changes), request, PLAINTEXT_CLIENT, 2000).topics
    told = [
        (one.leader_id, one.isr_nodes, one.eligible_leader_replicas, one.last_known_elr) for one in topic.partitions
    ]
    assert told == [(-1, (), (1,), (1,)), (-1, (), (), (1,)), (1, (1,), (), ())]


def test_cursor_of_a_topic_that_was_not_asked_for_is_refused() -> None:
    with pytest.raises(KafkaError, match="should contain the cursor topic: b"):
        page("a", cursor=("b", 0))
    with pytest.raises(KafkaError, match="cursor partition must be valid"):
        page("a", cursor=("a", -1))


def test_cursor_of_a_topic_that_is_gone_goes_on_with_the_next() -> None:
    assert page(cursor=("aa", 1)) == ([("b", 0), ("b", 1)], None)


def test_unknown_topics_are_told() -> None:
    request = DescribeTopicPartitionsRequest(
        topics=(TopicRequest(name=TopicName("nowhere")), TopicRequest(name=TopicName("in/valid")))
    )
    topics = describe_topic_partitions(IMAGE, request, PLAINTEXT_CLIENT, 2000).topics
    assert [(topic.name, int(topic.error_code)) for topic in topics] == [
        ("in/valid", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
