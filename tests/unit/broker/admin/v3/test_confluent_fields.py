"""Answers have what Confluent's document of its REST API v3 requires, as clients that others wrote expect it.

The table is our own, made by reading that document: by `kind`, the fields that are required and may not be null.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from rest_node import BROKER, RestNode, run_with

from penstock.protocol.ids import NodeId
from penstock.protocol.structs import replace

PROPERTIES: Final = {"offsets_topic_num_partitions": "1", "group_consumer_assignment_interval_ms": "0"}
JSON: Final = {"Accept": "application/json"}

CONFIG: Final = "cluster_id name is_default is_read_only is_sensitive source synonyms"
MEMBER: Final = "cluster_id consumer_group_id consumer_id"
PLACE: Final = "cluster_id topic_name partition_id"
REQUIRED: Final = {
    "KafkaCluster": "cluster_id acls brokers broker_configs consumer_groups topics partition_reassignments",
    "KafkaClusterConfig": f"{CONFIG} config_type",
    "KafkaBroker": "cluster_id broker_id configs partition_replicas",
    "KafkaBrokerConfig": f"{CONFIG} broker_id",
    "KafkaTopic": (
        "cluster_id topic_name is_internal replication_factor partitions_count partitions configs "
        "partition_reassignments"
    ),
    "KafkaTopicConfig": f"{CONFIG} topic_name",
    "KafkaTopicDefaultConfig": f"{CONFIG} topic_name",
    "KafkaPartition": f"{PLACE} replicas reassignment",
    "KafkaPartitionWithOffsets": f"{PLACE} earliest_offset latest_offset",
    "KafkaReplica": f"{PLACE} broker_id is_leader is_in_sync broker",
    "KafkaReplicaStatus": (
        f"{PLACE} broker_id is_leader is_observer is_isr_eligible is_in_isr is_caught_up log_start_offset "
        "log_end_offset"
    ),
    "KafkaReassignment": f"{PLACE} adding_replicas removing_replicas replicas",
    "KafkaConsumerGroup": (
        "cluster_id consumer_group_id is_simple partition_assignor state type is_mixed_consumer_group coordinator "
        "consumers lag_summary"
    ),
    "KafkaConsumer": f"{MEMBER} client_id assignments",
    "KafkaConsumerAssignment": f"{MEMBER} topic_name partition_id partition lag",
    "KafkaConsumerLag": f"{MEMBER} topic_name partition_id current_offset log_end_offset lag client_id",
    "KafkaConsumerGroupLagSummary": (
        "cluster_id consumer_group_id max_lag_consumer_id max_lag_client_id max_lag_topic_name max_lag_partition_id "
        "max_lag total_lag max_lag_consumer max_lag_partition"
    ),
}
OPTIONAL: Final = {"KafkaCluster": "controller", "KafkaPartition": "leader"}
"""Not null where they are there."""
RELATED: Final = (
    "controller acls brokers broker_configs consumer_groups topics partition_reassignments configs partition_replicas "
    "partitions replicas reassignment leader broker coordinator consumers lag_summary assignments partition "
    "max_lag_consumer max_lag_partition"
)
"""Are objects that say where something else is."""
PATHS: Final = {
    "": "KafkaCluster",
    "/broker-configs": "KafkaClusterConfig",
    "/broker-configs/max.connections": "KafkaClusterConfig",
    "/brokers": "KafkaBroker",
    f"/brokers/{BROKER}": "KafkaBroker",
    "/brokers/-/configs": "KafkaBrokerConfig",
    f"/brokers/{BROKER}/configs": "KafkaBrokerConfig",
    f"/brokers/{BROKER}/configs/num.io.threads": "KafkaBrokerConfig",
    f"/brokers/{BROKER}/partition-replicas": "KafkaReplica",
    "/topics": "KafkaTopic",
    "/topics/t": "KafkaTopic",
    "/topics/-/configs": "KafkaTopicConfig",
    "/topics/t/configs": "KafkaTopicConfig",
    "/topics/t/configs/retention.ms": "KafkaTopicConfig",
    "/topics/t/default-configs": "KafkaTopicDefaultConfig",
    "/topics/t/partitions": "KafkaPartition",
    "/topics/t/partitions/0": "KafkaPartition",
    "/topics/t/partitions/0/offset": "KafkaPartitionWithOffsets",
    "/topics/t/partitions/0/offset?offset_type=earliest_and_latest": "KafkaPartitionWithOffsets",
    "/topics/t/partitions/0/replicas": "KafkaReplica",
    f"/topics/t/partitions/0/replicas/{BROKER}": "KafkaReplica",
    "/topics/-/partitions/-/replica-status": "KafkaReplicaStatus",
    "/topics/t/partitions/-/replica-status": "KafkaReplicaStatus",
    "/topics/t/partitions/0/replica-status": "KafkaReplicaStatus",
    "/topics/-/partitions/-/reassignment": "KafkaReassignment",
    "/topics/t/partitions/-/reassignment": "KafkaReassignment",
    "/topics/t/partitions/0/reassignment": "KafkaReassignment",
    "/consumer-groups": "KafkaConsumerGroup",
    "/consumer-groups/g": "KafkaConsumerGroup",
    "/consumer-groups/g/consumers": "KafkaConsumer",
    "/consumer-groups/g/consumers/m": "KafkaConsumer",
    "/consumer-groups/g/consumers/m/assignments": "KafkaConsumerAssignment",
    "/consumer-groups/g/consumers/m/assignments/t/partitions/0": "KafkaConsumerAssignment",
    "/consumer-groups/without-members/lags": "KafkaConsumerLag",
    "/consumer-groups/without-members/lags/t/partitions/0": "KafkaConsumerLag",
    "/consumer-groups/without-members/lag-summary": "KafkaConsumerGroupLagSummary",
}
NOT_SERVED_HERE: Final = frozenset({"/acls", "/records"})
"""Of the paths that are read: `test_acls.py` has ACLs, and reading records is our own."""


def check_resource(resource: Any, kind: str) -> None:
    assert resource["kind"] == kind
    assert isinstance(resource["metadata"]["self"], str)
    assert resource["metadata"]["resource_name"].startswith("crn:///kafka=")
    for name in REQUIRED[kind].split():
        assert resource[name] is not None, (kind, name)
    for name in OPTIONAL.get(kind, "").split():
        assert resource.get(name, "absent") is not None, (kind, name)
    for name in resource.keys() & set(RELATED.split()):
        assert isinstance(resource[name]["related"], str), (kind, name)


def check_answer(answer: Any, kind: str, path: str) -> None:
    if "data" not in answer:
        check_resource(answer, kind)
        return
    assert answer["kind"] == f"{kind}List", path
    assert isinstance(answer["metadata"]["self"], str)
    assert answer["metadata"]["next"] is None
    assert answer["data"], path
    for resource in answer["data"]:
        check_resource(resource, kind)


async def fill(node: RestNode) -> None:
    """A topic that moves, a group with a member, and one without that has committed."""
    await node.create("t", 2)
    await node.produce("t", {"partition_id": 0, "value": {"type": "STRING", "data": "x"}})
    await node.commit("without-members", "t", {0: 0})
    await node.join("g", "t", "m")
    await node.ask("PUT", "/broker-configs/max.connections", {"value": "5000"}, status=204)
    image = node.node.metadata.image
    topic = image.topics.by_name["t"]
    moving = replace(topic.partitions[0], adding_replicas=(NodeId(7),), removing_replicas=(NodeId(BROKER),))
    by_name = image.topics.by_name.evolve(put={"t": replace(topic, partitions=(moving, *topic.partitions[1:]))})
    node.node.metadata.image = replace(image, topics=replace(image.topics, by_name=by_name))


@pytest.mark.parametrize("prefix", ["", "/kafka"])
def test_every_answer_has_the_fields_that_confluent_requires(prefix: str) -> None:
    async def test(node: RestNode) -> None:
        await fill(node)
        url = node.session._base_url
        assert url is not None
        base = f"{str(url).rstrip('/')}{prefix}/v3/clusters"
        async with node.session.get(f"{prefix}/v3/clusters", headers=JSON) as answer:
            check_answer(await answer.json(), "KafkaCluster", "")
        for path, kind in PATHS.items():
            async with node.session.get(f"{prefix}{node.root}{path}", headers=JSON) as answer:
                assert (answer.status, answer.content_type) == (200, "application/json"), path
                found = await answer.json()
            check_answer(found, kind, path)
            # Clients follow these, by the prefix with which they came.
            plain = f"{base}/{node.cluster_id}{path}".partition("?")[0]
            assert found["metadata"]["self"] == plain

    run_with(test, **PROPERTIES)


def test_every_path_that_is_read_is_in_the_table() -> None:
    async def test(node: RestNode) -> None:
        paths = (await (await node.session.get("/openapi.json")).json())["paths"]
        root = "/v3/clusters/{cluster_id}"
        read = {path.removeprefix(root) for path, methods in paths.items() if path.startswith(root) if "get" in methods}
        names = {
            "t": "{topic_name}",
            "0": "{partition_id}",
            str(BROKER): "{broker_id}",
            "g": "{consumer_group_id}",
            "without-members": "{consumer_group_id}",
            "m": "{consumer_id}",
            "max.connections": "{name}",
            "num.io.threads": "{name}",
            "retention.ms": "{name}",
        }
        asked = {"/".join(names.get(one, one) for one in path.partition("?")[0].split("/")) for path in PATHS}
        assert {path for path in read - asked if not path.endswith(tuple(NOT_SERVED_HERE))} == set()
        assert asked <= read

    run_with(test)


def test_an_error_is_json_with_the_number_of_confluent_for_who_reads_nothing_else() -> None:
    async def test(node: RestNode) -> None:
        for path, status, number in (
            (f"{node.root}/topics/none", 404, 40403),
            (f"/kafka{node.root}/topics/none", 404, 40403),
            (f"{node.root}/topics?page_size=none", 400, 400),
            (f"{node.root}/nothing", 404, 404),
            (f"{node.root}/consumer-groups/none", 404, 404),
            (f"{node.root}/acls", 501, 501),
        ):
            async with node.session.get(path, headers=JSON) as answer:
                assert (answer.status, answer.content_type) == (status, "application/json")
                error = await answer.json()
            assert error.keys() == {"error_code", "message"}
            assert error["error_code"] == number, path
        async with node.session.get(f"{node.root}/topics/none") as answer:
            assert answer.content_type == "application/problem+json"
            assert (await answer.json(content_type=None))["error_code"] == 3

    run_with(test)


def test_a_topic_that_is_created_below_the_prefix_is_found_there() -> None:
    async def test(node: RestNode) -> None:
        path = f"/kafka{node.root}/topics"
        async with node.session.post(path, json={"topic_name": "t"}, headers=JSON) as answer:
            assert answer.status == 201
            place = answer.headers["Location"]
        assert place.endswith(f"{path}/t")
        async with node.session.get(place, headers=JSON) as answer:
            check_resource(await answer.json(), "KafkaTopic")

    run_with(test)


def test_records_have_the_fields_that_confluent_requires() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t")
        record = {"key": {"type": "STRING", "data": "k"}, "value": {"type": "JSON", "data": {"n": 1}}}
        (produced,) = await node.produce("t", record)
        assert produced["error_code"] == 200
        batch = {"entries": [{"id": "1", **record}, {"id": "2", "partition_id": 9}]}
        answered = await node.ask("POST", "/topics/t/records:batch", batch, status=207)
        (success,), (failure,) = answered["successes"], answered["failures"]
        for one in (produced, success):
            for name in ("cluster_id", "topic_name", "partition_id", "offset", "timestamp"):
                assert one[name] is not None, name
            assert (one["key"]["type"], one["value"]["type"]) == ("STRING", "JSON")
        assert (success["id"], failure["id"]) == ("1", "2")
        assert failure["error_code"] is not None

    run_with(test)
