"""Log lines about what peers do: at most one a second for each peer, ever fewer for one that does not stop.

A peer is a host: a client that reconnects for each bad frame comes from another port every time.
"""

from __future__ import annotations

import asyncio
import logging

from msgspec import Struct

PEERS_MAX = 256
"""Told apart within one second. What further ones cause is counted together: many peers must not flood either."""
PAUSE_S = 1.0
"""Doubles as long as the peer goes on, up to the next."""
PAUSE_S_MAX = 16.0
_OTHERS = "others"

logger = logging.getLogger(__name__)


class PeerLog:
    """The first line of a peer is written at once; those of the pause after it are counted, and the count is a line.

    That line ends with the latest of them, so that a peer that never stops is still told by its reasons.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, logger: logging.Logger = logger) -> None:
        self._loop = loop
        self._logger = logger
        self._peers: dict[str, _Suppressed] = {}
        """While their pause lasts."""

    def write(
        self, level: int, peer_host: str, message: str, *arguments: object, error: BaseException | None = None
    ) -> None:
        """One event, with its fields in `arguments`. `error` is written with its traceback."""
        if peer_host not in self._peers and len(self._peers) >= PEERS_MAX:
            peer_host = _OTHERS
        suppressed = self._peers.get(peer_host)
        if suppressed is not None:
            suppressed.count += 1
            suppressed.message, suppressed.arguments = message, arguments
            return
        self._logger.log(level, message, *arguments, exc_info=error)
        self._pause(peer_host, PAUSE_S)

    def _pause(self, peer_host: str, pause_s: float) -> None:
        self._peers[peer_host] = _Suppressed(pause_s)
        self._loop.call_later(pause_s, self._go_on, peer_host)

    def _go_on(self, peer_host: str) -> None:
        suppressed = self._peers.pop(peer_host)
        if suppressed.count:
            last = suppressed.message % suppressed.arguments
            self._logger.warning("Log lines suppressed: peer=%s count=%d last: %s", peer_host, suppressed.count, last)
            self._pause(peer_host, min(2 * suppressed.pause_s, PAUSE_S_MAX))


class _Suppressed(Struct):
    """What one peer did in the pause behind its line."""

    pause_s: float
    count: int = 0
    message: str = ""
    arguments: tuple[object, ...] = ()
