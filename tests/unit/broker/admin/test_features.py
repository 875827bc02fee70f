"""`/v1/features` at one node."""

from __future__ import annotations

from typing import Any

from admin_http import asked
from memory_node import World, run


def level(told: dict[str, Any], name: str = "transaction.version") -> int:
    (found,) = [one["level"] for one in told["features"] if one["name"] == name]
    assert isinstance(found, int)
    return found


def test_levels_are_told_with_what_each_node_supports() -> None:
    async def scenario() -> None:
        async with asked(World()) as (node, _, http):
            told = await (await http.get("/v1/features")).json()
            own = node.config.node_id
            assert told["unregistered_controllers"] == []
            assert [one["name"] for one in told["features"]] == sorted(one["name"] for one in told["features"])
            (found,) = [one for one in told["features"] if one["name"] == "transaction.version"]
            assert (found["level"], found["min_level"], found["max_level"]) == (2, 0, 2)
            # A single voter registers as a broker only.
            assert found["nodes"] == [{"node_id": own, "role": "broker", "min_level": 0, "max_level": 2}]

    run(scenario)


def test_levels_are_set_all_or_none_and_the_answer_has_them() -> None:
    async def scenario() -> None:
        async with asked(World()) as (_, _, http):
            lower = {"levels": {"transaction.version": 1, "group.version": 0}, "type": "safe_downgrade"}
            told = await (await http.patch("/v1/features", json={**lower, "validate_only": True})).json()
            assert level(told) == 2
            told = await (await http.patch("/v1/features", json=lower)).json()
            assert (level(told), level(told, "group.version")) == (1, 0)
            # The second one cannot be raised: neither is.
            wrong = {"levels": {"transaction.version": 2, "group.version": 7}}
            answer = await http.patch("/v1/features", json=wrong)
            assert answer.status == 400
            problem = await answer.json(content_type=None)
            assert problem["title"] == "INVALID_UPDATE_VERSION"
            assert "only supports versions 0-1" in problem["detail"]
            assert level(await (await http.get("/v1/features")).json()) == 1
            refusals: tuple[dict[str, Any], ...] = (
                {"levels": {"transaction.version": 0}},
                {"levels": {}},
                {"levels": {"transaction.version": 40_000}},
                {"levels": {"transaction.version": 2}, "type": "sideways"},
            )
            for refused in refusals:
                assert (await http.patch("/v1/features", json=refused)).status == 400

    run(scenario)
