"""What a client must be allowed to administer a cluster, through a broker and at a controller: `KafkaApis` and
`ControllerApis` of Apache Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.alter_configs.v2 import request as legacy
from kio.schema.alter_partition.v3.request import AlterPartitionRequest
from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.alter_replica_log_dirs.v2.request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kio.schema.assign_replicas_to_dirs.v0.request import AssignReplicasToDirsRequest
from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_log_dirs.v5.request import DescribeLogDirsRequest
from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.get_telemetry_subscriptions.v0.request import GetTelemetrySubscriptionsRequest
from kio.schema.incremental_alter_configs.v1 import request as incremental
from kio.schema.list_config_resources.v1.request import ListConfigResourcesRequest
from kio.schema.list_partition_reassignments.v0.request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kio.schema.offset_for_leader_epoch.v4.request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kio.schema.types import BrokerId, TopicName
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.update_features.v2.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from memory_node import create_topic, run
from permission_cases import Case, Codes, check_case, cluster, group, guarded_node, of_partitions, top_level, topic

from penstock.broker.cluster.tls_contexts import TlsContexts
from penstock.client.connection import connect
from penstock.protocol.acls import AclOperation
from penstock.protocol.errors import ErrorCode

NONE = ErrorCode.NONE
CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
INVALID = ErrorCode.INVALID_REQUEST
ALTER, DESCRIBE, DELETE = AclOperation.ALTER, AclOperation.DESCRIBE, AclOperation.DELETE
ALTER_CONFIGS, DESCRIBE_CONFIGS = AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS
CLUSTER_ACTION = AclOperation.CLUSTER_ACTION
OF_TOPIC, OF_BROKER, OF_LOGGERS, OF_CLIENT_METRICS, OF_GROUP = 2, 4, 8, 16, 32
A = TopicName("a")
MISSING = TopicName("missing")
NODE = "1"
WITH_CONTROLLER_LISTENER = {
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "controller_quorum_voters": "1@127.0.0.1:1",
}
NEEDS_ALTER = "The request needs ALTER permission."


def codes(items: Any) -> Codes:
    return [ErrorCode(int(one.error_code)) for one in items]


def of_results(answer: Any) -> Codes:
    return codes(answer.results)


def of_responses(answer: Any) -> Codes:
    return codes(answer.responses)


def describe_configs() -> Case:
    wanted = [
        *((OF_TOPIC, "a"), (OF_TOPIC, "missing"), (OF_GROUP, "g")),
        *((OF_BROKER, NODE), (OF_BROKER, ""), (OF_LOGGERS, NODE), (OF_CLIENT_METRICS, "m")),
    ]
    request = DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(resource_type=i8(kind), resource_name=name, configuration_keys=("none",))
            for kind, name in wanted
        )
    )
    of_cluster = [CLUSTER] * 4
    return Case(
        request=request,
        codes_of=of_results,
        refused=[TOPIC, TOPIC, GROUP, *of_cluster],
        steps=[
            (topic(DESCRIBE, "a"), [TOPIC, TOPIC, GROUP, *of_cluster]),
            (topic(DESCRIBE_CONFIGS, "a"), [NONE, TOPIC, GROUP, *of_cluster]),
            (topic(ALTER_CONFIGS, "missing"), [NONE, UNKNOWN, GROUP, *of_cluster]),
            (group(DESCRIBE_CONFIGS, "g"), [NONE, UNKNOWN, NONE, *of_cluster]),
            (cluster(DESCRIBE_CONFIGS), [NONE, UNKNOWN, NONE, *[NONE] * 4]),
        ],
    )


def alter_incrementally() -> Case:
    wanted = [
        *((OF_TOPIC, "a", "retention.ms"), (OF_TOPIC, "missing", "retention.ms")),
        *((OF_GROUP, "g", "consumer.session.timeout.ms"), (OF_BROKER, NODE, "log.retention.ms")),
        *((OF_BROKER, "", "log.retention.ms"), (OF_CLIENT_METRICS, "m", "interval.ms")),
    ]
    request = incremental.IncrementalAlterConfigsRequest(
        resources=tuple(
            incremental.AlterConfigsResource(
                resource_type=i8(kind),
                resource_name=name,
                configs=(incremental.AlterableConfig(name=key, config_operation=i8(0), value="50000"),),
            )
            for kind, name, key in wanted
        ),
        validate_only=False,
    )
    of_cluster = [CLUSTER] * 3
    return Case(
        request=request,
        codes_of=of_responses,
        refused=[TOPIC, TOPIC, GROUP, *of_cluster],
        steps=[
            (topic(DESCRIBE_CONFIGS, "a"), [TOPIC, TOPIC, GROUP, *of_cluster]),
            (topic(ALTER_CONFIGS, "a"), [NONE, TOPIC, GROUP, *of_cluster]),
            (topic(ALTER_CONFIGS, "missing"), [NONE, UNKNOWN, GROUP, *of_cluster]),
            (group(ALTER_CONFIGS, "g"), [NONE, UNKNOWN, NONE, *of_cluster]),
            (cluster(ALTER_CONFIGS), [NONE, UNKNOWN, NONE, *[NONE] * 3]),
        ],
    )


def alter_legacy() -> Case:
    wanted = [
        *((OF_TOPIC, "a", "retention.ms"), (OF_GROUP, "g", "consumer.session.timeout.ms")),
        *((OF_BROKER, NODE, "log.retention.ms"), (OF_CLIENT_METRICS, "m", "interval.ms")),
    ]
    request = legacy.AlterConfigsRequest(
        resources=tuple(
            legacy.AlterConfigsResource(
                resource_type=i8(kind),
                resource_name=name,
                configs=(legacy.AlterableConfig(name=key, value="50000"),),
            )
            for kind, name, key in wanted
        ),
        validate_only=False,
    )
    return Case(
        request=request,
        codes_of=of_responses,
        refused=[TOPIC, GROUP, CLUSTER, CLUSTER],
        steps=[
            (topic(ALTER_CONFIGS, "a"), [NONE, GROUP, CLUSTER, CLUSTER]),
            (cluster(ALTER_CONFIGS), [NONE, GROUP, NONE, NONE]),
            (group(ALTER_CONFIGS, "g"), [NONE] * 4),
        ],
    )


def alter_loggers(name: str = NODE) -> incremental.IncrementalAlterConfigsRequest:
    change = incremental.AlterableConfig(name="root", config_operation=i8(0), value="INFO")
    resource = incremental.AlterConfigsResource(resource_type=i8(OF_LOGGERS), resource_name=name, configs=(change,))
    return incremental.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=True)


def alter_loggers_of_a_broker() -> Case:
    return Case(
        request=alter_loggers(),
        codes_of=of_responses,
        refused=[CLUSTER],
        steps=[(cluster(CLUSTER_ACTION), [CLUSTER]), (cluster(ALTER_CONFIGS), [NONE])],
    )


def alter_loggers_of_a_controller() -> Case:
    return Case(
        request=alter_loggers(),
        codes_of=of_responses,
        refused=[CLUSTER],
        steps=[(cluster(ALTER_CONFIGS), [CLUSTER]), (cluster(CLUSTER_ACTION), [NONE])],
    )


def alter_another_broker() -> Case:
    """Refused whatever the permissions."""
    change = incremental.AlterableConfig(name="log.retention.ms", config_operation=i8(0), value="1")
    resource = incremental.AlterConfigsResource(resource_type=i8(OF_BROKER), resource_name="99", configs=(change,))
    return Case(
        request=incremental.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False),
        codes_of=of_responses,
        refused=[INVALID],
        steps=[(cluster(ALTER_CONFIGS), [INVALID])],
    )


def list_config_resources() -> Case:
    return Case(
        request=ListConfigResourcesRequest(resource_types=()),
        codes_of=top_level,
        refused=[CLUSTER],
        steps=[(cluster(DESCRIBE), [CLUSTER]), (cluster(DESCRIBE_CONFIGS), [NONE])],
    )


def list_unknown_config_resources() -> Case:
    return Case(
        request=ListConfigResourcesRequest(resource_types=(i8(99),)),
        codes_of=top_level,
        refused=[CLUSTER],
        steps=[(cluster(ALTER_CONFIGS), [ErrorCode.UNSUPPORTED_VERSION])],
    )


def describe_log_dirs() -> Case:
    return Case(
        request=DescribeLogDirsRequest(topics=None),
        codes_of=lambda answer: [*top_level(answer), *of_results(answer)],
        refused=[CLUSTER],
        steps=[(topic(DESCRIBE, "*"), [CLUSTER]), (cluster(DESCRIBE), [NONE, NONE])],
    )


def alter_replica_log_dirs() -> Case:
    moved = AlterReplicaLogDirTopic(name=A, partitions=(i32(0),))
    return Case(
        request=AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path="/elsewhere", topics=(moved,)),)),
        codes_of=lambda answer: [code for result in answer.results for code in codes(result.partitions)],
        refused=[CLUSTER],
        steps=[(topic(ALTER, "a"), [CLUSTER]), (cluster(ALTER), [ErrorCode.LOG_DIR_NOT_FOUND])],
    )


def describe_quorum() -> Case:
    wanted = TopicData(topic_name=TopicName("__cluster_metadata"), partitions=(PartitionData(partition_index=i32(0)),))
    return Case(
        request=DescribeQuorumRequest(topics=(wanted,)),
        codes_of=top_level,
        refused=[CLUSTER],
        steps=[(cluster(CLUSTER_ACTION), [CLUSTER]), (cluster(ALTER), [NONE])],
    )


def update_features() -> Case:
    update = FeatureUpdateKey(feature="unknown", max_version_level=i16(1))
    return Case(
        request=UpdateFeaturesRequest(feature_updates=(update,)),
        codes_of=top_level,
        refused=[CLUSTER],
        steps=[(cluster(ALTER_CONFIGS), [CLUSTER]), (cluster(ALTER), [ErrorCode.INVALID_UPDATE_VERSION])],
    )


def unregister_broker() -> Case:
    return Case(
        request=UnregisterBrokerRequest(broker_id=BrokerId(99)),
        codes_of=top_level,
        refused=[CLUSTER],
        steps=[(cluster(CLUSTER_ACTION), [CLUSTER]), (cluster(ALTER), [ErrorCode.BROKER_ID_NOT_REGISTERED])],
    )


def elect_leaders() -> Case:
    wanted = TopicPartitions(topic=A, partitions=(i32(0),))
    return Case(
        request=ElectLeadersRequest(election_type=i8(0), topic_partitions=(wanted,)),
        codes_of=lambda answer: [
            *top_level(answer),
            *(code for result in answer.replica_election_results for code in codes(result.partition_result)),
        ],
        refused=[CLUSTER, CLUSTER],
        steps=[(topic(ALTER, "a"), [CLUSTER, CLUSTER]), (cluster(ALTER), [NONE, ErrorCode.ELECTION_NOT_NEEDED])],
    )


def alter_reassignments() -> Case:
    cancelled = ReassignableTopic(name=A, partitions=(ReassignablePartition(partition_index=i32(0), replicas=None),))
    return Case(
        request=AlterPartitionReassignmentsRequest(topics=(cancelled,)),
        codes_of=lambda answer: [
            *top_level(answer),
            *(code for response in answer.responses for code in codes(response.partitions)),
        ],
        refused=[CLUSTER, CLUSTER],
        steps=[
            (topic(ALTER, "a"), [CLUSTER, CLUSTER]),
            (cluster(ALTER), [NONE, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]),
        ],
    )


def list_reassignments() -> Case:
    wanted = ListPartitionReassignmentsTopics(name=A, partition_indexes=(i32(0),))
    return Case(
        request=ListPartitionReassignmentsRequest(topics=(wanted,)),
        codes_of=top_level,
        refused=[CLUSTER],
        steps=[(topic(DESCRIBE, "a"), [CLUSTER]), (cluster(DESCRIBE), [NONE])],
    )


def delete_records() -> Case:
    before = DeleteRecordsPartition(partition_index=i32(0), offset=i64(0))
    return Case(
        request=DeleteRecordsRequest(
            topics=(
                DeleteRecordsTopic(name=A, partitions=(before,)),
                DeleteRecordsTopic(name=MISSING, partitions=(before,)),
            ),
            timeout=i32Timedelta.parse(timedelta(seconds=10)),
        ),
        codes_of=of_partitions,
        refused=[TOPIC, TOPIC],
        steps=[
            (topic(ALTER, "a"), [TOPIC, TOPIC]),
            (topic(DELETE, "a"), [NONE, TOPIC]),
            (topic(DELETE, "missing"), [NONE, UNKNOWN]),
        ],
    )


def offsets_for_epochs() -> OffsetForLeaderEpochRequest:
    wanted = OffsetForLeaderPartition(partition=i32(0), leader_epoch=i32(0))
    return OffsetForLeaderEpochRequest(
        topics=tuple(OffsetForLeaderTopic(topic=name, partitions=(wanted,)) for name in (A, MISSING))
    )


def offset_for_leader_epoch() -> Case:
    return Case(
        request=offsets_for_epochs(),
        codes_of=of_partitions,
        refused=[TOPIC, TOPIC],
        steps=[(topic(DESCRIBE, "a"), [NONE, TOPIC]), (topic(AclOperation.READ, "missing"), [NONE, UNKNOWN])],
    )


def offset_for_leader_epoch_as_a_broker() -> Case:
    return Case(
        request=offsets_for_epochs(),
        codes_of=of_partitions,
        refused=[TOPIC, TOPIC],
        steps=[(cluster(DESCRIBE), [TOPIC, TOPIC]), (cluster(CLUSTER_ACTION), [NONE, UNKNOWN])],
    )


def get_telemetry_subscriptions() -> Case:
    """For everyone."""
    return Case(
        request=GetTelemetrySubscriptionsRequest(client_instance_id=None),
        codes_of=top_level,
        refused=[NONE],
        steps=[],
    )


OF_BOTH: list[Callable[[], Case]] = [
    describe_configs,
    alter_incrementally,
    alter_legacy,
    describe_quorum,
    update_features,
    unregister_broker,
    elect_leaders,
    alter_reassignments,
    list_reassignments,
]
OF_BROKERS: list[Callable[[], Case]] = [
    *OF_BOTH,
    alter_loggers_of_a_broker,
    alter_another_broker,
    list_config_resources,
    list_unknown_config_resources,
    describe_log_dirs,
    alter_replica_log_dirs,
    delete_records,
    offset_for_leader_epoch,
    offset_for_leader_epoch_as_a_broker,
    get_telemetry_subscriptions,
]


@pytest.mark.parametrize("make_case", OF_BROKERS, ids=lambda make_case: make_case.__name__)
def test_each_request_to_a_broker_needs_its_permissions(make_case: Callable[[], Case]) -> None:
    async def scenario() -> None:
        async with guarded_node() as (_, administrator, connection):
            await administrator.allow(cluster(AclOperation.CREATE))
            assert await create_topic(connection, "a") is NONE
            await check_case(make_case(), administrator, connection)

    run(scenario)


@pytest.mark.parametrize(
    "make_case", [*OF_BOTH, alter_loggers_of_a_controller], ids=lambda make_case: make_case.__name__
)
def test_each_request_to_a_controller_needs_its_permissions(make_case: Callable[[], Case]) -> None:
    async def scenario() -> None:
        async with guarded_node(**WITH_CONTROLLER_LISTENER) as (node, administrator, connection):
            await administrator.allow(cluster(AclOperation.CREATE))
            assert await create_topic(connection, "a") is NONE
            async with await connect("127.0.0.1", node.bound_ports["CONTROLLER"]) as to_controller:
                await check_case(make_case(), administrator, to_controller)

    run(scenario)


OF_NODES: list[Any] = [
    AlterPartitionRequest(broker_id=BrokerId(1), topics=()),
    AssignReplicasToDirsRequest(broker_id=BrokerId(1), directories=()),
    AllocateProducerIdsRequest(broker_id=BrokerId(1)),
    BrokerHeartbeatRequest(
        broker_id=BrokerId(1), current_metadata_offset=i64(0), want_fence=False, want_shut_down=False
    ),
]


@pytest.mark.parametrize("request_", OF_NODES, ids=lambda request: type(request).__name__)
def test_no_permission_makes_a_client_a_node(request_: Any) -> None:
    async def scenario() -> None:
        async with guarded_node(**WITH_CONTROLLER_LISTENER) as (node, administrator, connection):
            await administrator.allow(cluster(AclOperation.ALL))
            async with await connect("127.0.0.1", node.bound_ports["CONTROLLER"]) as to_controller:
                assert top_level(await to_controller.call(request_)) == [CLUSTER]
            connection.versions = {**connection.versions, request_.__api_key__: (0, request_.__version__)}
            with pytest.raises(ConnectionError):
                await connection.call(request_)

    run(scenario)


@pytest.mark.parametrize("make_case", [update_features, unregister_broker, alter_reassignments])
def test_a_refusal_says_which_permission_is_missing(make_case: Callable[[], Case]) -> None:
    async def scenario() -> None:
        async with guarded_node() as (_, _, connection):
            answer: Any = await connection.call(make_case().request)
            assert answer.error_message == NEEDS_ALTER

    run(scenario)


def test_refused_elections_say_so_of_each_partition() -> None:
    async def scenario() -> None:
        async with guarded_node() as (_, _, connection):
            answer: Any = await connection.call(elect_leaders().request)
            (result,) = answer.replica_election_results
            assert [one.error_message for one in result.partition_result] == [NEEDS_ALTER]

    run(scenario)


def test_a_refused_list_of_reassignments_names_what_was_asked_for() -> None:
    async def scenario() -> None:
        async with guarded_node() as (_, _, connection):
            answer: Any = await connection.call(list_reassignments().request)
            assert answer.error_message == "The request needs DESCRIBE permission."
            assert [(one.name, [part.partition_index for part in one.partitions]) for one in answer.topics] == [
                ("a", [0])
            ]
            quorum: Any = await connection.call(describe_quorum().request)
            assert (quorum.error_message, quorum.topics) == ("Cluster authorization failed.", ())

    run(scenario)


@pytest.mark.parametrize("make_case", [describe_configs, alter_incrementally, alter_legacy])
def test_refused_configs_have_the_sentence_of_their_error(make_case: Callable[[], Case]) -> None:
    sentences = {
        CLUSTER: "Cluster authorization failed.",
        GROUP: "Group authorization failed.",
        TOPIC: "Topic authorization failed.",
    }

    async def scenario() -> None:
        async with guarded_node() as (_, _, connection):
            answer: Any = await connection.call(make_case().request)
            results = answer.results if make_case is describe_configs else answer.responses
            assert [one.error_message for one in results] == [sentences[code] for code in codes(results)]
            if make_case is describe_configs:
                assert all(one.configs == () for one in results)

    run(scenario)


def test_refused_loggers_have_no_sentence_at_a_broker_and_one_at_a_controller() -> None:
    async def scenario() -> None:
        async with (
            guarded_node(**WITH_CONTROLLER_LISTENER) as (node, _, connection),
            await connect("127.0.0.1", node.bound_ports["CONTROLLER"]) as to_controller,
        ):
            told: list[Any] = [await asked.call(alter_loggers()) for asked in (connection, to_controller)]
            sentences = [answer.responses[0].error_message for answer in told]
            assert sentences == [None, "Cluster authorization failed."]

    run(scenario)


def test_what_is_wrong_with_a_brokers_configs_is_told_first_but_no_key_file_is_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Files that a change names are tried for those who may make it."""
    tried: list[object] = []
    monkeypatch.setattr(TlsContexts, "check", lambda _self, configs: tried.append(configs))

    async def scenario() -> None:
        async with guarded_node() as (_, administrator, connection):

            async def alter(value: str) -> ErrorCode:
                change = incremental.AlterableConfig(name="log.retention.ms", config_operation=i8(0), value=value)
                resource = incremental.AlterConfigsResource(
                    resource_type=i8(OF_BROKER), resource_name=NODE, configs=(change,)
                )
                answer: Any = await connection.call(
                    incremental.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=True)
                )
                (code,) = of_responses(answer)
                return code

            assert await alter("no number") is INVALID
            assert await alter("1") is CLUSTER
            assert not tried
            await administrator.allow(cluster(ALTER_CONFIGS))
            assert await alter("1") is NONE
            assert len(tried) == 1

    run(scenario)
