"""Connections of https until TLS is there: each counts from the moment it is taken, and how many there are is bounded.

A server of asyncio's with `ssl` makes a protocol once the handshake is over: clients that never begin one would
hold as many files of the node as they like.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Container, Iterator
from functools import partial
from typing import Any, Final

from ..network.rules.fair_queue import peer_of

HANDSHAKE_TIMEOUT_S: Final = 10.0
NO_FILE_PAUSE_S: Final = 1.0
"""After a connection that could not be taken: most often the process has no file left."""

logger = logging.getLogger(__name__)


class TlsDoor:
    """Takes the connections of sockets that listen. Those of `make_protocol` begin when TLS is there."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        context: Callable[[], ssl.SSLContext],
        make_protocol: Callable[[str], asyncio.Protocol],
        has_place: Callable[[str], bool],
    ) -> None:
        """`context` is asked for each connection: certificates are renewed meanwhile. One for which there is no place
        is closed. `make_protocol` and `has_place` are told its address."""
        self._loop = loop
        self._context = context
        self._make_protocol = make_protocol
        self._has_place = has_place
        self._taking: list[asyncio.Task[None]] = []
        self._handshakes: dict[asyncio.Task[None], tuple[float, str]] = {}
        """Since when they run and of which peer, the oldest first."""

    def __len__(self) -> int:
        """How many handshakes run."""
        return len(self._handshakes)

    @property
    def peers(self) -> Iterator[str]:
        """Of each handshake that runs."""
        return (peer for _, peer in self._handshakes.values())

    def open(self, listening: socket.socket) -> None:
        self._taking.append(self._loop.create_task(self._take(listening)))

    async def close(self) -> None:
        """Leaves the sockets that listen alone."""
        tasks = (*self._taking, *self._handshakes)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def give_up_one(self, idle_s: float, peers: Container[str]) -> bool:
        """Closes the connection of these whose handshake has lasted longest. False where none has for so long."""
        of_peers = ((one, begun_s) for one, (begun_s, peer) in self._handshakes.items() if peer in peers)
        oldest, begun_s = next(of_peers, (None, 0.0))
        if oldest is None or self._loop.time() - begun_s < idle_s:
            return False
        del self._handshakes[oldest]
        oldest.cancel()
        return True

    async def _take(self, listening: socket.socket) -> None:
        while True:
            try:
                taken, address = await self._loop.sock_accept(listening)
            except OSError as error:
                logger.warning("HTTP connection could not be taken: %s", error)
                await asyncio.sleep(NO_FILE_PAUSE_S)
                continue
            host = host_of(address)
            if not self._has_place(host):
                taken.close()
                continue
            task = self._loop.create_task(self._secure(taken, host))
            self._handshakes[task] = (self._loop.time(), peer_of(host))
            task.add_done_callback(lambda done: self._handshakes.pop(done, None))

    async def _secure(self, taken: socket.socket, host: str) -> None:
        try:
            make_protocol = partial(self._make_protocol, host)
            await self._loop.connect_accepted_socket(
                make_protocol,
                taken,
                ssl=self._context(),
                ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S,
            )
        except (OSError, TimeoutError) as error:
            # An ssl.SSLError is an OSError. A client that fails is no event of the node's.
            logger.debug("TLS handshake of HTTP failed: %s", error)
            taken.close()


def host_of(address: Any) -> str:
    """Of an address as sockets tell it; empty where it is not known."""
    return str(address[0]) if address else ""
