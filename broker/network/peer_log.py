"""Log lines about what peers do, at most one a second for each peer.

A peer is a host: whoever reconnects for each bad frame comes from another port every time.
"""

from __future__ import annotations

import asyncio
import logging

PEERS_MAX = 256
"""Told apart within one second. What further ones cause is counted together: many peers must not flood either."""
PAUSE_S = 1.0
_OTHERS = "others"

logger = logging.getLogger(__name__)


class PeerLog:
    """The first line of a peer is written at once; those of the next second are counted, and the count is a line."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._suppressed: dict[str, int] = {}
        """By peer, while its second lasts."""

    def write(
        self, level: int, peer_host: str, message: str, *arguments: object, error: BaseException | None = None
    ) -> None:
        """One event, with its fields in `arguments`. `error` is written with its traceback."""
        suppressed = self._suppressed
        if peer_host not in suppressed and len(suppressed) >= PEERS_MAX:
            peer_host = _OTHERS
        if peer_host in suppressed:
            suppressed[peer_host] += 1
            return
        logger.log(level, message, *arguments, exc_info=error)
        self._pause(peer_host)

    def _pause(self, peer_host: str) -> None:
        self._suppressed[peer_host] = 0
        self._loop.call_later(PAUSE_S, self._go_on, peer_host)

    def _go_on(self, peer_host: str) -> None:
        count = self._suppressed.pop(peer_host)
        if count:
            logger.warning("log lines suppressed: peer=%s count=%d within=%gs", peer_host, count, PAUSE_S)
            self._pause(peer_host)
