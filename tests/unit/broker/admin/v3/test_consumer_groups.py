"""Consumer groups, their members and lags, by Confluent's REST API."""

from __future__ import annotations

import pytest
from rest_node import BROKER, RestNode, names, run_with

from penstock.broker.admin.v3.consumer_lags import PLACES_MAX
from penstock.broker.admin.v3.group_descriptions import state_name
from penstock.protocol.ids import NodeId
from penstock.protocol.structs import replace

PROPERTIES = {"offsets_topic_num_partitions": "2", "group_consumer_assignment_interval_ms": "0"}
RECORD = {"partition_id": 0, "value": {"type": "STRING", "data": "x"}}


def test_a_group_without_members_is_described_by_its_commits() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t", 2)
        await node.produce("t", *[RECORD] * 5, {**RECORD, "partition_id": 1})
        await node.commit("g", "t", {0: 2, 1: 1})
        group = await node.get("/consumer-groups/g")
        assert (group["kind"], group["state"], group["type"]) == ("KafkaConsumerGroup", "EMPTY", "CLASSIC")
        assert (group["is_simple"], group["is_mixed_consumer_group"]) == (True, False)
        assert group["metadata"]["resource_name"] == f"crn:///kafka={node.cluster_id}/consumer-group=g"
        assert group["coordinator"]["related"].endswith(f"/brokers/{BROKER}")
        assert (await node.get("/consumer-groups"))["data"] == [group]
        assert (await node.get("/consumer-groups/g/consumers"))["data"] == []
        lags = (await node.get("/consumer-groups/g/lags"))["data"]
        assert [(one["partition_id"], one["current_offset"], one["log_end_offset"], one["lag"]) for one in lags] == [
            (0, 2, 5, 3),
            (1, 1, 1, 0),
        ]
        assert (lags[0]["consumer_id"], lags[0]["client_id"], lags[0]["instance_id"]) == ("", "", None)
        assert lags[0]["metadata"]["resource_name"].endswith("/consumer-group=g/lag=t/partition=0")
        assert await node.get("/consumer-groups/g/lags/t/partitions/0") == lags[0]
        summary = await node.get("/consumer-groups/g/lag-summary")
        assert (summary["max_lag"], summary["total_lag"], summary["unknown_partitions"]) == (3, 3, 0)
        assert (summary["max_lag_topic_name"], summary["max_lag_partition_id"]) == ("t", 0)
        assert summary["max_lag_consumer"]["related"].endswith("/consumer-groups/g/consumers")
        assert summary["max_lag_partition"]["related"].endswith("/topics/t/partitions/0")

    run_with(test, **PROPERTIES)


def test_members_and_their_assignments_are_described() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t", 2)
        await node.join("g", "t", "m")
        group = await node.get("/consumer-groups/g")
        assert (group["type"], group["is_simple"], group["partition_assignor"]) == ("CONSUMER", False, "uniform")
        assert (await node.get("/consumer-groups"))["data"] == [group]
        (member,) = (await node.get("/consumer-groups/g/consumers"))["data"]
        assert (member["consumer_id"], member["instance_id"]) == ("m", None)
        assert await node.get("/consumer-groups/g/consumers/m") == member
        assert member["assignments"]["related"].endswith("/consumer-groups/g/consumers/m/assignments")
        path = "/consumer-groups/g/consumers/m/assignments"
        assignments = (await node.get(path))["data"]
        assert [(one["topic_name"], one["partition_id"]) for one in assignments] == [("t", 0), ("t", 1)]
        assert await node.get(f"{path}/t/partitions/1") == assignments[1]
        assert assignments[1]["lag"]["related"].endswith("/consumer-groups/g/lags/t/partitions/1")
        await node.get(f"{path}/t/partitions/2", status=404)
        assert await node.refused("GET", "/consumer-groups/g/consumers/n", status=404) == "Not Found"
        # It has committed nothing.
        assert (await node.get("/consumer-groups/g/lags"))["data"] == []
        await node.get("/consumer-groups/g/lag-summary", status=404)
        await node.get("/consumer-groups/g/lags/t/partitions/0", status=404)

    run_with(test, **PROPERTIES)


