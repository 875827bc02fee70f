"""Topics, their partitions, replicas and reassignments, by Confluent's REST API."""

from __future__ import annotations

from rest_node import BROKER, RestNode, names, run_with

from penstock.protocol.ids import NodeId
from penstock.protocol.structs import replace
from penstock.quorum.metadata.image import MetadataImage


def with_fenced_broker(image: MetadataImage) -> MetadataImage:
    brokers = {key: replace(broker, is_fenced=True) for key, broker in image.brokers.items()}
    return replace(image, brokers=brokers)


def with_moving_partition(image: MetadataImage, name: str, index: int) -> MetadataImage:
    topic = image.topics.by_name[name]
    partitions = list(topic.partitions)
    partitions[index] = replace(partitions[index], adding_replicas=(NodeId(7),), removing_replicas=(NodeId(BROKER),))
    by_name = image.topics.by_name.evolve(put={name: replace(topic, partitions=tuple(partitions))})
    return replace(image, topics=replace(image.topics, by_name=by_name))


def test_a_topic_is_created_described_and_deleted() -> None:
    async def test(node: RestNode) -> None:
        body = {
            "topic_name": "t",
            "partitions_count": 2,
            "replication_factor": 1,
            "configs": [{"name": "retention.ms", "value": "5"}],
        }
        created = await node.ask("POST", "/topics", body, status=201)
        own = f"{node.root}/topics/t"
        assert created["kind"] == "KafkaTopic"
        assert created["metadata"]["self"].endswith(own)
        assert created["metadata"]["resource_name"] == f"crn:///kafka={node.cluster_id}/topic=t"
        assert (created["topic_name"], created["partitions_count"], created["replication_factor"]) == ("t", 2, 1)
        assert created["is_internal"] is False
        assert created["partitions"]["related"].endswith(own + "/partitions")
        assert created["configs"]["related"].endswith(own + "/configs")
        assert created["partition_reassignments"]["related"].endswith(own + "/partitions/-/reassignment")
        assert await node.get("/topics/t") == created
        assert (await node.get("/topics/t/configs/retention.ms"))["value"] == "5"
        listed = await node.get("/topics")
        assert listed["kind"] == "KafkaTopicList"
        assert listed["data"] == [created]
        assert listed["metadata"]["next"] is None
        await node.ask("DELETE", "/topics/t", status=204)
        assert await node.refused("GET", "/topics/t", status=404) == "UNKNOWN_TOPIC_OR_PARTITION"

    run_with(test)


def test_a_topic_may_name_the_replicas_of_each_partition() -> None:
    async def test(node: RestNode) -> None:
        assignments = {"0": [BROKER], "1": [BROKER]}
        body = {"topic_name": "t", "replicas_assignments": assignments}
        created = await node.ask("POST", "/topics", body, status=201)
        assert (created["partitions_count"], created["replication_factor"]) == (2, 1)
        listed = [{"partition_id": index, "broker_ids": [BROKER]} for index in range(3)]
        created = await node.ask("POST", "/topics", {"topic_name": "l", "replicas_assignments": listed}, status=201)
        assert created["partitions_count"] == 3
        twice = {"topic_name": "u", "replicas_assignments": [listed[0], *listed]}
        assert await node.refused("POST", "/topics", twice, status=400) == "INVALID_REPLICA_ASSIGNMENT"
        both = {**body, "topic_name": "u", "partitions_count": 2}
        assert await node.refused("POST", "/topics", both, status=400) == "INVALID_REQUEST"

    run_with(test)


def test_validate_only_creates_nothing() -> None:
    async def test(node: RestNode) -> None:
        body = {"topic_name": "t", "partitions_count": 3, "validate_only": True}
        described = await node.ask("POST", "/topics", body, status=200)
        assert (described["partitions_count"], described["topic_id"]) == (3, None)
        assert (await node.get("/topics"))["data"] == []

    run_with(test)


