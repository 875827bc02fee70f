"""Elections, reassignments, drains and decommissions by HTTP, at one node; with more nodes in tests/integration."""

from __future__ import annotations

from admin_http import asked
from memory_node import World, create_topic, run


def test_a_drain_is_seen_at_once_and_says_why_the_only_broker_may_not_stop() -> None:
    async def scenario() -> None:
        async with asked(World()) as (node, connection, http):
            await create_topic(connection, "t", 2)
            path = f"/v1/brokers/{node.config.node_id}/maintenance"
            before = await (await http.get(path)).json()
            assert (before["is_drained"], before["leadership_count"], before["offline_count"]) == (False, 2, 2)
            drained = await (await http.put(path, json={})).json()
            assert drained["is_drained"]
            assert {one["reason"] for one in drained["leaderships"]} == {"no other replica is in sync"}
            assert not drained["may_stop"]
            assert "the node is the only voter of the metadata quorum" in drained["blockers"]
            told = await (await http.get("/ready")).json()
            assert [one["kind"] for one in told["warnings"]] == ["drained"]
            assert not (await (await http.delete(path)).json())["is_drained"]
            answer = await http.get("/v1/brokers/77/maintenance")
            assert answer.status == 404

    run(scenario)


def test_elections_count_what_was_needed() -> None:
    async def scenario() -> None:
        async with asked(World()) as (_, connection, http):
            await create_topic(connection, "t", 2)
            told = await (await http.post("/v1/elections", json={})).json()
            assert told == {"elected_count": 0, "failed_count": 0, "results": []}
            told = await (await http.post("/v1/elections", json={"topics": ["t"]})).json()
            assert (told["failed_count"], told["results"][0]["error"]) == (2, "ELECTION_NOT_NEEDED")
            one = {"type": "unclean", "partitions": [{"topic": "t", "partition": 5}]}
            told = await (await http.post("/v1/elections", json=one)).json()
            assert told["results"][0]["error"] == "UNKNOWN_TOPIC_OR_PARTITION"
            assert (await http.post("/v1/elections", json={"topics": ["u"]})).status == 404
            assert (await http.post("/v1/elections", json={"type": "other"})).status == 400

    run(scenario)


def test_a_plan_is_checked_before_anything_moves() -> None:
    async def scenario() -> None:
        async with asked(World()) as (node, connection, http):
            await create_topic(connection, "t", 2)
            own = node.config.node_id
            told = await (await http.post("/v1/reassignments", json={"validate_only": True})).json()
            assert told == {"move_count": 0, "moves": [], "bytes_to_copy": 0, "begun_count": 0, "results": []}
            plan = [{"topic": "t", "partition": 0, "replicas": [own, 77]}]
            told = await (await http.post("/v1/reassignments", json={"plan": plan, "validate_only": True})).json()
            assert (told["move_count"], told["moves"][0]["adding"], told["begun_count"]) == (1, [77], 0)
            told = await (await http.post("/v1/reassignments", json={"plan": plan})).json()
            assert told["begun_count"] == 0
            assert told["results"][0]["error"] == "INVALID_REPLICA_ASSIGNMENT"
            for wrong in (
                {"plan": plan * 2},
                {"plan": plan, "topics": ["t"]},
                {"brokers": [own], "moving_max": 0},
                {"topic": "t"},
            ):
                assert (await http.post("/v1/reassignments", json=wrong)).status == 400
            assert (await http.post("/v1/reassignments", json={"topics": ["u"]})).status == 404
            listed = await (await http.get("/v1/reassignments")).json()
            assert (listed["count"], listed["reassignments"]) == (0, [])
            cancelled = await (await http.delete("/v1/reassignments")).json()
            assert cancelled == {"cancelled_count": 0, "results": []}

    run(scenario)


def test_the_only_broker_is_not_decommissioned_and_not_drained_for_it() -> None:
    async def scenario() -> None:
        async with asked(World()) as (node, connection, http):
            await create_topic(connection, "t", 2)
            path = f"/v1/brokers/{node.config.node_id}/decommission"
            answer = await http.post(path, json={})
            assert (await answer.json(content_type=None))["title"] == "INVALID_REPLICATION_FACTOR"
            state = await (await http.get(path)).json()
            assert (state["is_drained"], state["replica_count"], state["may_unregister"]) == (False, 2, False)
            assert state["bytes_left"] == 0
            assert "the broker is not drained" in state["blockers"]
            assert (await http.delete(path)).status == 200
            assert (await http.get("/v1/brokers/77/decommission")).status == 404

    run(scenario)
