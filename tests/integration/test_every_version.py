"""Every version of the APIs that one node serves does what it says, asked over a bare socket with kio's classes.

The assertions hold on Apache Kafka 4.3.1 too: `PENSTOCK_TEST_BOOTSTRAP=host:port`.
"""

from __future__ import annotations

import itertools
import json
import socket
import struct
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_payload_module
from kio.static.constants import EntityType
from plain_producer import PlainProducer
from waiting import wait_for

from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.batches import iterate_headers
from penstock.protocol.messages import decode_response, encode_request
from penstock.protocol.records import Record, read_records, write_batch
from penstock.protocol.versions import class_version

pytestmark = pytest.mark.integration

GOLDEN = Path(__file__).parents[1] / "golden" / "kafka-4.3.1-api-versions.json"
SERVED = [
    *(ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.API_VERSIONS),
    *(ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.DELETE_RECORDS, ApiKey.INIT_PRODUCER_ID),
    *(ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CONFIGS, ApiKey.DESCRIBE_LOG_DIRS),
    *(ApiKey.CREATE_PARTITIONS, ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.DESCRIBE_CLUSTER),
    *(ApiKey.DESCRIBE_PRODUCERS, ApiKey.DESCRIBE_TOPIC_PARTITIONS, ApiKey.ELECT_LEADERS, ApiKey.DESCRIBE_QUORUM),
    *(ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.ALTER_REPLICA_LOG_DIRS),
    *(ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN, ApiKey.WRITE_TXN_MARKERS),
    *(ApiKey.TXN_OFFSET_COMMIT, ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.LIST_TRANSACTIONS),
]
DEADLINE_S = 30.0
TIMEOUT = timedelta(seconds=10)
COORDINATOR_NOT_AVAILABLE = 15
UNSUPPORTED_VERSION = 35
UNKNOWN_TOPIC_OR_PARTITION = 3
NOT_LEADER_OR_FOLLOWER = 6
ELECTION_NOT_NEEDED = 84
UNSTABLE_OFFSET_COMMIT = 88
TOPIC_RESOURCE = 2
TIME_MS = 1_700_000_000_000

Ask = Callable[[ApiKey, int, Any], Any]


def versions(key: ApiKey) -> pytest.MarkDecorator:
    api = APIS[key]
    return pytest.mark.parametrize("version", range(api.min_version, api.max_version + 1))


def request_classes(key: ApiKey, version: int = 10_000) -> ModuleType:
    """The module of the classes that stand for this version; those of the latest when it is left out."""
    chosen = class_version(key, min(version, APIS[key].max_version))
    return load_payload_module(key, chosen, EntityType.request)


@pytest.fixture
def ask(bootstrap: str) -> Iterator[Ask]:
    """Sends one request and gives the answer, which must be whole and nothing more."""
    host, _, port = bootstrap.split(",")[0].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=DEADLINE_S) as connection:
        stream = connection.makefile("rb")
        correlation_ids = itertools.count(1)

        def exchange(key: ApiKey, version: int, request: Any) -> Any:
            sent_id = next(correlation_ids)
            connection.sendall(encode_request(key, version, sent_id, "test", request))
            size = stream.read(4)
            assert len(size) == 4, f"the broker closed the connection on {key.name} v{version}"
            answered_id, answer = decode_response(key, version, stream.read(*struct.unpack(">i", size)))
            assert answered_id == sent_id
            return answer

        yield exchange
        stream.close()


def metadata_of(ask: Ask, version: int, *names: str) -> Any:
    classes = request_classes(ApiKey.METADATA)
    topics = tuple(classes.MetadataRequestTopic(topic_id=None, name=name) for name in names)
    return ask(
        ApiKey.METADATA,
        version,
        classes.MetadataRequest(
            topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=False
        ),
    )


def create(ask: Ask, name: str, version: int = 7, partitions: int = 2, **configs: str) -> Any:
    classes = request_classes(ApiKey.CREATE_TOPICS)
    given = tuple(
        classes.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
    )
    topic = classes.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=given
    )
    answer = ask(
        ApiKey.CREATE_TOPICS,
        version,
        classes.CreateTopicsRequest(topics=(topic,), timeout=TIMEOUT, validate_only=False),
    )
    (created,) = answer.topics
    assert (created.name, created.error_code) == (name, 0)
    wait_for(lambda: leaders_of(ask, name) == partitions)
    return created


