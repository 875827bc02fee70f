"""Readers that follow the events of the cluster on a node."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine

import pytest
from drained_brokers import drain_request
from metadata_cluster import Cluster

from penstock.broker.cluster import event_stream
from penstock.broker.cluster.event_stream import EventStream
from penstock.protocol.ids import ControllerEpoch, NodeId
from penstock.quorum.decisions.configs import incremental_alter_configs
from penstock.quorum.metadata.cluster_events import ClusterEvent
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.event_id import EventId
from penstock.quorum.metadata.event_ring import EventRing
from penstock.quorum.metadata.image import EMPTY_IMAGE

WALL_MS = 77_000


class World:
    """A stream behind the metadata of a cluster with broker 1."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.cluster.add_brokers(1)
        self.stream = EventStream(leader_id=lambda: NodeId(3), wall_clock_ms=lambda: WALL_MS)
        self.stream.publish(MetadataDelta.between(EMPTY_IMAGE, self.cluster.image), self.cluster.image)

    def drain(self, is_drained: bool = True) -> EventId:
        """Make one event and return its id."""
        base = self.cluster.image
        records = self.cluster.decide(incremental_alter_configs, drain_request(1, is_drained=is_drained)).records
        delta = MetadataDelta(base)
        for record in records:
            delta.replay(record)
        self.cluster.image = delta.apply(offset=base.offset + 1, epoch=base.epoch, timestamp_ms=5_000)
        self.stream.publish(delta, self.cluster.image)
        return EventId(base.offset + 1, 0)

    def begin_epoch(self) -> None:
        base = self.cluster.image
        delta = MetadataDelta(base)
        self.cluster.image = delta.apply(
            offset=base.offset + 1, epoch=ControllerEpoch(base.epoch + 1), timestamp_ms=base.timestamp_ms
        )
        self.stream.publish(delta, self.cluster.image)


def on_a_loop(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(test())

    run.__name__ = test.__name__
    return run


async def loaded() -> World:
    world = World()
    await world.stream.load(asyncio.get_running_loop(), delay_s=0)
    return world


async def take(events: AsyncIterator[ClusterEvent], count: int) -> list[str]:
    found = []
    async with asyncio.timeout(10):
        for _ in range(count):
            found.append((await anext(events)).change.KIND)
    return found


@on_a_loop
async def test_a_reader_gets_what_comes_from_now_on_and_waits_for_more() -> None:
    world = await loaded()
    world.drain()
    events = world.stream.subscribe()
    world.drain(is_drained=False)
    assert await take(events, 1) == ["broker-undrained"]
    waiting = asyncio.ensure_future(take(events, 2))
    await asyncio.sleep(0)
    assert not waiting.done()
    world.drain()
    world.begin_epoch()
    assert await waiting == ["broker-drained", "quorum-leader-changed"]


@on_a_loop
async def test_a_reader_resumes_behind_an_id_of_another_node() -> None:
    world = await loaded()
    first = world.drain()
    world.drain(is_drained=False)
    assert await take(world.stream.subscribe(first), 1) == ["broker-undrained"]


@on_a_loop
async def test_a_reader_that_resumes_before_the_start_of_the_node_finds_a_gap() -> None:
    world = await loaded()
    world.drain()
    assert await take(world.stream.subscribe(EventId(0, 0)), 2) == ["gap", "broker-drained"]


@on_a_loop
async def test_a_slow_reader_holds_up_none_and_finds_a_gap() -> None:
    world = await loaded()
    world.stream._ring = EventRing(events_max=3)
    world.stream._ring.restart(world.cluster.image.offset, 0)
    slow, fast = world.stream.subscribe(), world.stream.subscribe()
    for number in range(8):
        world.drain(is_drained=number % 2 == 0)
        await take(fast, 1)
    assert (await take(slow, 4))[0] == "gap"
    assert world.stream._waiting == set()


@on_a_loop
async def test_the_first_entry_of_an_epoch_has_the_time_at_which_it_came() -> None:
    world = await loaded()
    events = world.stream.subscribe()
    world.drain()
    world.begin_epoch()
    assert [(await anext(events)).timestamp_ms for _ in range(2)] == [5_000, WALL_MS]


@on_a_loop
async def test_readers_end_with_the_node() -> None:
    world = await loaded()
    events = world.stream.subscribe()
    ended = asyncio.ensure_future(anext(events, None))
    await asyncio.sleep(0)
    world.stream.close()
    async with asyncio.timeout(10):
        assert await ended is None


@on_a_loop
async def test_a_reader_that_goes_leaves_nothing_behind() -> None:
    world = await loaded()
    waiting = asyncio.ensure_future(anext(world.stream.subscribe(), None))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert world.stream._waiting == set()


@on_a_loop
async def test_what_happened_while_the_node_started_is_derived_once_it_serves() -> None:
    world = World()
    first = world.drain()
    events = world.stream.subscribe(first)
    world.drain(is_drained=False)
    loading = asyncio.ensure_future(world.stream.load(asyncio.get_running_loop(), delay_s=0))
    world.begin_epoch()
    assert await take(events, 2) == ["broker-undrained", "quorum-leader-changed"]
    await loading
    world.drain()
    assert await take(events, 1) == ["broker-drained"]


def test_changes_before_a_node_serves_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "BACKLOG_MAX", 2)

    async def follow() -> list[str]:
        world = World()
        first = world.drain()
        for number in range(4):
            world.drain(is_drained=number % 2 == 1)
        await world.stream.load(asyncio.get_running_loop(), delay_s=0)
        return await take(world.stream.subscribe(first), 3)

    assert asyncio.run(follow()) == ["gap", "broker-undrained", "broker-drained"]
