"""The shell around `fast_fencing.py`: dials brokers that seem to be gone, and has them fenced."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final, assert_never

from ...protocol.errors import KafkaError
from ...protocol.ids import BrokerEpoch, NodeId
from ..decisions.context import ControllerResult, DecisionContext
from ..decisions.heartbeats import GoneBroker, fence_gone
from ..fencing.fast_fencing import Bar, Dial, Effect, FastFencing, Fence
from ..links.port_probe import REFUSED, Accepted, Refused, Unclear, probe_port
from ..metadata.image import MetadataImage
from .controller import Controller

logger = logging.getLogger(__name__)

# A machine that has not said anything for so long refuses nothing.
_DIAL_TIMEOUT_S: Final = 1.0
# A process that ends with tens of thousands of connections takes about as long to close them.
_HOLD_S: Final = 1.0


class BrokerProbes:
    """The probes of one controller, which reports heartbeats and connections (`broker_watcher.BrokerWatcher`)."""

    def __init__(self, controller: Controller, rules: FastFencing, *, loop: asyncio.AbstractEventLoop) -> None:
        self._controller = controller
        self._rules = rules
        self._loop = loop
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def rules(self) -> FastFencing:
        return self._rules

    def on_active(self, former_leader_id: NodeId | None) -> None:
        self._apply_effects(
            self._rules.on_active(self._controller.image, self._now_ms(), former_leader_id=former_leader_id)
        )

    def on_inactive(self) -> None:
        self._rules.on_inactive()

    def on_heard(self, broker_id: NodeId, broker_epoch: BrokerEpoch, heard_ms: int) -> None:
        image, now_ms = self._controller.image, self._now_ms()
        self._apply_effects(self._rules.on_heard(broker_id, broker_epoch, image, now_ms, heard_ms=heard_ms))

    def on_connection_closed(self, broker_id: NodeId) -> None:
        """Hear that the broker's side closed the connection by which its last heartbeat came to this node."""
        self._apply_effects(self._rules.on_closed(broker_id, self._controller.image, self._now_ms()))

    async def stop(self) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _apply_effects(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case Dial():
                    self._start(self._dial(effect))
                case Fence():
                    self._start(self._fence(effect))
                case Bar():
                    logger.warning(
                        "Broker was fenced while it was alive: broker=%d milliseconds_left_to_its_session=%d count=%d",
                        effect.broker_id,
                        effect.until_ms - self._now_ms(),
                        effect.wrong_count,
                    )
                case _:
                    assert_never(effect)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _dial(self, dial: Dial) -> None:
        attempt = dial.attempt
        await asyncio.sleep((dial.at_ms - self._now_ms()) / 1000)
        if not self._rules.is_dialing(attempt):
            return
        found: Accepted | Refused | Unclear = REFUSED
        for port in attempt.ports:
            if isinstance(found, Refused):
                found = await probe_port(self._loop, attempt.host, port, timeout_s=_DIAL_TIMEOUT_S)
        controller = self._controller
        self._apply_effects(
            self._rules.on_dialed(
                attempt,
                controller.image,
                self._now_ms(),
                is_refused=isinstance(found, Refused),
                has_quorum=controller.has_fresh_quorum,
            )
        )
        if isinstance(found, Refused | Unclear) or not await found.is_closed_by_peer(within_s=_HOLD_S):
            return
        self._apply_effects(self._rules.on_accepted_and_closed(attempt, controller.image, self._now_ms()))

    async def _fence(self, fence: Fence) -> None:
        def decide(image: MetadataImage, gone: GoneBroker, context: DecisionContext) -> ControllerResult[bool]:
            # Other decisions may have come before, one of a heartbeat among them.
            if not self._rules.is_fencing(fence):
                return ControllerResult(records=(), response=False)
            return fence_gone(image, gone, context)

        try:
            is_fenced = await self._controller.submit(decide, GoneBroker(fence.broker_id, fence.broker_epoch))
        except KafkaError as error:
            logger.info("Broker not fenced: broker=%d reason=%s", fence.broker_id, error)
            is_fenced = False
        if is_fenced:
            self._rules.on_fenced(fence, self._now_ms())
            logger.warning("Fencing broker because its process is gone: broker=%d", fence.broker_id)
        else:
            self._rules.on_not_fenced(fence)

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)
