"""Changing configs: operations, checks, and what follows from them."""

from uuid import UUID

import pytest
from kio.schema.alter_configs.v2.request import AlterableConfig as LegacyConfig
from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.alter_configs.v2.request import AlterConfigsResource as LegacyResource
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.static.primitive import i8
from metadata_cluster import Cluster
from typed_ids import node_ids

from penstock.protocol.errors import ErrorCode
from penstock.protocol.ids import LeaderEpoch, NodeId, PartitionEpoch, TopicId
from penstock.quorum.decisions.configs import Operation, alter_configs, incremental_alter_configs
from penstock.quorum.metadata.image import ConfigResource
from penstock.quorum.metadata.records import ConfigRecord, PartitionRecord, TopicRecord

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND, SUBTRACT = Operation
OK = (ErrorCode.NONE, None)
TOPIC_ID = TopicId(UUID(int=2**127))


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster of one broker with a topic 't'."""
    cluster = Cluster()
    cluster.add_brokers(1)
    cluster.replay([TopicRecord(name="t", topic_id=TOPIC_ID), partition(isr=(1,))])
    return cluster


def partition(isr: tuple[int, ...], elr: tuple[int, ...] = ()) -> PartitionRecord:
    return PartitionRecord(
        topic_id=TOPIC_ID,
        partition_id=0,
        replicas=node_ids(1, 2, 3),
        isr=node_ids(*isr),
        elr=node_ids(*elr),
        leader=NodeId(isr[0] if isr else -1),
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
        directories=(UUID(int=2**100),) * 3,
    )


def change(*configs: tuple[str, int, str | None], resource: tuple[int, str] = (TOPIC, "t")) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=i8(resource[0]),
        resource_name=resource[1],
        configs=tuple(
            AlterableConfig(name=name, config_operation=i8(operation), value=value)
            for name, operation, value in configs
        ),
    )


def alter(
    cluster: Cluster, *resources: AlterConfigsResource, validate_only: bool = False
) -> list[tuple[ErrorCode, str | None]]:
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)
    response = cluster.submit(incremental_alter_configs, request)
    return [(ErrorCode(int(result.error_code)), result.error_message) for result in response.responses]


def replace_all(
    cluster: Cluster, configs: dict[str, str | None], resource: tuple[int, str] = (TOPIC, "t")
) -> tuple[ErrorCode, str | None]:
    item = LegacyResource(
        resource_type=i8(resource[0]),
        resource_name=resource[1],
        configs=tuple(LegacyConfig(name=name, value=value) for name, value in configs.items()),
    )
    request = AlterConfigsRequest(resources=(item,), validate_only=False)
    (result,) = cluster.submit(alter_configs, request).responses
    return ErrorCode(int(result.error_code)), result.error_message


def values(cluster: Cluster, resource: tuple[int, str] = (TOPIC, "t")) -> dict[str, str]:
    return dict(cluster.image.configs.of(ConfigResource(*resource)))


def test_set_and_delete(cluster: Cluster) -> None:
    assert alter(cluster, change(("retention.ms", SET, "7"), ("retention.bytes", SET, "8"))) == [OK]
    assert values(cluster) == {"retention.ms": "7", "retention.bytes": "8"}
    assert alter(cluster, change(("retention.ms", DELETE, None))) == [OK]
    assert values(cluster) == {"retention.bytes": "8"}


def test_an_unchanged_value_is_not_written_again(cluster: Cluster) -> None:
    alter(cluster, change(("retention.ms", SET, "7")))
    assert alter(cluster, change(("retention.ms", SET, "7"))) == [OK]
    assert cluster.records == ()


def test_a_broker_s_value_is_always_written_so_that_it_reads_its_files_again(cluster: Cluster) -> None:
    item = change(("log.cleaner.threads", SET, "2"), resource=(BROKER, ""))
    assert alter(cluster, item) == [OK]
    assert alter(cluster, item) == [OK]
    assert len(cluster.records) == 1


def test_append_and_subtract_begin_with_the_default(cluster: Cluster) -> None:
    assert alter(cluster, change(("cleanup.policy", APPEND, "compact"))) == [OK]
    assert values(cluster) == {"cleanup.policy": "delete,compact"}
    assert alter(cluster, change(("cleanup.policy", APPEND, "compact"))) == [OK]
    assert alter(cluster, change(("cleanup.policy", SUBTRACT, "delete,no"))) == [OK]
    assert values(cluster) == {"cleanup.policy": "compact"}


def test_the_default_to_begin_with_is_the_broker_s(cluster: Cluster) -> None:
    alter(cluster, change(("log.cleanup.policy", SET, "compact"), resource=(BROKER, "")))
    alter(cluster, change(("cleanup.policy", APPEND, "delete")))
    assert values(cluster) == {"cleanup.policy": "compact,delete"}


def test_validate_only_writes_nothing(cluster: Cluster) -> None:
    assert alter(cluster, change(("retention.ms", SET, "7")), validate_only=True) == [OK]
    assert values(cluster) == {}


@pytest.mark.parametrize(
    ("item", "code", "message"),
    [
        (
            change(("retention.ms", APPEND, "1")),
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            change(("no.such", SUBTRACT, "1")),
            ErrorCode.INVALID_CONFIG,
            "Can't SUBTRACT to key no.such because its type is not LIST.",
        ),
        (change(("no.such", SET, "1")), ErrorCode.INVALID_CONFIG, "Unknown topic config name: no.such"),
        (
            change(("retention.ms", SET, "x")),
            ErrorCode.INVALID_CONFIG,
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        (
            change(("retention.ms", SET, None)),
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : retention.ms",
        ),
        (
            change(("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        (change(("retention.ms", 9, "1")), ErrorCode.INVALID_REQUEST, "Unknown operations type 9"),
        (
            change(("retention.ms", SET, "1"), resource=(TOPIC, "no")),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'no' does not exist.",
        ),
        (
            change(("retention.ms", SET, "1"), resource=(TOPIC, "")),
            ErrorCode.INVALID_REQUEST,
            "Default topic resources are not allowed.",
        ),
        (
            change(("retention.ms", SET, "1"), resource=(TOPIC, "a b")),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and "
            "'-'",
        ),
        (
            change(("leader.replication.throttled.replicas", SET, "x" * 40_000)),
            ErrorCode.INVALID_CONFIG,
            "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes.",
        ),
        (change(resource=(8, "1")), ErrorCode.INVALID_REQUEST, "Unexpected resource type BROKER_LOGGER."),
        (
            change(("log.cleaner.threads", SET, "1"), resource=(BROKER, "9")),
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            "No node with id 9 found.",
        ),
        (
            change(("log.cleaner.threads", SET, "1"), resource=(BROKER, "x")),
            ErrorCode.INVALID_REQUEST,
            "Unable to parse broker name as a base 10 number.",
        ),
        (
            change(("log.cleaner.threads", SET, "1"), resource=(BROKER, "-1")),
            ErrorCode.INVALID_REQUEST,
            "Invalid negative broker ID.",
        ),
        (
            change(("min.insync.replicas", SET, "1"), resource=(BROKER, "1")),
            ErrorCode.INVALID_CONFIG,
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        ),
        (
            change(("min.insync.replicas", DELETE, None), resource=(BROKER, "")),
            ErrorCode.INVALID_CONFIG,
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        ),
        (
            change(("consumer.session.timeout.ms", SET, "50000"), resource=(GROUP, "")),
            ErrorCode.INVALID_REQUEST,
            "Default group resources are not allowed.",
        ),
        (
            change(("no", SET, "1"), resource=(GROUP, "g")),
            ErrorCode.INVALID_CONFIG,
            "Unknown group config name: no",
        ),
        (
            change(("interval.ms", SET, "1000"), resource=(CLIENT_METRICS, "")),
            ErrorCode.INVALID_REQUEST,
            "Subscription name can't be empty",
        ),
    ],
)
def test_what_cannot_be_is_refused(cluster: Cluster, item: AlterConfigsResource, code: ErrorCode, message: str) -> None:
    assert alter(cluster, item) == [(code, message)]
    assert cluster.records == ()


def test_of_one_resource_all_changes_or_none(cluster: Cluster) -> None:
    bad = change(("retention.ms", SET, "7"), ("segment.bytes", SET, "x"))
    good = change(("consumer.session.timeout.ms", SET, "50000"), resource=(GROUP, "g"))
    codes = [code for code, _ in alter(cluster, bad, good)]
    assert codes == [ErrorCode.INVALID_CONFIG, ErrorCode.NONE]
    assert values(cluster) == {}
    assert values(cluster, (GROUP, "g")) == {"consumer.session.timeout.ms": "50000"}


def test_each_resource_once(cluster: Cluster) -> None:
    item = change(("retention.ms", SET, "7"))
    refused = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    assert alter(cluster, item, item) == [refused, refused]


def test_the_older_form_replaces_everything(cluster: Cluster) -> None:
    alter(cluster, change(("retention.ms", SET, "7"), ("retention.bytes", SET, "8")))
    assert replace_all(cluster, {"retention.ms": "9"}) == OK
    assert values(cluster) == {"retention.ms": "9"}
    assert replace_all(cluster, {"retention.ms": None})[0] == ErrorCode.INVALID_REQUEST
    assert replace_all(cluster, {}) == OK
    assert values(cluster) == {}
    assert replace_all(cluster, {}, (GROUP, ""))[0] == ErrorCode.INVALID_REQUEST


def test_another_smallest_isr_clears_eligible_replicas_of_partitions_that_live(cluster: Cluster) -> None:
    """KIP-966: they were eligible under the old one."""
    cluster.replay([partition(isr=(1,), elr=(2,))])
    alter(cluster, change(("min.insync.replicas", SET, "2")))
    assert cluster.partition("t").elr == ()
    cluster.replay([partition(isr=(), elr=(2,))])
    alter(cluster, change(("min.insync.replicas", SET, "3"), resource=(BROKER, "")))
    assert cluster.partition("t").elr == (2,)


def test_configs_of_a_resource_without_any_leave_no_trace(cluster: Cluster) -> None:
    alter(cluster, change(("retention.ms", SET, "7")))
    alter(cluster, change(("retention.ms", DELETE, None)))
    assert ConfigResource(TOPIC, "t") not in cluster.image.configs.by_resource
    assert isinstance(cluster.records[0], ConfigRecord)
