"""Dialing brokers that seem to be gone, over real sockets."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from random import Random
from typing import cast
from uuid import UUID

import pytest

from penstock.protocol.ids import BrokerEpoch, NodeId
from penstock.quorum.controller.broker_probes import BrokerProbes
from penstock.quorum.controller.controller import Controller
from penstock.quorum.decisions.context import ControllerConfig, Decision, DecisionContext
from penstock.quorum.decisions.heartbeats import GoneBroker
from penstock.quorum.fencing.fast_fencing import FastFencing
from penstock.quorum.links.port_probe import REFUSED, UNCLEAR, Accepted, probe_port
from penstock.quorum.metadata.image import BrokerRegistration, MetadataImage
from penstock.quorum.metadata.records import Endpoint

HOST = "127.0.0.1"


class FencingController:
    """What the probes need of a controller: brokers 1 to 3, each at these ports, brokers reach them at the first."""

    def __init__(self, *ports: int) -> None:
        self.has_fresh_quorum = True
        self.fenced: asyncio.Future[GoneBroker] = asyncio.get_running_loop().create_future()
        self.image = MetadataImage(
            brokers={
                broker_id: BrokerRegistration(
                    id=NodeId(broker_id),
                    epoch=BrokerEpoch(broker_id),
                    incarnation_id=UUID(int=broker_id),
                    is_fenced=False,
                    endpoints=tuple(
                        Endpoint(name="PLAINTEXT" if port == ports[0] else f"AT-{port}", host=HOST, port=port)
                        for port in ports
                    ),
                )
                for broker_id in (1, 2, 3)
            }
        )

        self.before_decision: Callable[[], None] = lambda: None
        self.answered = asyncio.Event()

    async def submit(self, decision: Decision[GoneBroker, bool], gone: GoneBroker) -> bool:
        self.before_decision()
        context = DecisionContext(
            next_offset=1, random=Random(1), config=ControllerConfig(node_id=NodeId(1)), has_live_session=lambda _: True
        )
        is_fenced = decision(self.image, gone, context).response
        if is_fenced:
            self.fenced.set_result(gone)
        self.answered.set()
        return is_fenced


def on_a_loop(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(asyncio.wait_for(test(), 20))

    return run


def probes_of(controller: FencingController) -> BrokerProbes:
    rules = FastFencing(node_id=NodeId(1), listener_name="PLAINTEXT", session_timeout_ms=9_000)
    return BrokerProbes(cast(Controller, controller), rules, loop=asyncio.get_running_loop())


def bound() -> socket.socket:
    """Return a socket that refuses until it listens."""
    taken = socket.socket()
    taken.bind((HOST, 0))
    return taken


@on_a_loop
async def test_a_broker_whose_port_refuses_is_fenced() -> None:
    with bound() as taken:
        controller = FencingController(taken.getsockname()[1])
        probes = probes_of(controller)
        probes.on_connection_closed(NodeId(2))
        assert await controller.fenced == GoneBroker(NodeId(2), BrokerEpoch(2))
        await probes.stop()


@on_a_loop
async def test_a_broker_whose_heartbeat_is_decided_before_is_not_fenced() -> None:
    with bound() as taken:
        controller = FencingController(taken.getsockname()[1])
        probes = probes_of(controller)
        loop = asyncio.get_running_loop()
        controller.before_decision = lambda: probes.on_heard(NodeId(2), BrokerEpoch(2), int(loop.time() * 1000))
        probes.on_connection_closed(NodeId(2))
        await controller.answered.wait()
        assert not controller.fenced.done()
        await probes.stop()


@on_a_loop
async def test_a_new_controller_fences_the_former_leader_s_broker() -> None:
    with bound() as taken:
        controller = FencingController(taken.getsockname()[1])
        probes = probes_of(controller)
        probes.on_active(NodeId(3))
        assert await controller.fenced == GoneBroker(NodeId(3), BrokerEpoch(3))
        await probes.stop()


@on_a_loop
async def test_a_broker_that_closes_what_it_accepted_and_then_refuses_is_fenced() -> None:
    """A process that ends closes its connections before it closes what listens."""
    with bound() as ending:
        ending.listen()
        ending.setblocking(False)
        controller = FencingController(ending.getsockname()[1])
        probes = probes_of(controller)
        probes.on_connection_closed(NodeId(2))
        accepted, _ = await asyncio.get_running_loop().sock_accept(ending)
        assert not controller.fenced.done()
        ending.close()
        accepted.close()
        assert await controller.fenced == GoneBroker(NodeId(2), BrokerEpoch(2))
        await probes.stop()


@pytest.mark.thorough
@on_a_loop
async def test_a_broker_that_accepts_at_another_port_stays() -> None:
    """Its port for other brokers is refused by a proxy; its process lives."""
    with bound() as refusing, bound() as living:
        living.listen()
        living.setblocking(False)
        controller = FencingController(refusing.getsockname()[1], living.getsockname()[1])
        probes = probes_of(controller)
        probes.on_connection_closed(NodeId(2))
        accepted, _ = await asyncio.get_running_loop().sock_accept(living)
        with accepted:
            assert await asyncio.get_running_loop().sock_recv(accepted, 1) == b""
        assert not controller.fenced.done()
        assert not controller.answered.is_set()
        await probes.stop()


@on_a_loop
async def test_a_broker_whose_ports_all_refuse_is_fenced() -> None:
    with bound() as first, bound() as second:
        controller = FencingController(first.getsockname()[1], second.getsockname()[1])
        probes = probes_of(controller)
        probes.on_connection_closed(NodeId(2))
        assert await controller.fenced == GoneBroker(NodeId(2), BrokerEpoch(2))
        await probes.stop()


@pytest.mark.thorough
@on_a_loop
async def test_a_broker_that_accepts_stays() -> None:
    with bound() as living:
        living.listen()
        living.setblocking(False)
        controller = FencingController(living.getsockname()[1])
        probes = probes_of(controller)
        probes.on_connection_closed(NodeId(2))
        accepted, _ = await asyncio.get_running_loop().sock_accept(living)
        with accepted:
            # The probe holds its connection for a while, asks nothing, and lets go.
            assert await asyncio.get_running_loop().sock_recv(accepted, 1) == b""
        assert not controller.fenced.done()
        await probes.stop()


@on_a_loop
async def test_stopping_ends_every_attempt() -> None:
    with bound() as taken:
        controller = FencingController(taken.getsockname()[1])
        probes = probes_of(controller)
        probes.on_active(None)
        await probes.stop()
        assert not controller.fenced.done()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_name_refuses_when_all_its_addresses_do(host: str) -> None:
    async def ask() -> None:
        loop = asyncio.get_running_loop()
        with bound() as taken:
            port = taken.getsockname()[1]
            assert await probe_port(loop, host, port, timeout_s=5) is REFUSED
            taken.listen()
            found = await probe_port(loop, host, port, timeout_s=5)
            assert isinstance(found, Accepted)
            assert not await found.is_closed_by_peer(within_s=0.01)

    asyncio.run(ask())


@pytest.mark.parametrize("host", ["nobody.invalid", "..", "a" * 64 + ".invalid", "\0"], ids=ascii)
def test_an_unresolvable_name_refuses_nothing(host: str) -> None:
    async def ask() -> None:
        assert await probe_port(asyncio.get_running_loop(), host, 9, timeout_s=5) is UNCLEAR

    asyncio.run(ask())