def leaders_of(ask: Ask, name: str) -> int:
    (topic,) = metadata_of(ask, 12, name).topics
    return sum(partition.error_code == 0 and partition.leader_id >= 0 for partition in topic.partitions)


def topic_id_of(ask: Ask, name: str) -> UUID:
    (topic,) = metadata_of(ask, 12, name).topics
    assert isinstance(topic.topic_id, UUID)
    return topic.topic_id


def a_batch(count: int, **producer: int) -> bytes:
    records = [Record(n, TIME_MS + n * 1000, b"key", f"value {n}".encode()) for n in range(count)]
    return write_batch(records, **producer)  # type: ignore[arg-type]  # only integers are given


def produce(ask: Ask, name: str, version: int, records: bytes, acks: int = -1) -> Any:
    classes = request_classes(ApiKey.PRODUCE, version)
    partition = classes.PartitionProduceData(index=0, records=records)
    identity = {"topic_id": topic_id_of(ask, name)} if version >= 13 else {"name": name}
    request = classes.ProduceRequest(
        acks=acks, timeout=TIMEOUT, topic_data=(classes.TopicProduceData(partition_data=(partition,), **identity),)
    )

    def answer() -> Any:
        ((answered,),) = (topic.partition_responses for topic in ask(ApiKey.PRODUCE, version, request).responses)
        # Apache Kafka tells of a new leader before it leads.
        return None if answered.error_code == NOT_LEADER_OR_FOLLOWER else answered

    answered = wait_for(answer)
    assert (answered.index, answered.error_code) == (0, 0)
    return answered


@versions(ApiKey.API_VERSIONS)
def test_api_versions_is_apache_kafkas_as_far_as_it_is_built(ask: Ask, version: int) -> None:
    golden = json.loads(GOLDEN.read_text())["broker"]
    question = request_classes(ApiKey.API_VERSIONS).ApiVersionsRequest(
        client_software_name="test", client_software_version="1"
    )
    answer = ask(ApiKey.API_VERSIONS, version, question)
    told = {str(api.api_key): [api.min_version, api.max_version] for api in answer.api_keys}
    # Apache Kafka advertises these two only with a plug-in that takes what clients push.
    assert told.keys() >= TELEMETRY
    assert {key: told[key] for key in told.keys() - TELEMETRY} == {
        key: golden["apis"][key] for key in told.keys() - TELEMETRY
    }
    assert {str(int(key)) for key in SERVED} <= told.keys()
    if version < 3:
        return
    supported = {one.name: (one.min_version, one.max_version) for one in answer.supported_features}
    for name, (lowest, highest) in supported.items():
        # Kafka's tools refuse levels that Apache Kafka does not have.
        assert golden["supported features"][name][0] <= lowest <= highest <= golden["supported features"][name][1]
        # Version 3 cannot say that a feature's lowest level is 0: such features are left out of it.
        assert version > 3 or lowest > 0
    assert supported["metadata.version"] == (7, 30)
    assert version == 3 or supported["transaction.version"] == (0, 2)
    assert answer.finalized_features_epoch >= 0
    finalized = {one.name: one.max_version_level for one in answer.finalized_features}
    assert finalized["metadata.version"] == golden["finalized features"]["metadata.version"]
    assert finalized["transaction.version"] == 2


TELEMETRY = {str(int(key)) for key in (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)}


@pytest.mark.parametrize("version", [5, 32767, -1])
def test_an_unknown_version_of_api_versions_is_refused_in_version_0(bootstrap: str, version: int) -> None:
    host, _, port = bootstrap.split(",")[0].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=DEADLINE_S) as connection:
        flexible_end = b"\0" if version >= 3 else b""
        body = struct.pack(">hhih", ApiKey.API_VERSIONS, version, 42, 2) + b"me" + flexible_end
        connection.sendall(struct.pack(">i", len(body)) + body)
        stream = connection.makefile("rb")
        frame = stream.read(*struct.unpack(">i", stream.read(4)))
        stream.close()
    answered_id, answer = decode_response(ApiKey.API_VERSIONS, 0, frame)
    refusal: Any = answer
    assert (answered_id, refusal.error_code) == (42, UNSUPPORTED_VERSION)
    assert [(api.api_key, api.min_version, api.max_version) for api in refusal.api_keys] == [(18, 0, 4)]


