"""The pace at which requests are taken, of which each peer has the same share.

Requests are waited for before it is known who sends them. So those of one address must not hold up those of others:
beyond the pace peers take turns, and one that sends a thousand requests waits behind itself.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ..network.rules.fair_queue import FairQueue, peer_of
from .operation import HttpError
from .rules.pace import Pace

WAITING_MAX: Final = 512
"""As many as there are connections, twice: in a moment of change one may be gone and not yet forgotten."""


class FairPace:
    """Of requests that may all come at once."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._waiting: FairQueue[asyncio.Future[None]] = FairQueue(items_max=WAITING_MAX)
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, peer_host: str) -> None:
        """Returns when the request may begin. Raises HttpError(503) where too many wait."""
        loop = asyncio.get_running_loop()
        if not self._waiting and self._pace.take(loop.time()):
            return
        peer, turn = peer_of(peer_host), loop.create_future()
        dropped = self._waiting.put(peer, turn)
        if dropped is not None and not dropped.done():
            dropped.set_exception(HttpError(503, "Service Unavailable", "Too many requests wait at this node."))
        self._set_timer(loop)
        try:
            await turn
        except asyncio.CancelledError:
            self._waiting.discard(peer, turn)
            raise

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is None and self._waiting:
            self._timer = loop.call_at(self._pace.next_s, self._on_time, loop)

    def _on_time(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        # The clock of the loop may stand a little before the time of the timer.
        now_s = max(loop.time(), self._pace.next_s)
        while self._waiting and self._pace.take(now_s):
            turn = self._waiting.take()
            if not turn.done():
                turn.set_result(None)
        self._set_timer(loop)