def test_what_kafka_refuses_has_its_code() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t")
        for body, error in (
            ({"topic_name": "t"}, "TOPIC_ALREADY_EXISTS"),
            ({"topic_name": "a b"}, "INVALID_TOPIC_EXCEPTION"),
            ({"topic_name": "u", "replication_factor": 3}, "INVALID_REPLICATION_FACTOR"),
            ({"topic_name": "u", "configs": [{"name": "nothing", "value": "1"}]}, "INVALID_CONFIG"),
            ({"topic_name": "u", "partitions_count": 0}, "Bad Request"),
            ({"topic_name": "u", "replication_factor": 40_000}, "Bad Request"),
            ({}, "Bad Request"),
        ):
            assert await node.refused("POST", "/topics", body, status=400) == error, body
        assert await node.refused("DELETE", "/topics/u", status=404) == "UNKNOWN_TOPIC_OR_PARTITION"
        patched = await node.refused("PATCH", "/topics/u", {"partitions_count": 2}, status=404)
        assert patched == "UNKNOWN_TOPIC_OR_PARTITION"
        assert await node.refused("PATCH", "/topics/t", {"partitions_count": 1}, status=400) == "INVALID_PARTITIONS"

    run_with(test)


def test_another_cluster_is_not_here() -> None:
    async def test(node: RestNode) -> None:
        answer = await node.session.get("/v3/clusters/other/topics")
        assert answer.status == 404
        assert "other" in (await answer.json(content_type=None))["detail"]

    run_with(test)


def test_partitions_are_added() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t")
        assert (await node.ask("PATCH", "/topics/t", {"partitions_count": 4}))["partitions_count"] == 4
        assert names(await node.get("/topics/t/partitions"), "partition_id") == [0, 1, 2, 3]

    run_with(test)


def test_operations_are_told_where_they_are_asked_for() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t")
        assert "authorized_operations" not in await node.get("/topics/t")
        described = await node.get("/topics/t?include_authorized_operations=true")
        assert {"READ", "WRITE", "DELETE", "ALTER_CONFIGS"} <= set(described["authorized_operations"])

    run_with(test)


def test_partitions_and_replicas_name_each_other() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t", 2)
        partition = await node.get("/topics/t/partitions/1")
        own = f"{node.root}/topics/t/partitions/1"
        assert partition["kind"] == "KafkaPartition"
        assert partition["leader"]["related"].endswith(f"{own}/replicas/{BROKER}")
        assert partition["replicas"]["related"].endswith(f"{own}/replicas")
        crn = f"crn:///kafka={node.cluster_id}/topic=t/partition=1"
        assert partition["metadata"]["resource_name"] == crn
        replica = await node.get(f"/topics/t/partitions/1/replicas/{BROKER}")
        assert replica["metadata"]["resource_name"] == f"{crn}/replica={BROKER}"
        assert (replica["is_leader"], replica["is_in_sync"]) == (True, True)
        assert replica["broker"]["related"].endswith(f"/brokers/{BROKER}")
        assert (await node.get("/topics/t/partitions/1/replicas"))["data"] == [replica]
        of_broker = await node.get(f"/brokers/{BROKER}/partition-replicas?page_size=1")
        assert names(of_broker, "partition_id") == [0]
        following = await node.session.get(of_broker["metadata"]["next"])
        assert (await following.json())["data"] == [replica]
        for path in (
            "/topics/t/partitions/2",
            "/topics/u/partitions/0",
            "/topics/t/partitions/0/replicas/9",
            "/topics/t/partitions/x",
        ):
            await node.get(path, status=404)

    run_with(test)