@versions(ApiKey.CREATE_TOPICS)
def test_create_topics(ask: Ask, topic: str, version: int) -> None:
    created = create(ask, topic, version, partitions=3)
    if version >= 5:
        assert (created.num_partitions, created.replication_factor) == (3, 1)
        assert {config.name for config in created.configs} >= {"cleanup.policy", "retention.ms"}
    if version >= 7:
        assert created.topic_id == topic_id_of(ask, topic)


@versions(ApiKey.METADATA)
def test_metadata(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic, partitions=3)
    unknown = f"{topic}-unknown"
    answer = metadata_of(ask, version, topic, unknown)
    (broker,) = answer.brokers
    by_name = {one.name: one for one in answer.topics}
    assert by_name.keys() == {topic, unknown}
    found = by_name[topic]
    assert (found.error_code, found.is_internal) == (0, False)
    assert sorted(partition.partition_index for partition in found.partitions) == [0, 1, 2]
    for partition in found.partitions:
        assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (
            broker.node_id,
            (broker.node_id,),
            (broker.node_id,),
        )
        assert version < 7 or partition.leader_epoch >= 0
    # Before version 4 to ask for a topic is to create it, where that is allowed.
    if version >= 4:
        assert by_name[unknown].error_code == UNKNOWN_TOPIC_OR_PARTITION
        assert (by_name[unknown].topic_id, by_name[unknown].partitions) == (None, ())
    assert version < 1 or answer.controller_id == broker.node_id
    assert version < 2 or answer.cluster_id
    assert (found.topic_id is not None) == (version >= 10)


@pytest.mark.parametrize("version", [12, 13])
def test_metadata_by_topic_id(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic)
    classes = request_classes(ApiKey.METADATA)
    unknown = UUID(int=12345)

    def by_id(topic_id: UUID) -> Any:
        wanted = classes.MetadataRequestTopic(topic_id=topic_id, name=None)
        request = classes.MetadataRequest(
            topics=(wanted,), allow_auto_topic_creation=False, include_topic_authorized_operations=False
        )
        (found,) = ask(ApiKey.METADATA, version, request).topics
        return found

    found = by_id(topic_id_of(ask, topic))
    assert (found.error_code, found.name) == (0, topic)
    missing = by_id(unknown)
    assert (missing.error_code, missing.topic_id) == (100, unknown)


@versions(ApiKey.PRODUCE)
def test_produce(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic)
    for acks, base_offset in ((1, 0), (-1, 3)):
        answered = produce(ask, topic, version, a_batch(3), acks)
        assert (answered.base_offset, answered.log_append_time) == (base_offset, None)
        assert version < 5 or answered.log_start_offset == 0


@versions(ApiKey.FETCH)
def test_fetch(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic)
    produce(ask, topic, 9, a_batch(3))
    produce(ask, topic, 9, a_batch(2))
    classes = request_classes(ApiKey.FETCH, version)
    identity = {"topic_id": topic_id_of(ask, topic)} if version >= 13 else {"topic": topic}
    # An offset inside a batch brings the whole batch, and the first batch comes even where the limit is smaller.
    for offset, max_bytes, expected in ((0, 1_000_000, 5), (1, 1, 3), (4, 1_000_000, 2), (5, 1_000_000, 0)):
        wanted = classes.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
        request = classes.FetchRequest(
            max_wait=timedelta(milliseconds=1),
            min_bytes=0,
            max_bytes=max_bytes,
            isolation_level=0,
            topics=(classes.FetchTopic(partitions=(wanted,), **identity),),
            forgotten_topics_data=(),
        )
        answer = ask(ApiKey.FETCH, version, request)
        assert answer.error_code == 0
        (partition,) = answer.responses[0].partitions
        assert (partition.error_code, partition.high_watermark, partition.last_stable_offset) == (0, 5, 5)
        records = partition.records or b""
        values = [
            record.value
            for position, header in iterate_headers(records)
            for record in read_records(memoryview(records)[position:], header)
        ]
        assert len(values) == expected


