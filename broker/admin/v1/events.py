"""`/v1/events`: what happens in the cluster, as server-sent events.

A client has no buffer here: it is a place in the ring of events that all share (`cluster/event_stream.py`), so one that
reads slowly costs nothing and finds a gap.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import asdict

from ....protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.rest.events import EventsQuery
from ....quorum.metadata.cluster_events import ConfigsChanged
from ....quorum.metadata.event_id import EventId
from ....quorum.metadata.image import ConfigResourceType
from ..operation import Call, HttpError, Operation, Stream

if TYPE_CHECKING:
    from ....quorum.metadata.cluster_events import ClusterEvent
    from ...cluster.event_stream import EventStream

HEARTBEAT_S: Final = 15.0
"""Less than the 30 s after which proxies commonly close what is silent."""
RETRY_MS: Final = 2_000
"""After which a browser connects again."""
LAST_EVENT_ID: Final = "Last-Event-ID"
MEDIA_TYPE: Final = "text/event-stream"
BEFORE_ALL: Final = EventId(-1, 0)
GAP: Final = "gap"
_HOLDERS: Final[Mapping[int, ResourceType]] = {
    ConfigResourceType.TOPIC: ResourceType.TOPIC,
    ConfigResourceType.GROUP: ResourceType.GROUP,
}
"""Whose configs have permissions of their own; those of others go with the cluster."""
LOADING_MAX_S: Final = 5.0
"""A node derives events a second after its start (`cluster/event_stream.py`)."""


async def _follow(call: Call) -> Stream:
    events = call.node.events
    if events is None:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "This node does not follow the metadata yet.")
    named = call.headers.get(LAST_EVENT_ID) or call.query.since
    try:
        last_id = None if not named else EventId.parse(named)
    except ValueError as error:
        raise HttpError(400, "Bad Request", f"{error}.") from None
    if call.query.follow:
        chunks = sent_events(_visible_later(call, events.subscribe(last_id)), call.node.loop)
    else:
        await _wait_loaded(events)
        recent = events.recent(last_id or BEFORE_ALL)
        # Without an id no event is missed.
        is_whole = last_id is not None or not recent or recent[0].change.KIND != GAP
        chunks = _remembered(one for one in (recent if is_whole else recent[1:]) if _is_visible(call, one))
    return Stream(
        media_type=MEDIA_TYPE,
        chunks=chunks,
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def _is_visible(call: Call, event: ClusterEvent) -> bool:
    """Events of a topic are told to clients that may describe it, as Metadata has it, also once it is deleted; values
    of configs to those that may describe these; the rest goes with the cluster."""
    change = event.change
    topic = getattr(change, "topic", None)
    if topic is not None:
        return call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)
    if not isinstance(change, ConfigsChanged):
        return True
    holder = _HOLDERS.get(change.resource_type)
    if holder is None:
        return call.may(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME)
    return call.may(AclOperation.DESCRIBE_CONFIGS, holder, change.resource_name)


async def _visible_later(call: Call, events: AsyncIterator[ClusterEvent]) -> AsyncIterator[ClusterEvent]:
    try:
        async for event in events:
            if _is_visible(call, event):
                yield event
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()


async def _wait_loaded(events: EventStream) -> None:
    """Raises KafkaError."""
    try:
        async with asyncio.timeout(LOADING_MAX_S):
            await events.wait_loaded()
    except TimeoutError:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "This node has not derived its events yet.") from None


async def _remembered(events: Iterable[ClusterEvent]) -> AsyncIterator[bytes]:
    for event in events:
        yield event_text(event)


async def sent_events(
    events: AsyncIterator[ClusterEvent], loop: asyncio.AbstractEventLoop, *, heartbeat_s: float = HEARTBEAT_S
) -> AsyncIterator[bytes]:
    """The events as text, with a comment whenever there was none for so long."""

    async def next_event() -> ClusterEvent | None:
        return await anext(events, None)

    yield b"retry: %d\n\n" % RETRY_MS
    waiting: asyncio.Task[ClusterEvent | None] | None = None
    try:
        while True:
            waiting = waiting or loop.create_task(next_event())
            done, _ = await asyncio.wait({waiting}, timeout=heartbeat_s)
            if not done:
                yield b": heartbeat\n\n"
                continue
            event, waiting = waiting.result(), None
            if event is None:
                return
            yield event_text(event)
    finally:
        if waiting is not None:
            waiting.cancel()
            await asyncio.wait({waiting})
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()


def event_text(event: ClusterEvent) -> bytes:
    """One event: its id, its kind, and JSON of all of it."""
    kind = event.change.KIND
    values = {name: _json_value(value) for name, value in asdict(event.change).items()}
    data = msgspec.json.encode({"id": str(event.id), "kind": kind, "timestamp_ms": event.timestamp_ms, **values})
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (str(event.id).encode(), kind.encode(), data)


def _json_value(value: Any) -> Any:
    if isinstance(value, tuple):
        named = getattr(value, "_asdict", None)
        return [_json_value(one) for one in value] if named is None else named()
    if isinstance(value, Mapping):
        return {str(key): one for key, one in value.items()}
    return value


OPERATIONS: Final = (
    Operation(
        name="followEvents",
        method="GET",
        path="/v1/events",
        tag="Events",
        summary="What happens in the cluster, as it happens (server-sent events)",
        description=(
            "From now on, or behind the event that Last-Event-ID or `since` names; ids are the same on every node. "
            "With `follow=false` the answer has what is remembered, and ends. An "
            "event of the kind `gap` says that some are not known any more. Each has its kind and JSON as data."
        ),
        run=_follow,
        query=EventsQuery,
        media_type=MEDIA_TYPE,
        is_stream=True,
    ),
)