def test_offsets_and_the_status_of_replicas_come_from_the_brokers() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t", 2)
        await node.produce("t", *[{"partition_id": 1, "value": {"type": "STRING", "data": "x"}}] * 3)
        offsets = await node.get("/topics/t/partitions/1/offset")
        assert (offsets["earliest_offset"], offsets["latest_offset"]) == (0, 3)
        earliest = await node.get("/topics/t/partitions/1/offset?offset_type=earliest")
        assert (earliest["earliest_offset"], earliest["latest_offset"]) == (0, None)
        await node.get("/topics/t/partitions/1/offset?offset_type=middle", status=400)
        (status,) = (await node.get("/topics/t/partitions/1/replica-status"))["data"]
        assert (status["log_start_offset"], status["log_end_offset"], status["lag"]) == (0, 3, 0)
        assert (status["is_leader"], status["is_in_isr"], status["is_caught_up"]) == (True, True, True)
        assert names(await node.get("/topics/t/partitions/-/replica-status"), "log_end_offset") == [0, 3]

    run_with(test)


def test_what_a_fenced_broker_would_tell_is_null_with_the_reason() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t")
        node.node.metadata.image = with_fenced_broker(node.node.metadata.image)
        (status,) = (await node.get("/topics/t/partitions/0/replica-status"))["data"]
        assert (status["log_end_offset"], status["lag"], status["is_caught_up"]) == (None, None, None)
        assert status["reason"] == f"Broker {BROKER} is fenced or not registered."
        (broker,) = (await node.get("/brokers"))["data"]
        assert broker["is_fenced"] is True
        configs = await node.get("/brokers/-/configs")
        assert configs["data"] == []
        assert configs["metadata"]["unavailable"] == [
            {"source": f"broker {BROKER}", "error_code": 8, "message": f"Broker {BROKER} is fenced."}
        ]

    run_with(test)


def test_reassignments_are_those_that_go_on() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t", 3)
        for path in ("/topics/-/partitions/-/reassignment", "/topics/t/partitions/-/reassignment"):
            assert (await node.get(path))["data"] == []
        refused = await node.refused("GET", "/topics/t/partitions/1/reassignment", status=404)
        assert refused == "NO_REASSIGNMENT_IN_PROGRESS"
        node.node.metadata.image = with_moving_partition(node.node.metadata.image, "t", 1)
        moving = await node.get("/topics/t/partitions/1/reassignment")
        assert (moving["kind"], moving["adding_replicas"], moving["removing_replicas"]) == (
            "KafkaReassignment",
            [7],
            [BROKER],
        )
        assert moving["metadata"]["resource_name"].endswith("/topic=t/partition=1/reassignment")
        for path in ("/topics/-/partitions/-/reassignment", "/topics/t/partitions/-/reassignment"):
            assert (await node.get(path))["data"] == [moving]

    run_with(test)


def test_pages_follow_each_other_and_miss_nothing() -> None:
    async def test(node: RestNode) -> None:
        for number in range(7):
            await node.create(f"t/{number}".replace("/", "-"))
        found: list[str] = []
        path = f"{node.root}/topics?page_size=3"
        pages = 0
        while path:
            answer = await (await node.session.get(path)).json()
            found += names(answer, "topic_name")
            path = answer["metadata"]["next"]
            pages += 1
        assert (found, pages) == ([f"t-{number}" for number in range(7)], 3)
        # As many as a page has, and no empty one behind it.
        assert (await node.get("/topics?page_size=7"))["metadata"]["next"] is None
        for query in ("page_size=0", "page_size=10001", "page_size=x", "page_token=%21", "page_token=e30="):
            await node.get(f"/topics?{query}", status=400)

    run_with(test)


def test_the_status_of_all_replicas_has_pages_across_topics() -> None:
    async def test(node: RestNode) -> None:
        await node.create("b", 2)
        await node.create("a", 3)
        whole = (await node.get("/topics/-/partitions/-/replica-status"))["data"]
        places = [(one["topic_name"], one["partition_id"]) for one in whole]
        assert places == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)]
        found: list[object] = []
        page = await node.get("/topics/-/partitions/-/replica-status?page_size=2")
        while True:
            assert len(page["data"]) <= 2
            found += page["data"]
            if page["metadata"]["next"] is None:
                break
            async with node.session.get(page["metadata"]["next"]) as answer:
                page = await answer.json()
        assert found == whole

    run_with(test)
