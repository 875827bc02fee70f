"""/v1/events: server-sent events that a client can resume."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from admin_http import asked, served
from memory_node import World, create_topic, run

from penstock.broker.admin.operations import OPERATIONS
from penstock.broker.admin.v1.events import event_text, sent_events
from penstock.protocol.ids import NodeId, TopicId
from penstock.quorum.metadata.cluster_events import ClusterEvent, ConfigChange, ConfigsChanged, Summary, TopicDeleted
from penstock.quorum.metadata.event_id import EventId


def event(change: Any) -> ClusterEvent:
    return ClusterEvent(id=EventId(7, 2), timestamp_ms=99, change=change)


async def read_event(answer: Any) -> dict[str, Any]:
    """The next one, behind comments and the time to retry."""
    fields: dict[str, str] = {}
    while True:
        line = (await answer.content.readline()).decode()
        assert line, "the stream goes on"
        if line != "\n":
            name, _, value = line.rstrip("\n").partition(": ")
            fields[name] = value
        elif "data" in fields:
            told = json.loads(fields["data"])
            assert (told["id"], told["kind"]) == (fields["id"], fields["event"])
            return dict(told)
        else:
            fields.clear()


async def read_until(answer: Any, kind: str) -> dict[str, Any]:
    while True:
        told = await read_event(answer)
        if told["kind"] == kind:
            return told


def test_an_event_is_one_line_of_json_under_its_id() -> None:
    text = event_text(event(TopicDeleted(topic="a\nb", topic_id=TopicId(UUID(int=5))))).decode()
    head, kind, data, *end = text.split("\n")
    assert (head, kind, end) == ("id: 7.2", "event: topic-deleted", ["", ""])
    assert json.loads(data.removeprefix("data: ")) == {
        "id": "7.2",
        "kind": "topic-deleted",
        "timestamp_ms": 99,
        "topic": "a\nb",
        "topic_id": "00000000-0000-0000-0000-000000000005",
    }


def test_values_inside_an_event_keep_their_names() -> None:
    changes = (ConfigChange("retention.ms", "5"),)
    text = event_text(event(ConfigsChanged(resource_type=2, resource_name="t", count=1, changes=changes)))
    assert b'"changes":[{"name":"retention.ms","value":"5","is_hidden":false}]' in text
    text = event_text(event(Summary(of="leader-changed", count=500, brokers={NodeId(2): 500})))
    assert b'"brokers":{"2":500}' in text


def test_a_silent_stream_has_a_heartbeat_and_gives_up_its_place() -> None:
    is_ended = asyncio.Event()

    async def never() -> AsyncIterator[ClusterEvent]:
        try:
            await asyncio.get_running_loop().create_future()
            yield event(None)
        finally:
            is_ended.set()

    async def scenario() -> None:
        sent = sent_events(never(), asyncio.get_running_loop(), heartbeat_s=0.001)
        assert await anext(sent) == b"retry: 2000\n\n"
        assert [await anext(sent) for _ in range(2)] == [b": heartbeat\n\n"] * 2
        await sent.aclose()  # type: ignore[attr-defined]
        await is_ended.wait()

    run(scenario)


def test_a_client_resumes_behind_the_event_that_it_names() -> None:
    async def scenario() -> None:
        async with asked(World()) as (node, connection, http):
            loading = asyncio.get_running_loop().create_task(node.events.load(asyncio.get_running_loop(), delay_s=0))
            await loading
            async with http.get("/v1/events") as answer:
                assert answer.headers["Content-Type"] == "text/event-stream"
                assert (await answer.content.readline()) == b"retry: 2000\n"
                await create_topic(connection, "first")
                first = await read_until(answer, "topic-created")
                assert first["topic"] == "first"
            await create_topic(connection, "second")
            async with http.get("/v1/events", params={"since": first["id"]}) as answer:
                assert (await read_until(answer, "topic-created"))["topic"] == "second"
            async with http.get("/v1/events?since=0.0", headers={"Last-Event-ID": first["id"]}) as answer:
                assert (await read_until(answer, "topic-created"))["topic"] == "second"
            for wrong in ("x", "1", "1.x", "9" * 9000 + ".0"):
                assert (await http.get("/v1/events", headers={"Last-Event-ID": wrong})).status == 400

    run(scenario)


def test_a_node_without_events_says_so() -> None:
    async def scenario() -> None:
        async with served(asyncio.get_running_loop(), OPERATIONS) as http:
            assert (await http.get("/v1/events")).status == 503

    run(scenario)


@pytest.mark.thorough
def test_events_that_are_not_followed_end_with_the_newest() -> None:
    async def scenario() -> None:
        async with asked(World()) as (node, connection, http):
            await create_topic(connection, "t")
            async with http.get("/v1/events?since=0.0") as stream:
                created = await read_until(stream, "topic-created")
            text = await (await http.get("/v1/events", params={"follow": "false"})).text()
            told = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
            assert created in told
            assert "gap" not in {one["kind"] for one in told}
            behind = {"follow": "false", "since": str(node.metadata.image.offset) + ".2147483647"}
            assert await (await http.get("/v1/events", params=behind)).text() == ""

    run(scenario)
