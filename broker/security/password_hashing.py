"""The thread in which passwords of clients are hashed that have proved nothing yet.

Hashing takes milliseconds (RFC 8018), so it has a thread of its own: it keeps no other work waiting, and takes at most
one core. Peers take turns, and few logins wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ..network.rules.fair_queue import FairQueue, peer_of

WAITING_MAX: Final = 32
"""Logins; with 16,384 iterations of SHA-512 the last one waits for half a second."""


class TooManyLogins(Exception):  # noqa: N818 - it is an answer, not a fault
    """More logins wait than may: this one can be tried again."""


class PasswordHashing:
    """Of one node. Its thread begins with the first password."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._threads = ThreadPoolExecutor(1, "passwords")
        self._is_busy = False
        self._is_closed = False
        self._waiting: FairQueue[asyncio.Future[None]] = FairQueue(items_max=WAITING_MAX)

    async def run(self, peer_host: str, hash_password: Callable[[], bytes]) -> bytes:
        """Returns what `hash_password` does. Raises TooManyLogins, also once it is closed."""
        if self._is_busy:
            await self._wait(peer_of(peer_host))
        if self._is_closed:
            self._pass_on()
            raise TooManyLogins
        self._is_busy = True
        hashed = self._loop.run_in_executor(self._threads, hash_password)
        hashed.add_done_callback(self._on_hashed)
        # A client that is gone does not free the thread.
        return await asyncio.shield(hashed)

    def close(self) -> None:
        """Nothing is hashed any more; what runs ends by itself."""
        self._is_closed = True
        self._threads.shutdown(wait=False)

    async def _wait(self, peer: str) -> None:
        turn: asyncio.Future[None] = self._loop.create_future()
        dropped = self._waiting.put(peer, turn)
        if dropped is not None and not dropped.done():
            dropped.set_exception(TooManyLogins)
        try:
            await turn
        except asyncio.CancelledError:
            self._waiting.discard(peer, turn)
            if not turn.cancelled() and turn.exception() is None:
                # Its turn had come in the moment in which it was given up.
                self._pass_on()
            raise

    def _on_hashed(self, _hashed: asyncio.Future[bytes]) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        """The thread stays busy, for the login whose turn has come, where one waits."""
        while self._waiting:
            turn = self._waiting.take()
            if not turn.done():
                turn.set_result(None)
                return
        self._is_busy = False
