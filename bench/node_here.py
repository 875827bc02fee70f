"""A node that runs in this process, and the turns of the event loop that it shares with us.

A callback that calls itself again and again measures the longest turn: for so long nothing else was answered.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from random import Random
from time import perf_counter_ns
from typing import Final, TypeVar
from uuid import UUID

from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32

from ..broker.configuration.node_config import load
from ..broker.node import garbage
from ..broker.node.admin import Admin
from ..broker.node.main import SWITCH_INTERVAL_S, new_event_loop, wall_clock_ms
from ..broker.node.server import Node
from ..client.connection import connect
from ..local.local_node import HOST
from ..storage.disk.files import DiskFiles

T = TypeVar("T")

_NS_PER_MS: Final = 1e6


class Turns:
    """Lengths of the loop's turns while it runs."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._last_ns = perf_counter_ns()
        self._handle: asyncio.Handle | None = None
        self._longest_ns = 0

    def start(self) -> None:
        self._longest_ns = 0
        self._last_ns = perf_counter_ns()
        self._handle = self._loop.call_soon(self._turn)

    def stop(self) -> float:
        """Milliseconds of the longest turn since `start`."""
        assert self._handle is not None, "started"
        self._handle.cancel()
        return self._longest_ns / _NS_PER_MS

    def _turn(self) -> None:
        now_ns = perf_counter_ns()
        self._longest_ns = max(self._longest_ns, now_ns - self._last_ns)
        self._last_ns = now_ns
        self._handle = self._loop.call_soon(self._turn)


def with_node_here(properties: Mapping[str, str], act: Callable[[Node], Awaitable[T]]) -> T:
    """Run `act` beside a node with these properties, in an event loop like that of a node's own process."""
    loop = new_event_loop()
    try:
        with _settings_of_a_node():
            return loop.run_until_complete(_run(loop, properties, act))
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


@contextmanager
def _settings_of_a_node() -> Iterator[None]:
    """Those of a process as a whole; what else this one does has them as before."""
    switch_interval_s, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    garbage.begin()
    try:
        yield
    finally:
        sys.setswitchinterval(switch_interval_s)
        gc.set_threshold(*thresholds)
        gc.unfreeze()


async def _run(
    loop: asyncio.AbstractEventLoop, properties: Mapping[str, str], act: Callable[[Node], Awaitable[T]]
) -> T:
    async with _node(loop, properties) as node:
        return await act(node)


@asynccontextmanager
async def _node(loop: asyncio.AbstractEventLoop, properties: Mapping[str, str]) -> AsyncIterator[Node]:
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        settings = {"listeners": f"PLAINTEXT://{HOST}:0", "log.dirs": folder, **properties}
        admin = Admin(load(settings), loop, wall_clock_ms)
        node = Node(admin.bind(), DiskFiles(), loop=loop, wall_clock_ms=wall_clock_ms, random=Random(1))
        admin.begin(node)
        await node.start()
        admin.on_started(node)
        try:
            yield node
        finally:
            await node.stop()
            await admin.stop()


async def create_topic(node: Node, name: str, partitions: int) -> UUID:
    """Until each partition is led; what is in memory then is of those objects that no collection looks at.

    Returns the topic's id.
    """
    topic = CreatableTopic(
        name=TopicName(name), num_partitions=i32(partitions), replication_factor=i16(-1), assignments=(), configs=()
    )
    async with await connect(HOST, node.bound_ports["PLAINTEXT"]) as connection:
        response = await connection.call(CreateTopicsRequest(topics=(topic,)))
    assert isinstance(response, CreateTopicsResponse), "the one to that request"
    (created,) = response.topics
    assert created.topic_id is not None, f"the topic was not created: {created}"
    await node.parts.partitions.settled()
    garbage.freeze()
    return created.topic_id
