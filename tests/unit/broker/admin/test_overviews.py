"""/v1/nodes, /v1/topics and /v1/configs at one node."""

from __future__ import annotations

from typing import Any

import pytest
from admin_http import asked
from memory_node import World, create_topic, produce, run

from penstock.broker.admin.broker_answers import PARTITIONS_ASKED_MAX
from penstock.broker.admin.node_ports import NodePorts
from penstock.broker.network.request import RequestContext
from penstock.protocol.apis import ApiKey


def test_a_node_tells_what_it_is_and_has() -> None:
    async def scenario() -> None:
        async with asked(World(broker_rack="left")) as (node, connection, http):
            await create_topic(connection, "t", 3)
            await produce(connection, "t", b"x" * 100)
            told = await (await http.get("/v1/nodes?sizes=true")).json()
            (one,) = told["nodes"]
            assert (told["cluster_id"], told["quorum_leader_id"]) == (node.metadata.image.cluster_id, one["node_id"])
            assert (one["roles"], one["rack"], one["state"]) == (["broker", "controller"], "left", "running")
            assert (one["leader_count"], one["replica_count"], one["out_of_sync_count"]) == (3, 3, 0)
            assert one["endpoints"][0]["port"] == node.bound_ports["PLAINTEXT"]
            (directory,) = one["log_dirs"]
            assert (directory["path"], directory["error"]) == ("/data", None)
            assert directory["log_bytes"] > 100
            assert one["unanswered"] is None
            without = await (await http.get("/v1/nodes")).json()
            assert without["nodes"][0]["log_dirs"][0]["log_bytes"] is None

    run(scenario)


def test_topics_come_in_pages_with_what_leaders_know() -> None:
    async def scenario() -> None:
        async with asked(World()) as (_, connection, http):
            for name in ("a", "b", "c"):
                await create_topic(connection, name, 2)
            for _ in range(3):
                await produce(connection, "b", b"x")
            first = await (await http.get("/v1/topics?page_size=2")).json()
            assert ([one["name"] for one in first["topics"]], first["next"]) == (["a", "b"], "b")
            empty, written = first["topics"]
            assert (empty["high_watermarks"], empty["records"], empty["size_bytes"]) == (0, 0, 0)
            assert (written["high_watermarks"], written["records"], written["is_complete"]) == (3, 3, True)
            assert written["size_bytes"] > 0
            assert written["partitions"] is None
            last = await (await http.get("/v1/topics", params={"page_size": 2, "page_token": "b"})).json()
            assert ([one["name"] for one in last["topics"]], last["next"]) == (["c"], None)
            without = await (await http.get("/v1/topics?offsets=false")).json()
            assert without["topics"][1]["high_watermarks"] is None
            assert (await http.get("/v1/topics?page_size=0")).status == 400

    run(scenario)


def test_one_topic_has_its_partitions() -> None:
    async def scenario() -> None:
        async with asked(World()) as (node, connection, http):
            await create_topic(connection, "t", 3)
            await produce(connection, "t", b"x", 1)
            told = await (await http.get("/v1/topics?topic=t&page_size=2")).json()
            (topic,) = told["topics"]
            assert (topic["partition_count"], told["next"]) == (3, "1")
            second = topic["partitions"][1]
            own = node.config.node_id
            assert (second["leader"], second["isr"], second["replicas"]) == (own, [own], [own])
            assert (second["high_watermark"], second["log_start_offset"]) == (1, 0)
            rest = await (await http.get("/v1/topics?topic=t&page_size=2&page_token=1")).json()
            assert [one["partition"] for one in rest["topics"][0]["partitions"]] == [2]
            assert rest["next"] is None
            assert (await http.get("/v1/topics?topic=t&page_token=x")).status == 400
            assert (await http.get("/v1/topics?topic=u")).status == 404

    run(scenario)


