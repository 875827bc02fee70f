"""/v1/quorum at a node that is its own quorum."""

from __future__ import annotations

from admin_http import asked
from memory_node import World, run


def test_the_only_voter_leads_and_is_caught_up() -> None:
    async def scenario() -> None:
        async with asked(World()) as (node, _, http):
            answer = await http.get("/v1/quorum")
            told = await answer.json()
            assert answer.status == 200
            assert told["is_known_by_leader"]
            (voter,) = told["voters"]
            assert (voter["node_id"], voter["is_leader"], voter["lag"]) == (node.config.node_id, True, 0)
            assert voter["last_caught_up_age_ms"] == 0
            assert told["high_watermark"] == node.metadata.image.offset + 1

    run(scenario)


def test_a_snapshot_is_written_and_listed() -> None:
    async def scenario() -> None:
        async with asked(World()) as (node, _, http):
            taken = await (await http.post("/v1/quorum/snapshots", json={})).json()
            (snapshot,) = taken["snapshots"]
            assert snapshot["end_offset"] == node.metadata.image.offset + 1
            listed = await (await http.get("/v1/quorum/snapshots")).json()
            assert not listed["unanswered"]
            (found,) = listed["snapshots"]
            assert found["file"] == snapshot["file"]
            assert found["size_bytes"] > 0

    run(scenario)


def test_what_no_voter_can_do_is_refused_with_a_sentence() -> None:
    async def scenario() -> None:
        async with asked(World()) as (_, _, http):
            answer = await http.post("/v1/quorum/snapshots", json={"node_ids": [9]})
            assert answer.status == 400
            assert "Node 9 is not a voter" in (await answer.json(content_type=None))["detail"]
            answer = await http.post("/v1/quorum/transfer", json={"to": 9})
            assert answer.status == 409
            answer = await http.post("/v1/quorum/transfer", json={"two": 9})
            assert answer.status == 400

    run(scenario)
