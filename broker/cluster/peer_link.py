"""A connection to another node that stays open, and answers that are given up when they will not come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

from ...protocol.ids import NodeId

if TYPE_CHECKING:
    from ...client.connection import Connection
    from .peers import PeerConnector

CONNECT_TIMEOUT_MS: Final = 2_000

T = TypeVar("T")


class PeerLink:
    """To one node at a time. Not for concurrent use."""

    __slots__ = ("_address", "_connection", "_node_id", "_peers")

    def __init__(self, peers: Callable[[], PeerConnector]) -> None:
        """`peers` is called for each new connection."""
        self._peers = peers
        self._connection: Connection | None = None
        self._node_id = -1
        self._address = ("", 0)

    async def connect(
        self, node_id: NodeId, address: tuple[str, int], *, timeout_ms: int = CONNECT_TIMEOUT_MS
    ) -> Connection:
        """Returns the open connection, or a new one if it is lost or leads elsewhere. Raises as
        `PeerConnector.connect`."""
        connection = self.open_connection(node_id, address)
        if connection is not None:
            return connection
        await self.close()
        self._connection, _ = await self._peers().connect(*address, node_id=node_id, timeout_ms=timeout_ms)
        self._node_id, self._address = node_id, address
        return self._connection

    def open_connection(self, node_id: NodeId, address: tuple[str, int]) -> Connection | None:
        """What `connect` would return without a wait; None when it would make a connection."""
        connection = self._connection
        if connection is not None and connection.is_open and (node_id, address) == (self._node_id, self._address):
            return connection
        return None

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


async def answer_unless(answer: Awaitable[T], lost: Callable[[], str | None], *, check_ms: int) -> T:
    """Awaits `answer`; raises ConnectionError once `lost`, called every `check_ms`, returns a reason.

    A process that stands still keeps its connections and answers nothing.
    """
    call = asyncio.ensure_future(answer)
    try:
        while not (await asyncio.wait({call}, timeout=check_ms / 1000))[0]:
            reason = lost()
            if reason is not None:
                raise ConnectionError(reason)
    finally:
        call.cancel()
    return await call