@pytest.mark.thorough
def test_commits_are_found_among_many_partitions() -> None:
    async def test(node: RestNode) -> None:
        await node.create("many", PLACES_MAX + 100)
        await node.create("t")
        await node.commit("g", "many", {5: 0, PLACES_MAX + 50: 0})
        await node.commit("g", "t", {0: 0})
        lags = (await node.get("/consumer-groups/g/lags"))["data"]
        places = [(one["topic_name"], one["partition_id"]) for one in lags]
        assert places == [("many", 5), ("many", PLACES_MAX + 50), ("t", 0)]
        one = await node.get(f"/consumer-groups/g/lags/many/partitions/{PLACES_MAX + 50}")
        assert one == lags[1]
        await node.get("/consumer-groups/g/lags/many/partitions/6", status=404)

    run_with(test, **PROPERTIES)


def test_groups_are_paged_by_id() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t")
        for group in ("c", "a", "b"):
            await node.commit(group, "t", {0: 0})
        first = await node.get("/consumer-groups?page_size=2")
        assert names(first, "consumer_group_id") == ["a", "b"]
        second = await (await node.session.get(first["metadata"]["next"])).json()
        assert names(second, "consumer_group_id") == ["c"]
        assert second["metadata"]["next"] is None

    run_with(test, **PROPERTIES)


def test_a_group_that_does_not_exist_is_not_found_and_creates_nothing() -> None:
    async def test(node: RestNode) -> None:
        for path in ("", "/consumers", "/consumers/m", "/lags", "/lag-summary", "/lags/t/partitions/0"):
            assert await node.refused("GET", f"/consumer-groups/g{path}", status=404) == "GROUP_ID_NOT_FOUND"
        assert (await node.get("/consumer-groups"))["data"] == []
        assert (await node.get("/topics"))["data"] == []
        await node.create("t")
        await node.commit("other", "t", {0: 0})
        assert await node.refused("GET", "/consumer-groups/g", status=404) == "GROUP_ID_NOT_FOUND"

    run_with(test, **PROPERTIES)


def test_a_lag_that_is_not_known_is_null_with_the_reason() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t", 2)
        await node.produce("t", RECORD)
        await node.commit("g", "t", {0: 0, 1: 0})
        image = node.node.metadata.image
        topic = image.topics.by_name["t"]
        led, lost = topic.partitions
        topic = replace(topic, partitions=(led, replace(lost, leader=NodeId(-1))))
        topics = replace(
            image.topics,
            by_name=image.topics.by_name.evolve(put={"t": topic}),
            by_id=image.topics.by_id.evolve(put={topic.topic_id: topic}),
        )
        node.node.metadata.image = replace(image, topics=topics)
        known, unknown = (await node.get("/consumer-groups/g/lags"))["data"]
        assert (known["lag"], known["reason"]) == (1, None)
        assert (unknown["log_end_offset"], unknown["lag"]) == (None, None)
        assert unknown["reason"] == "Partition t-1 has no leader."
        assert await node.refused("GET", "/consumer-groups/g/lags/t/partitions/1", status=503) == "LEADER_NOT_AVAILABLE"
        summary = await node.get("/consumer-groups/g/lag-summary")
        assert (summary["total_lag"], summary["unknown_partitions"]) == (1, 1)
        partition = await node.get("/topics/t/partitions/1")
        assert "leader" not in partition

    run_with(test, **PROPERTIES)


def test_groups_whose_coordinator_is_gone_are_told_as_missing() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t")
        await node.commit("g", "t", {0: 0})
        image = node.node.metadata.image
        topic = image.topics.by_name["__consumer_offsets"]
        partitions = tuple(replace(one, leader=NodeId(-1)) for one in topic.partitions)
        by_name = image.topics.by_name.evolve(put={topic.name: replace(topic, partitions=partitions)})
        node.node.metadata.image = replace(image, topics=replace(image.topics, by_name=by_name))
        missing = (await node.get("/consumer-groups"))["metadata"]["unavailable"]
        assert [one["source"] for one in missing] == [
            "partition __consumer_offsets-0",
            "partition __consumer_offsets-1",
        ]
        assert await node.refused("GET", "/consumer-groups/g", status=503) == "COORDINATOR_NOT_AVAILABLE"

    run_with(test, **PROPERTIES)


def test_states_have_confluents_names() -> None:
    assert [state_name(one) for one in ("Stable", "PreparingRebalance", "CompletingRebalance", "Dead")] == [
        "STABLE",
        "PREPARING_REBALANCE",
        "COMPLETING_REBALANCE",
        "DEAD",
    ]
