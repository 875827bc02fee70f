"""Probes whether an address accepts connections."""

import asyncio
import socket
from ipaddress import ip_address
from typing import Final, cast


class Refused:
    """The machine refuses the connection: no process listens."""


class Unclear:
    """Neither accepted nor refused in time."""


REFUSED: Final = Refused()
UNCLEAR: Final = Unclear()


class Accepted(asyncio.Protocol):
    """The port accepted the connection; the caller must close it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._transport: asyncio.Transport | None = None
        self._is_closed: asyncio.Future[bool] = loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's by class.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, _: bytes) -> None:
        self._tell(is_closed=False)

    def connection_lost(self, _: Exception | None) -> None:
        self._tell(is_closed=True)

    def _tell(self, *, is_closed: bool) -> None:
        if not self._is_closed.done():
            self._is_closed.set_result(is_closed)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def is_closed_by_peer(self, *, within_s: float) -> bool:
        """Return whether the other side closes in that time, without a word; it is closed afterwards in any case."""
        try:
            async with asyncio.timeout(within_s):
                return await self._is_closed
        except TimeoutError:
            return False
        finally:
            self.close()


async def probe_port(
    loop: asyncio.AbstractEventLoop, host: str, port: int, *, timeout_s: float
) -> Accepted | Refused | Unclear:
    """Return a connection, or the reason for a failure. Of a name, all addresses must refuse."""
    try:
        async with asyncio.timeout(timeout_s):
            addresses = await _addresses(loop, host, port)
            for address in addresses:
                try:
                    _, door = await loop.create_connection(lambda: Accepted(loop), address, port)
                except ConnectionRefusedError:
                    continue
                return door
            return REFUSED if addresses else UNCLEAR
    except (OSError, ValueError):
        # ValueError: what a broker says of where it is need not be a name that a machine can have.
        return UNCLEAR


async def _addresses(loop: asyncio.AbstractEventLoop, host: str, port: int) -> list[str]:
    try:
        return [str(ip_address(host))]
    except ValueError:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [str(address[0]) for _, _, _, _, address in found]
