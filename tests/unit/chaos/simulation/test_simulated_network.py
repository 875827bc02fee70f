"""The network of the simulated cluster behaves as sockets do, where clients and nodes can tell."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from penstock.chaos.simulation.cluster.loop import SimulatedLoop, new_loop
from penstock.chaos.simulation.cluster.network import Network
from penstock.chaos.simulation.cluster.process import Process

A, B, PORT = "10.0.0.1", "10.0.0.2", 9092


class Peer(asyncio.Protocol):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.heard = b""
        self.events: list[str] = []
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.heard += data

    def eof_received(self) -> bool:
        self.events.append("end")
        return True

    def connection_lost(self, error: Exception | None) -> None:
        self.events.append("lost" if error is None else type(error).__name__)

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")


class World:
    """Two machines, and a connection from one to the other when it was asked for."""

    def __init__(self) -> None:
        self.loop: SimulatedLoop = new_loop(Random(1))
        self.network = self.loop.network = Network(self.loop, Random(2), lambda _: None)
        self.client_process, self.server_process = Process("client", A), Process("server", B)
        self.accepted: list[Peer] = []

    def run(self, process: Process, work: Callable[[], Awaitable[Any]], within_s: float = 60) -> Any:
        task = self.start(process, work)
        end_s = self.loop.time() + within_s
        while not task.done():
            assert self.loop.time() < end_s, "not done in time"
            self.loop.run_for(0.05)
        return task.result()

    def start(self, process: Process, work: Callable[[], Awaitable[Any]]) -> asyncio.Future[Any]:
        async def wait() -> Any:
            return await work()

        return process.run(lambda: self.loop.create_task(wait()))

    def accept(self) -> Peer:
        self.accepted.append(Peer())
        return self.accepted[-1]

    def listen(self) -> None:
        self.run(self.server_process, lambda: self.loop.create_server(self.accept, B, PORT))

    async def connect(self) -> Peer:
        _, peer = await self.loop.create_connection(Peer, B, PORT)
        assert isinstance(peer, Peer)
        return peer

    def connected(self) -> tuple[Peer, Peer]:
        self.listen()
        near: Peer = self.run(self.client_process, self.connect)
        self.loop.run_for(0.01)
        return near, self.accepted[-1]


def test_bytes_arrive_in_order_and_each_side_ends_by_itself() -> None:
    world = World()
    near, far = world.connected()
    for number in range(50):
        near.transport.write(b"%d " % number)
    near.transport.write_eof()
    world.loop.run_for(1)
    assert far.heard.split() == [b"%d" % number for number in range(50)]
    assert far.events == ["end"]
    far.transport.write(b"last word")
    far.transport.close()
    world.loop.run_for(1)
    assert near.heard == b"last word"
    assert near.events == ["end"]


def test_a_closed_port_refuses_connections() -> None:
    world = World()
    with pytest.raises(ConnectionRefusedError):
        world.run(world.client_process, world.connect)


@pytest.mark.parametrize(("source", "target"), [(A, B), (B, A)])
def test_a_connection_over_a_cut_link_is_made_when_that_is_healed(source: str, target: str) -> None:
    world = World()
    world.listen()
    world.network.cut(source, target)
    connecting = world.start(world.client_process, world.connect)
    world.loop.run_for(5)
    assert not connecting.done()
    world.network.heal(source, target)
    world.loop.run_for(10)
    assert connecting.result().events == []


def test_what_is_sent_over_a_cut_link_arrives_when_that_is_healed() -> None:
    world = World()
    near, far = world.connected()
    world.network.cut(A, B)
    near.transport.write(b"late")
    far.transport.write(b"in time")
    world.loop.run_for(5)
    assert (near.heard, far.heard) == (b"in time", b"")
    world.network.heal(A, B)
    world.loop.run_for(1)
    assert far.heard == b"late"


def test_the_machine_of_a_killed_process_closes_its_connections() -> None:
    world = World()
    near, _ = world.connected()
    world.server_process.is_dead = True
    world.network.end_process(world.server_process, is_told=True)
    world.loop.run_for(1)
    assert near.events == ["end"]
    with pytest.raises(ConnectionRefusedError):
        world.run(world.client_process, world.connect)


def test_a_machine_without_power_says_nothing_before_it_is_back() -> None:
    world = World()
    near, _ = world.connected()
    world.server_process.is_dead = True
    world.network.end_process(world.server_process, is_told=False)
    world.network.darken(B)
    near.transport.write(b"is it open?")
    world.loop.run_for(10)
    assert near.events == []
    world.network.light(B)
    world.loop.run_for(1)
    assert near.events == ["ConnectionResetError"]


def test_a_writer_waits_for_a_reader_that_does_not_read() -> None:
    world = World()
    near, far = world.connected()
    far.transport.pause_reading()
    near.transport.write(bytes(1_000_000))
    world.loop.run_for(1)
    assert (near.events, far.heard) == (["pause"], b"")
    far.transport.resume_reading()
    world.loop.run_for(5)
    assert near.events == ["pause", "resume"]
    assert len(far.heard) == 1_000_000


def test_a_paused_process_hears_everything_later() -> None:
    world = World()
    near, far = world.connected()
    world.server_process.is_paused = True
    near.transport.write(b"hello")
    assert isinstance(world.run(world.client_process, world.connect), Peer), "its machine accepts for it"
    world.loop.run_for(5)
    assert (far.heard, len(world.accepted)) == (b"", 1)
    world.loop.resume(world.server_process)
    world.loop.run_for(1)
    assert (far.heard, len(world.accepted)) == (b"hello", 2)
