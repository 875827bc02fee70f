"""Holds answers that would send clients to a broker which has probably just ended (decision 29).

Clients ask for metadata the moment their connection to a leader breaks. The cluster needs about 0.1 s to agree on
another leader; a client whose answer names the old one asks again a second later, as most do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Set
from typing import Final

from ...protocol.ids import NodeId
from ...quorum.links.port_probe import Accepted, Refused, Unclear, probe_port
from ...quorum.metadata.delta import MetadataDelta
from ...quorum.metadata.image import MetadataImage
from .metadata_cache import MetadataCache
from .rules.suspicions import Suspicions

logger = logging.getLogger(__name__)

HELD_MAX: Final = 10_000
"""Answers that are held at a time; with more, the next are given as if no broker was suspected."""
# A process that ends may accept until its last socket is closed; one that lives keeps what it accepted.
_KEPT_S: Final = 0.03
_REDIAL_S: Final = 0.02

Probe = Callable[..., Awaitable[Accepted | Refused | Unclear]]


class SuspectedPeers:
    """A publisher behind `MetadataCache`. Not needed for safety: who answers at once answers by the metadata, too."""

    def __init__(
        self,
        rules: Suspicions,
        metadata: MetadataCache,
        *,
        listener_name: str,
        loop: asyncio.AbstractEventLoop,
        probe: Probe = probe_port,
    ) -> None:
        """`listener_name` is that of the listeners by which brokers reach each other."""
        self._rules = rules
        self._metadata = metadata
        self._listener_name = listener_name
        self._loop = loop
        self._probe = probe
        self._timer: asyncio.TimerHandle | None = None
        self._is_stopped = False
        self._probes: dict[NodeId, asyncio.Task[None]] = {}
        self._waiting: dict[asyncio.Future[None], Set[int]] = {}
        self.held_count = 0
        """Answers that were held, since start."""

    @property
    def rules(self) -> Suspicions:
        return self._rules

    # What is seen.

    def on_closed(self, broker_id: NodeId) -> None:
        """The broker's side closed a connection with this node."""
        if self._is_stopped or not self._rules.on_closed(broker_id, self._metadata.image, self._now_ms()):
            return
        logger.debug("Broker may be gone: broker=%d", broker_id)
        self._set_timer()
        self._cancel_probe(broker_id)
        task = self._probes[broker_id] = self._loop.create_task(self._look_for(broker_id))
        task.add_done_callback(lambda _: self._forget_probe(broker_id, task))

    def publish(self, _delta: MetadataDelta, image: MetadataImage) -> None:
        if self._rules and self._rules.on_image(image):
            self._release()

    # What is answered.

    def holds(self, leader_ids: Set[int]) -> bool:
        """Whether an answer that names these leaders is to wait for `settled`, and to be made anew then."""
        return (
            bool(self._rules)
            and self._rules.includes_any(leader_ids)
            and len(self._waiting) < HELD_MAX
            and not self._is_stopped
        )

    async def settled(self, leader_ids: Set[int]) -> None:
        """Until none of them is suspected; no longer than one suspicion lasts, though more may begin meanwhile."""
        if not self.holds(leader_ids):
            return
        self.held_count += 1
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting[future] = leader_ids
        timer = self._loop.call_later(self._rules.hold_ms / 1000, _wake, future)
        try:
            await future
        finally:
            timer.cancel()
            self._waiting.pop(future, None)

    async def stop(self) -> None:
        """All answers go out, and no broker is suspected from now on."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for future in self._waiting:
            _wake(future)
        probes = tuple(self._probes.values())
        for task in probes:
            task.cancel()
        await asyncio.gather(*probes, return_exceptions=True)

    def _release(self) -> None:
        for future, leader_ids in self._waiting.items():
            if not self._rules.includes_any(leader_ids):
                _wake(future)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        end_ms = self._rules.next_end_ms
        self._timer = None if end_ms is None else self._loop.call_at(end_ms / 1000, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        if self._rules.on_time(self._now_ms()):
            self._release()
        self._set_timer()

    async def _look_for(self, broker_id: NodeId) -> None:
        """A broker that only closed a connection takes another one."""
        while broker_id in self._rules:
            broker = self._metadata.image.brokers.get(broker_id)
            endpoint = None if broker is None else broker.endpoint(self._listener_name)
            if endpoint is None:
                return
            found = await self._probe(self._loop, endpoint.host, endpoint.port, timeout_s=self._rules.hold_ms / 1000)
            if isinstance(found, Accepted) and not await found.is_closed_by_peer(within_s=_KEPT_S):
                if self._rules.on_alive(broker_id):
                    self._release()
                return
            await asyncio.sleep(_REDIAL_S)

    def _cancel_probe(self, broker_id: NodeId) -> None:
        task = self._probes.pop(broker_id, None)
        if task is not None:
            task.cancel()

    def _forget_probe(self, broker_id: NodeId, task: asyncio.Task[None]) -> None:
        if self._probes.get(broker_id) is task:
            del self._probes[broker_id]
        if not task.cancelled() and task.exception() is not None:
            logger.error("Failed to look for broker: broker=%d", broker_id, exc_info=task.exception())

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