@versions(ApiKey.LIST_OFFSETS)
def test_list_offsets(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic)
    produce(ask, topic, 9, a_batch(5))
    classes = request_classes(ApiKey.LIST_OFFSETS)
    questions = {-1: (5, None), -2: (0, None), TIME_MS + 1500: (2, TIME_MS + 2000), TIME_MS * 2: (-1, -1)}
    if version >= 7:
        questions[-3] = (4, TIME_MS + 4000)
    for timestamp, (offset, found_ms) in questions.items():
        wanted = classes.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = classes.ListOffsetsRequest(
            replica_id=-1,
            isolation_level=0,
            topics=(classes.ListOffsetsTopic(name=topic, partitions=(wanted,)),),
            timeout=TIMEOUT,
        )
        (answered,) = ask(ApiKey.LIST_OFFSETS, version, request).topics[0].partitions
        assert (answered.error_code, answered.offset) == (0, offset)
        assert found_ms is None or answered.timestamp == found_ms


@versions(ApiKey.OFFSET_FOR_LEADER_EPOCH)
def test_offset_for_leader_epoch(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic)
    produce(ask, topic, 9, a_batch(5))
    classes = request_classes(ApiKey.OFFSET_FOR_LEADER_EPOCH)
    for leader_epoch, expected in ((0, (0, 5)), (99, (-1, -1))):
        wanted = classes.OffsetForLeaderPartition(partition=0, leader_epoch=leader_epoch)
        request = classes.OffsetForLeaderEpochRequest(
            replica_id=-1, topics=(classes.OffsetForLeaderTopic(topic=topic, partitions=(wanted,)),)
        )
        (answered,) = ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, request).topics[0].partitions
        assert (answered.error_code, (answered.leader_epoch, answered.end_offset)) == (0, expected)


@versions(ApiKey.DELETE_RECORDS)
def test_delete_records(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic)
    produce(ask, topic, 9, a_batch(5))
    classes = request_classes(ApiKey.DELETE_RECORDS)
    for offset, expected in ((3, (0, 3)), (-1, (0, 5)), (77, (1, -1))):
        wanted = classes.DeleteRecordsPartition(partition_index=0, offset=offset)
        request = classes.DeleteRecordsRequest(
            topics=(classes.DeleteRecordsTopic(name=topic, partitions=(wanted,)),), timeout=TIMEOUT
        )
        (answered,) = ask(ApiKey.DELETE_RECORDS, version, request).topics[0].partitions
        assert (answered.error_code, answered.low_watermark) == expected


@versions(ApiKey.INIT_PRODUCER_ID)
def test_init_producer_id_and_an_idempotent_batch(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic)
    classes = request_classes(ApiKey.INIT_PRODUCER_ID)
    request = classes.InitProducerIdRequest(transactional_id=None, transaction_timeout=timedelta(minutes=1))
    first, second = (ask(ApiKey.INIT_PRODUCER_ID, version, request) for _ in range(2))
    assert (first.error_code, first.producer_epoch) == (0, 0)
    assert first.producer_id != second.producer_id >= 0
    batch = a_batch(3, producer_id=first.producer_id, producer_epoch=0, base_sequence=0)
    assert [produce(ask, topic, 9, batch).base_offset for _ in range(3)] == [0, 0, 0]
    following = a_batch(1, producer_id=first.producer_id, producer_epoch=0, base_sequence=3)
    assert produce(ask, topic, 9, following).base_offset == 3


@versions(ApiKey.FIND_COORDINATOR)
def test_find_coordinator_answers_a_broker_or_that_there_is_none(ask: Ask, topic: str, version: int) -> None:
    request = request_classes(ApiKey.FIND_COORDINATOR).FindCoordinatorRequest(key_type=0, coordinator_keys=(topic,))
    (found,) = ask(ApiKey.FIND_COORDINATOR, version, request).coordinators
    assert found.error_code in (0, COORDINATOR_NOT_AVAILABLE)
    assert (found.node_id >= 0) == (found.error_code == 0)


