"""How long answers are held that name a broker which may be gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from penstock.broker.cluster import suspected_peers
from penstock.broker.cluster.metadata_cache import MetadataCache
from penstock.broker.cluster.rules.suspicions import Suspicions
from penstock.broker.cluster.suspected_peers import SuspectedPeers
from penstock.chaos.simulation.virtual_loop import VirtualLoop
from penstock.protocol.ids import BrokerEpoch, NodeId
from penstock.protocol.structs import replace
from penstock.quorum.links.port_probe import REFUSED, UNCLEAR, Accepted, Refused, Unclear
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import BrokerRegistration, MetadataImage
from penstock.quorum.metadata.records import Endpoint

OWN, PEER, OTHER = NodeId(1), NodeId(2), NodeId(3)
HOLD_S = 0.25
Found = Accepted | Refused | Unclear


class World:
    """One broker that looks at two others, with a network that answers its probes as the test says."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.metadata = MetadataCache(OWN)
        self.metadata.image = MetadataImage(
            brokers={
                node_id: BrokerRegistration(
                    id=node_id,
                    epoch=BrokerEpoch(10 + node_id),
                    incarnation_id=UUID(int=node_id),
                    is_fenced=False,
                    endpoints=(Endpoint(name="INTERNAL", host=f"host-{node_id}", port=9_000 + node_id),),
                )
                for node_id in (OWN, PEER, OTHER)
            }
        )
        self.probed: list[tuple[str, int]] = []
        self.find: Callable[[], Found] = lambda: REFUSED
        self.peers = SuspectedPeers(
            Suspicions(OWN, hold_ms=int(HOLD_S * 1000)),
            self.metadata,
            listener_name="INTERNAL",
            loop=self.loop,
            probe=self.probe,
        )

    async def probe(self, _loop: object, host: str, port: int, *, timeout_s: float) -> Found:
        assert timeout_s <= HOLD_S
        self.probed.append((host, port))
        await asyncio.sleep(0.001)
        return self.find()

    def change(self, node_id: NodeId, **changes: object) -> None:
        image = self.metadata.image
        broker = replace(image.brokers[node_id], **changes)  # type: ignore[arg-type]
        self.metadata.image = replace(image, brokers={**image.brokers, node_id: broker})
        self.peers.publish(MetadataDelta(image), self.metadata.image)

    async def held_s(self, leader_ids: set[int]) -> float:
        start_s = self.loop.time()
        await self.peers.settled(leader_ids)
        return self.loop.time() - start_s


def accepted(loop: asyncio.AbstractEventLoop, *, closes_after_s: float | None) -> Accepted:
    found = Accepted(loop)
    if closes_after_s is not None:
        loop.call_later(closes_after_s, found.connection_lost, None)
    return found


