"""This node as a broker: what it does when its place is taken, and when another controller leads."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID

import pytest
from kio.schema.broker_heartbeat.v2.response import BrokerHeartbeatResponse
from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse
from kio.static.primitive import i64
from waiting import loop_until

from penstock.broker.cluster.metadata_cache import MetadataCache
from penstock.broker.node.lifecycle import BrokerLifecycle
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import BrokerEpoch, ControllerEpoch, NodeId
from penstock.protocol.messages import NO_THROTTLE, kio_error
from penstock.protocol.structs import replace
from penstock.quorum.decisions.brokers import BROKER_REGISTRATION
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import BrokerRegistration, MetadataImage
from penstock.quorum.metadata.publishers import Publishers

EPOCH = 7


class Controller:
    """A channel whose answers the test chooses."""

    def __init__(self) -> None:
        self.refusal: KafkaError | None = None
        self.heard = asyncio.Event()

    async def submit(self, request: object, _message: object, *, requester: object = None) -> Any:  # noqa: ARG002
        self.heard.set()
        if self.refusal is not None:
            raise self.refusal
        if request is BROKER_REGISTRATION:
            return BrokerRegistrationResponse(
                throttle_time=NO_THROTTLE, error_code=kio_error(ErrorCode.NONE), broker_epoch=i64(EPOCH)
            )
        return BrokerHeartbeatResponse(
            throttle_time=NO_THROTTLE,
            error_code=kio_error(ErrorCode.NONE),
            is_caught_up=True,
            is_fenced=False,
            should_shut_down=False,
        )


class Follower:
    """A part that hears behind the lifecycle."""

    def __init__(self) -> None:
        self.offsets: list[int] = []

    def publish(self, _delta: MetadataDelta, image: MetadataImage) -> None:
        self.offsets.append(image.offset)


class World:
    """Broker 4 with everything that follows the metadata."""

    def __init__(self) -> None:
        self.controller = Controller()
        self.replaced: list[str] = []
        self.publishers = Publishers()
        self.follower = Follower()
        view = MetadataCache(NodeId(4))
        self.lifecycle = BrokerLifecycle(
            self.controller,
            view,
            node_id=NodeId(4),
            rack=None,
            incarnation_id=UUID(int=1),
            directories=(UUID(int=1000),),
            cordoned_directories=lambda: (),
            # The session would be asked for once in this test, at the most.
            heartbeat_interval_ms=3_600_000,
            on_replaced=self._on_replaced,
        )
        for publisher in (view, self.lifecycle, self.follower):
            self.publishers.add(publisher)

    def _on_replaced(self, sentence: str) -> None:
        self.replaced.append(sentence)
        self.publishers.close()

    def show(self, *, offset: int, broker_epoch: int, epoch: int = 1) -> None:
        """Let the metadata say that broker 4 is registered under an epoch."""
        broker = BrokerRegistration(
            id=NodeId(4), epoch=BrokerEpoch(broker_epoch), incarnation_id=UUID(int=broker_epoch)
        )
        image = replace(self.publishers.image, offset=offset, epoch=ControllerEpoch(epoch), brokers={4: broker})
        self.publishers.publish(MetadataDelta(self.publishers.image), image)

    async def register(self, timeout_ms: int = 20_000) -> None:
        await self.lifecycle.register([], cluster_id="c", previous_broker_epoch=BrokerEpoch(-1), timeout_ms=timeout_ms)


def on_a_loop(test: Callable[[World], Coroutine[None, None, None]]) -> Callable[[], None]:
    def run() -> None:
        async def main() -> None:
            await asyncio.wait_for(test(World()), 20)

        asyncio.run(main())

    return run


@on_a_loop
async def test_a_replaced_process_is_told_nothing_of_what_its_successor_does(world: World) -> None:
    world.show(offset=3, broker_epoch=2)
    world.show(offset=EPOCH, broker_epoch=EPOCH)
    await world.register()
    world.show(offset=8, broker_epoch=EPOCH)
    assert world.replaced == []
    world.show(offset=9, broker_epoch=9)
    world.show(offset=10, broker_epoch=9)
    assert world.follower.offsets == [3, EPOCH, 8]
    assert len(world.replaced) == 1


@on_a_loop
async def test_a_process_that_was_replaced_while_it_registered_notices(world: World) -> None:
    world.show(offset=9, broker_epoch=9)
    await world.register()
    assert len(world.replaced) == 1


@on_a_loop
async def test_a_heartbeat_under_an_old_epoch_says_that_the_place_is_taken(world: World) -> None:
    world.show(offset=EPOCH, broker_epoch=EPOCH)
    await world.register()
    world.controller.refusal = KafkaError(ErrorCode.STALE_BROKER_EPOCH)
    alive = asyncio.ensure_future(world.lifecycle.keep_alive())

    def beats_and_is_replaced() -> bool:
        world.lifecycle.report_failed_directory(UUID(int=1000))
        return bool(world.replaced)

    await loop_until(beats_and_is_replaced, "word that the place is taken", interval_s=0)
    alive.cancel()


@on_a_loop
async def test_a_new_controller_is_greeted_at_once(world: World) -> None:
    world.show(offset=EPOCH, broker_epoch=EPOCH)
    await world.register()
    alive = asyncio.ensure_future(world.lifecycle.keep_alive())
    for epoch in (2, 3):
        world.controller.heard.clear()
        world.show(offset=EPOCH + epoch, broker_epoch=EPOCH, epoch=epoch)
        await world.controller.heard.wait()
    alive.cancel()


@on_a_loop
async def test_a_process_waits_for_the_end_of_the_session_that_is_in_its_way(world: World) -> None:
    """As Apache Kafka's, whose broker asks again until initial.broker.registration.timeout.ms."""
    world.show(offset=EPOCH, broker_epoch=EPOCH)
    world.controller.refusal = KafkaError(ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    registered = asyncio.ensure_future(world.register())
    for _ in range(2):
        world.controller.heard.clear()
        await world.controller.heard.wait()
    assert not registered.done()
    world.controller.refusal = None
    await registered
    assert world.lifecycle.broker_epoch == EPOCH


@on_a_loop
async def test_a_refused_registration_says_who_is_in_the_way(world: World) -> None:
    world.controller.refusal = KafkaError(ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    with pytest.raises(KafkaError, match="another process is broker 4, on other log directories"):
        await world.register(timeout_ms=1)


@on_a_loop
async def test_a_registration_that_will_never_be_taken_is_tried_once(world: World) -> None:
    world.controller.refusal = KafkaError(ErrorCode.INVALID_REGISTRATION)
    with pytest.raises(KafkaError, match="INVALID_REGISTRATION"):
        await world.register()