@versions(ApiKey.CREATE_PARTITIONS)
def test_create_partitions(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic)
    classes = request_classes(ApiKey.CREATE_PARTITIONS)
    request = classes.CreatePartitionsRequest(
        topics=(classes.CreatePartitionsTopic(name=topic, count=4, assignments=None),),
        timeout=TIMEOUT,
        validate_only=False,
    )
    (answered,) = ask(ApiKey.CREATE_PARTITIONS, version, request).results
    assert (answered.name, answered.error_code) == (topic, 0)
    wait_for(lambda: leaders_of(ask, topic) == 4)


@versions(ApiKey.DELETE_TOPICS)
def test_delete_topics(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic)
    classes = request_classes(ApiKey.DELETE_TOPICS)

    def delete() -> Any:
        request = classes.DeleteTopicsRequest(
            topics=(classes.DeleteTopicState(name=topic, topic_id=None),), timeout=TIMEOUT
        )
        (answered,) = ask(ApiKey.DELETE_TOPICS, version, request).responses
        assert answered.name == topic
        return answered.error_code

    assert delete() == 0
    wait_for(lambda: metadata_of(ask, 12, topic).topics[0].error_code == UNKNOWN_TOPIC_OR_PARTITION)
    assert delete() == UNKNOWN_TOPIC_OR_PARTITION


def test_delete_topics_by_id(ask: Ask, topic: str) -> None:
    created = create(ask, topic)
    classes = request_classes(ApiKey.DELETE_TOPICS)
    request = classes.DeleteTopicsRequest(
        topics=(classes.DeleteTopicState(name=None, topic_id=created.topic_id),), timeout=TIMEOUT
    )
    (answered,) = ask(ApiKey.DELETE_TOPICS, 6, request).responses
    assert (answered.error_code, answered.name, answered.topic_id) == (0, topic, created.topic_id)


def config_of(ask: Ask, version: int, topic: str, key: str) -> Any:
    classes = request_classes(ApiKey.DESCRIBE_CONFIGS)
    resource = classes.DescribeConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=(key,)
    )
    request = classes.DescribeConfigsRequest(resources=(resource,), include_synonyms=True, include_documentation=True)
    (result,) = ask(ApiKey.DESCRIBE_CONFIGS, version, request).results
    assert (result.error_code, result.resource_name) == (0, topic)
    (config,) = result.configs
    assert config.name == key
    return config


def _has_value(ask: Ask, topic: str, key: str, value: str) -> bool:
    return bool(config_of(ask, 4, topic, key).value == value)


@versions(ApiKey.DESCRIBE_CONFIGS)
def test_describe_configs(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic)
    config = config_of(ask, version, topic, "retention.ms")
    assert (config.value, config.config_source) == ("604800000", 5)
    assert (config.config_type, bool(config.documentation)) == ((5, True) if version >= 3 else (0, False))


@versions(ApiKey.ALTER_CONFIGS)
def test_alter_configs_replaces_all_of_a_topics_configs(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic)
    classes = request_classes(ApiKey.ALTER_CONFIGS)
    for key, value in (("retention.ms", "1234567"), ("segment.bytes", "2000000")):
        config = classes.AlterableConfig(name=key, value=value)
        resource = classes.AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=(config,))
        request = classes.AlterConfigsRequest(resources=(resource,), validate_only=False)
        (answered,) = ask(ApiKey.ALTER_CONFIGS, version, request).responses
        assert (answered.error_code, answered.resource_name) == (0, topic)
    wait_for(lambda: config_of(ask, 4, topic, "segment.bytes").value == "2000000")
    assert config_of(ask, 4, topic, "retention.ms").value == "604800000"


@versions(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def test_incremental_alter_configs(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic)
    classes = request_classes(ApiKey.INCREMENTAL_ALTER_CONFIGS)
    set_, delete, append = 0, 1, 2
    for operation, key, value, expected in (
        (set_, "retention.ms", "1234567", "1234567"),
        (delete, "retention.ms", None, "604800000"),
        (append, "cleanup.policy", "compact", "delete,compact"),
    ):
        config = classes.AlterableConfig(name=key, config_operation=operation, value=value)
        resource = classes.AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=(config,))
        request = classes.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        (answered,) = ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, version, request).responses
        assert (answered.error_code, answered.resource_name) == (0, topic)
        wait_for(partial(_has_value, ask, topic, key, expected))