def in_virtual_time(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        world = World()
        await scenario(world)
        await world.peers.stop()

    with VirtualLoop() as loop:
        loop.run(run())


def test_an_answer_that_names_a_suspected_broker_waits_until_the_metadata_change() -> None:
    async def scenario(world: World) -> None:
        world.peers.on_closed(PEER)
        world.loop.call_later(0.1, lambda: world.change(PEER, is_fenced=True))
        assert await world.held_s({OWN, PEER}) == pytest.approx(0.1, abs=0.001)
        assert world.peers.held_count == 1
        assert world.probed[0] == ("host-2", 9_002)

    in_virtual_time(scenario)


def test_an_answer_that_names_others_does_not_wait() -> None:
    async def scenario(world: World) -> None:
        world.peers.on_closed(PEER)
        assert not world.peers.holds({OWN, OTHER})
        assert await world.held_s({OWN, OTHER}) == 0
        assert world.peers.held_count == 0

    in_virtual_time(scenario)


def test_a_change_that_says_nothing_of_the_suspected_broker_ends_no_wait() -> None:
    async def scenario(world: World) -> None:
        world.peers.on_closed(PEER)
        world.loop.call_later(0.1, lambda: world.change(OTHER, is_fenced=True))
        assert await world.held_s({PEER}) == pytest.approx(HOLD_S, abs=0.002)

    in_virtual_time(scenario)


@pytest.mark.parametrize("found", [REFUSED, UNCLEAR], ids=["refused", "no answer"])
def test_it_waits_no_longer_than_a_suspicion_lasts(found: Found) -> None:
    async def scenario(world: World) -> None:
        world.find = lambda: found
        world.peers.on_closed(PEER)
        assert await world.held_s({PEER}) == pytest.approx(HOLD_S, abs=0.002)
        assert not world.peers.holds({PEER})

    in_virtual_time(scenario)


def test_a_broker_that_keeps_a_new_connection_is_no_longer_suspected() -> None:
    async def scenario(world: World) -> None:
        world.find = lambda: accepted(world.loop, closes_after_s=None)
        world.peers.on_closed(PEER)
        assert await world.held_s({PEER}) < 0.05
        assert len(world.probed) == 1

    in_virtual_time(scenario)


def test_a_process_that_accepts_while_it_ends_stays_suspected() -> None:
    async def scenario(world: World) -> None:
        world.find = lambda: accepted(world.loop, closes_after_s=0.01)
        world.peers.on_closed(PEER)
        assert await world.held_s({PEER}) == pytest.approx(HOLD_S, abs=0.002)
        assert len(world.probed) > 3

    in_virtual_time(scenario)


def test_one_answer_waits_once_however_often_the_broker_is_suspected() -> None:
    """A broker whose connections break again and again holds no client up for longer."""

    async def scenario(world: World) -> None:
        world.find = lambda: accepted(world.loop, closes_after_s=None)

        def close_again() -> None:
            world.peers.on_closed(PEER)
            world.loop.call_later(0.02, close_again)

        close_again()
        assert await world.held_s({PEER}) <= HOLD_S + 0.001

    in_virtual_time(scenario)


def test_two_suspected_leaders_are_both_waited_for() -> None:
    async def scenario(world: World) -> None:
        world.peers.on_closed(PEER)
        world.peers.on_closed(OTHER)
        world.loop.call_later(0.05, lambda: world.change(PEER, is_fenced=True))
        world.loop.call_later(0.1, lambda: world.change(OTHER, is_fenced=True))
        assert await world.held_s({PEER, OTHER}) == pytest.approx(0.1, abs=0.001)

    in_virtual_time(scenario)


def test_no_more_answers_are_held_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suspected_peers, "HELD_MAX", 5)

    async def scenario(world: World) -> None:
        world.peers.on_closed(PEER)
        held = [asyncio.create_task(world.held_s({PEER})) for _ in range(8)]
        times = sorted(await asyncio.gather(*held))
        assert times[:3] == [0, 0, 0]
        assert times[3:] == pytest.approx([HOLD_S] * 5, abs=0.002)

    in_virtual_time(scenario)


def test_a_client_that_leaves_is_forgotten() -> None:
    async def scenario(world: World) -> None:
        world.peers.on_closed(PEER)
        waiting = asyncio.create_task(world.peers.settled({PEER}))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert not world.peers._waiting

    in_virtual_time(scenario)


def test_stopping_lets_all_answers_go() -> None:
    async def scenario(world: World) -> None:
        world.peers.on_closed(PEER)
        held = asyncio.create_task(world.held_s({PEER}))
        await asyncio.sleep(0.01)
        await world.peers.stop()
        assert await held == pytest.approx(0.01, abs=0.001)
        world.peers.on_closed(OTHER)
        assert not world.peers.holds({OTHER})

    in_virtual_time(scenario)


def test_a_probe_that_fails_by_a_bug_is_logged_and_the_time_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        def fail() -> Any:
            raise AssertionError("a bug")

        world.find = fail
        world.peers.on_closed(PEER)
        assert await world.held_s({PEER}) == pytest.approx(HOLD_S, abs=0.002)

    in_virtual_time(scenario)
    assert "Failed to look for broker: broker=2" in caplog.text