@pytest.mark.parametrize("question", ["?topic=t&page_size=1000", "?include_internal=true"])
def test_a_leader_is_asked_for_a_bounded_number_of_partitions_at_once(
    question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 2 * PARTITIONS_ASKED_MAX + 50
    asked_for: dict[int, list[int]] = {}

    async def ask_broker(
        self: NodePorts, broker_id: int, message: Any, answer: type[Any], context: RequestContext
    ) -> Any:
        size = sum(len(topic.partitions) for topic in message.topics)
        asked_for.setdefault(int(message.__api_key__), []).append(size)
        return await really_ask(self, broker_id, message, answer, context)

    really_ask = NodePorts.ask_broker
    monkeypatch.setattr(NodePorts, "ask_broker", ask_broker)

    async def scenario() -> None:
        async with asked(World()) as (node, connection, http):
            await create_topic(connection, "t", count)
            await node.parts.partitions.settled()
            await produce(connection, "t", b"x", count - 1)
            told = await (await http.get(f"/v1/topics{question}")).json()
            (topic,) = told["topics"]
            assert (topic["is_complete"], topic["high_watermarks"]) == (True, 1)
            if topic["partitions"] is not None:
                assert [one["high_watermark"] for one in topic["partitions"]] == [0] * (count - 1) + [1]

    run(scenario)
    slices = [PARTITIONS_ASKED_MAX, PARTITIONS_ASKED_MAX, 50]
    assert asked_for[ApiKey.DESCRIBE_LOG_DIRS] == slices
    assert sorted(asked_for[ApiKey.LIST_OFFSETS]) == sorted(slices * 2)


def test_configs_come_with_what_they_mean() -> None:
    async def scenario() -> None:
        async with asked(World(log_level="WARN")) as (node, connection, http):
            await create_topic(connection, "t", retention_ms="5000")
            told = await (await http.get("/v1/configs/topic/t?keys=retention.ms,cleanup.policy")).json()
            cleanup, retention = told["configs"]
            assert (retention["value"], retention["source"], retention["type"]) == (
                "5000",
                "DYNAMIC_TOPIC_CONFIG",
                "LONG",
            )
            assert (retention["default"], retention["is_default"]) == ("604800000", False)
            assert "retain" in retention["documentation"]
            assert cleanup["is_default"]
            own = node.config.node_id
            told = await (await http.get(f"/v1/configs/broker/{own}")).json()
            by_name = {one["name"]: one for one in told["configs"]}
            assert by_name["num.network.threads"]["update_mode"] == "cluster-wide"
            level = by_name["log.level"]
            assert (level["value"], level["default"], level["is_penstock"]) == ("WARN", "INFO", True)
            assert level["documentation"].startswith("From which level")
            reserve = by_name["log.dir.reserve.bytes"]
            assert (reserve["value"], reserve["is_default"], reserve["type"]) == ("-1", True, "LONG")
            secret = by_name["cluster.secret"]
            assert (secret["value"], secret["is_sensitive"]) == (None, True)
            await http.put(f"/v1/brokers/{own}/maintenance", json={})
            told = await (await http.get(f"/v1/configs/broker/{own}?keys=broker.drained&documentation=false")).json()
            (drained,) = told["configs"]
            assert (drained["value"], drained["is_penstock"], drained["documentation"]) == ("true", True, None)
            (default,) = (await (await http.get("/v1/configs/broker-defaults")).json())["configs"]
            assert (default["name"], default["source"]) == ("min.insync.replicas", "DYNAMIC_DEFAULT_BROKER_CONFIG")
            assert (await http.get("/v1/configs/group/g")).status == 200
            assert (await http.get("/v1/configs/topic/u")).status == 404
            assert (await http.get("/v1/configs/broker/77")).status == 404
            assert (await http.get("/v1/configs/other/t")).status == 404

    run(scenario)


def test_configs_are_set_and_unset_together_or_not_at_all() -> None:
    async def scenario() -> None:
        async with asked(World()) as (node, connection, http):
            await create_topic(connection, "t")
            path = "/v1/configs/topic/t"

            async def value(at: str, key: str) -> str | None:
                told = await (await http.get(at, params={"keys": key})).json()
                return next((one["value"] for one in told["configs"]), None)

            trial = {"set": {"retention.ms": "5000"}, "validate_only": True}
            assert (await http.patch(path, json=trial)).status == 204
            assert await value(path, "retention.ms") == "604800000"
            assert (await http.patch(path, json={"set": {"retention.ms": "5000"}})).status == 204
            assert await value(path, "retention.ms") == "5000"
            both = {"set": {"segment.bytes": "none"}, "unset": ["retention.ms"]}
            refused = await http.patch(path, json=both)
            assert (refused.status, (await refused.json())["title"]) == (400, "INVALID_CONFIG")
            assert await value(path, "retention.ms") == "5000"
            assert (await http.patch(path, json={"unset": ["retention.ms"]})).status == 204
            assert await value(path, "retention.ms") == "604800000"

            logger = f"/v1/configs/broker-logger/{node.config.node_id}"
            assert (await http.patch(logger, json={"set": {"penstock.quorum": "DEBUG"}})).status == 204
            assert await value(logger, "penstock.quorum") == "DEBUG"
            assert (await http.patch(logger, json={"unset": ["penstock.quorum"]})).status == 204
            defaults = "/v1/configs/broker-defaults"
            assert (await http.patch(defaults, json={"set": {"log.retention.ms": "7000"}})).status == 204
            assert await value(defaults, "log.retention.ms") == "7000"
            assert (await http.patch("/v1/configs/topic/u", json={"unset": ["retention.ms"]})).status == 404
            assert (await http.patch("/v1/configs/other/t", json={})).status == 404

    run(scenario)