@versions(ApiKey.DESCRIBE_LOG_DIRS)
def test_describe_log_dirs(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic)
    produce(ask, topic, 9, a_batch(5))
    classes = request_classes(ApiKey.DESCRIBE_LOG_DIRS)
    wanted = classes.DescribableLogDirTopic(topic=topic, partitions=(0,))
    answer = ask(ApiKey.DESCRIBE_LOG_DIRS, version, classes.DescribeLogDirsRequest(topics=(wanted,)))
    assert answer.error_code == 0
    (found,) = [
        (directory, partition)
        for directory in answer.results
        for described in directory.topics
        if described.name == topic
        for partition in described.partitions
    ]
    directory, partition = found
    assert (partition.partition_index, partition.partition_size, partition.offset_lag) == (0, len(a_batch(5)), 0)
    assert version < 4 or 0 < directory.usable_bytes <= directory.total_bytes


@versions(ApiKey.ALTER_REPLICA_LOG_DIRS)
def test_alter_replica_log_dirs(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic)
    every = request_classes(ApiKey.DESCRIBE_LOG_DIRS).DescribeLogDirsRequest(topics=None)
    described = ask(ApiKey.DESCRIBE_LOG_DIRS, 4, every)
    classes = request_classes(ApiKey.ALTER_REPLICA_LOG_DIRS)
    wanted = classes.AlterReplicaLogDirTopic(name=topic, partitions=(0,))
    where = classes.AlterReplicaLogDir(path=described.results[0].log_dir, topics=(wanted,))
    answer = ask(ApiKey.ALTER_REPLICA_LOG_DIRS, version, classes.AlterReplicaLogDirsRequest(dirs=(where,)))
    ((answered,),) = (one.partitions for one in answer.results)
    assert (answer.results[0].topic_name, answered.partition_index, answered.error_code) == (topic, 0, 0)


@versions(ApiKey.DESCRIBE_CLUSTER)
def test_describe_cluster(ask: Ask, version: int) -> None:
    request = request_classes(ApiKey.DESCRIBE_CLUSTER).DescribeClusterRequest(
        include_cluster_authorized_operations=False, endpoint_type=1, include_fenced_brokers=False
    )
    answer = ask(ApiKey.DESCRIBE_CLUSTER, version, request)
    assert (answer.error_code, bool(answer.cluster_id)) == (0, True)
    (broker,) = answer.brokers
    assert answer.controller_id == broker.broker_id


@versions(ApiKey.ELECT_LEADERS)
def test_elect_leaders(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic, partitions=1)
    classes = request_classes(ApiKey.ELECT_LEADERS)
    asked = (classes.TopicPartitions(topic=topic, partitions=(0, 7)),)
    request = classes.ElectLeadersRequest(election_type=0, topic_partitions=asked, timeout=TIMEOUT)
    (result,) = ask(ApiKey.ELECT_LEADERS, version, request).replica_election_results
    assert {one.partition_id: one.error_code for one in result.partition_result} == {
        0: ELECTION_NOT_NEEDED,
        7: UNKNOWN_TOPIC_OR_PARTITION,
    }


@versions(ApiKey.DESCRIBE_QUORUM)
def test_describe_quorum(ask: Ask, version: int) -> None:
    classes = request_classes(ApiKey.DESCRIBE_QUORUM)
    asked = classes.TopicData(topic_name="__cluster_metadata", partitions=(classes.PartitionData(partition_index=0),))
    answer = ask(ApiKey.DESCRIBE_QUORUM, version, classes.DescribeQuorumRequest(topics=(asked,)))
    (partition,) = answer.topics[0].partitions
    assert (answer.error_code, partition.error_code) == (0, 0)
    assert partition.leader_id in [voter.replica_id for voter in partition.current_voters]
    (leader,) = [voter for voter in partition.current_voters if voter.replica_id == partition.leader_id]
    assert leader.log_end_offset >= partition.high_watermark > 0
    assert (leader.last_fetch_timestamp > 0) is (leader.last_caught_up_timestamp > 0) is (version > 0)


def test_list_partition_reassignments(ask: Ask, topic: str) -> None:
    create(ask, topic)
    classes = request_classes(ApiKey.LIST_PARTITION_REASSIGNMENTS)
    asked = classes.ListPartitionReassignmentsTopics(name=topic, partition_indexes=(0, 1, 7))
    for topics in (None, (asked,)):
        request = classes.ListPartitionReassignmentsRequest(topics=topics, timeout=TIMEOUT)
        answer = ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request)
        assert (answer.error_code, answer.topics) == (0, ())


def test_describe_producers(ask: Ask, topic: str) -> None:
    # The broker's time, because producers of records long past are forgotten.
    create(ask, topic, message_timestamp_type="LogAppendTime")
    init = request_classes(ApiKey.INIT_PRODUCER_ID).InitProducerIdRequest(
        transactional_id=None, transaction_timeout=timedelta(minutes=1)
    )
    producer_id = ask(ApiKey.INIT_PRODUCER_ID, 5, init).producer_id
    produce(ask, topic, 9, a_batch(3, producer_id=producer_id, producer_epoch=0, base_sequence=0))
    classes = request_classes(ApiKey.DESCRIBE_PRODUCERS)
    request = classes.DescribeProducersRequest(topics=(classes.TopicRequest(name=topic, partition_indexes=(0,)),))
    (partition,) = ask(ApiKey.DESCRIBE_PRODUCERS, 0, request).topics[0].partitions
    (producer,) = partition.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (producer_id, 0, 2)
    assert producer.current_txn_start_offset == -1


@versions(ApiKey.INIT_PRODUCER_ID)
def test_epoch_of_a_transactional_producer_rises_with_each_beginning(ask: Ask, topic: str, version: int) -> None:
    producer = PlainProducer(ask, topic)
    producer.init(version=version)
    first = producer.producer_id, producer.epoch
    producer.init(version=version)
    assert (producer.producer_id, producer.epoch) == (first[0], first[1] + 1)


@pytest.mark.parametrize("version", range(4))
def test_partition_is_added_to_a_transaction(ask: Ask, topic: str, version: int) -> None:
    """From version 4 on brokers ask it of each other."""
    create(ask, topic, partitions=1)
    producer = PlainProducer(ask, topic, is_old=True)
    producer.init()
    assert producer.add(topic, version=version) == 0
    assert producer.produce(topic, 0) == 0
    assert producer.end(is_commit=False) == 0


@pytest.mark.parametrize("version", range(3, 13))
def test_batch_is_produced_in_a_transaction(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic, partitions=1)
    producer = PlainProducer(ask, topic, is_old=version < 12)
    producer.init()
    if version < 12:
        assert producer.add(topic) == 0
    assert producer.produce(topic, 0, version=version) == 0
    assert producer.end() == 0


@versions(ApiKey.END_TXN)
def test_transaction_is_ended(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic, partitions=1)
    producer = PlainProducer(ask, topic, is_old=version < 5)
    producer.init()
    epoch = producer.epoch
    for is_commit, raised in ((True, 1), (False, 2)):
        assert version >= 5 or producer.add(topic) == 0
        assert producer.produce(topic, 0 if version >= 5 or is_commit else 1) == 0
        assert producer.end(is_commit=is_commit, version=version) == 0
        assert producer.epoch == epoch + (raised if version >= 5 else 0)


@versions(ApiKey.TXN_OFFSET_COMMIT)
def test_offset_is_committed_in_a_transaction(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic, partitions=1)
    # The group's coordinator is there once it was looked for.
    wanted = request_classes(ApiKey.FIND_COORDINATOR).FindCoordinatorRequest(key_type=0, coordinator_keys=(topic,))
    wait_for(lambda: ask(ApiKey.FIND_COORDINATOR, 6, wanted).coordinators[0].error_code == 0)
    producer = PlainProducer(ask, topic, is_old=version < 5)
    producer.init()
    assert version >= 5 or producer.add_offsets(topic, version=min(version, 4)) == 0
    assert producer.commit_offset(topic, topic, 5, version=version) == 0
    assert offset_of(ask, topic) == (UNSTABLE_OFFSET_COMMIT, -1)
    assert producer.end() == 0
    assert wait_for(lambda: offset_of(ask, topic)[0] == 0)
    assert offset_of(ask, topic) == (0, 5)


def offset_of(ask: Ask, topic: str) -> tuple[int, int]:
    """Error and offset that the group of the topic's name has committed for it."""
    classes = request_classes(ApiKey.OFFSET_FETCH, 9)
    group = classes.OffsetFetchRequestGroup(
        group_id=topic,
        member_id=None,
        topics=(classes.OffsetFetchRequestTopics(name=topic, partition_indexes=(0,)),),
    )
    answer = ask(ApiKey.OFFSET_FETCH, 9, classes.OffsetFetchRequest(groups=(group,), require_stable=True))
    (one,) = answer.groups[0].topics[0].partitions
    return one.error_code, one.committed_offset


@versions(ApiKey.WRITE_TXN_MARKERS)
def test_transaction_that_hangs_is_aborted_in_its_partition(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic, partitions=1)
    producer = PlainProducer(ask, topic)
    producer.init()
    assert producer.produce(topic, 0) == 0
    described = request_classes(ApiKey.DESCRIBE_PRODUCERS)
    question = described.DescribeProducersRequest(topics=(described.TopicRequest(name=topic, partition_indexes=(0,)),))

    def producers() -> Any:
        return ask(ApiKey.DESCRIBE_PRODUCERS, 0, question).topics[0].partitions[0].active_producers

    (found,) = producers()
    assert (found.producer_id, found.producer_epoch) == (producer.producer_id, producer.epoch)
    assert (found.current_txn_start_offset, found.coordinator_epoch) == (0, -1)
    classes = request_classes(ApiKey.WRITE_TXN_MARKERS)
    marker = classes.WritableTxnMarker(
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        transaction_result=False,
        topics=(classes.WritableTxnMarkerTopic(name=topic, partition_indexes=(0, 7)),),
        coordinator_epoch=0,
    )
    answer = ask(ApiKey.WRITE_TXN_MARKERS, version, classes.WriteTxnMarkersRequest(markers=(marker,)))
    (answered,) = answer.markers
    codes = {one.partition_index: one.error_code for one in answered.topics[0].partitions}
    assert (answered.producer_id, codes) == (producer.producer_id, {0: 0, 7: UNKNOWN_TOPIC_OR_PARTITION})
    (found,) = producers()
    assert (found.current_txn_start_offset, found.coordinator_epoch) == (-1, 0)


@versions(ApiKey.LIST_TRANSACTIONS)
def test_transactions_are_listed_and_described(ask: Ask, topic: str, version: int) -> None:
    create(ask, topic, partitions=1)
    producer = PlainProducer(ask, topic)
    producer.init()
    assert producer.produce(topic, 0) == 0
    classes = request_classes(ApiKey.LIST_TRANSACTIONS)
    question = classes.ListTransactionsRequest(state_filters=("Ongoing",), producer_id_filters=(producer.producer_id,))
    answer = ask(ApiKey.LIST_TRANSACTIONS, version, question)
    (listed,) = answer.transaction_states
    assert (answer.error_code, listed.transactional_id, listed.producer_id) == (0, topic, producer.producer_id)
    wanted = request_classes(ApiKey.DESCRIBE_TRANSACTIONS).DescribeTransactionsRequest(transactional_ids=(topic,))
    (described,) = ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, wanted).transaction_states
    assert (described.error_code, described.transaction_state) == (0, "Ongoing")
    assert (described.producer_id, described.producer_epoch) == (producer.producer_id, producer.epoch)
    assert [(one.topic, one.partitions) for one in described.topics] == [(topic, (0,))]


def test_describe_topic_partitions_page_by_page(ask: Ask, topic: str) -> None:
    create(ask, topic, partitions=3)
    classes = request_classes(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
    seen: list[int] = []
    cursor = None
    for _ in range(10):
        request = classes.DescribeTopicPartitionsRequest(
            topics=(classes.TopicRequest(name=topic),), response_partition_limit=2, cursor=cursor
        )
        answer = ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
        (described,) = answer.topics
        assert (described.name, described.error_code) == (topic, 0)
        seen += [partition.partition_index for partition in described.partitions]
        if answer.next_cursor is None:
            break
        cursor = classes.Cursor(
            topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index
        )
    assert seen == [0, 1, 2]
