"""Looking whether anybody listens at an address."""

import asyncio
import socket
from ipaddress import ip_address
from typing import Final, TypeAlias

_Address: TypeAlias = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]


class Refused:
    """The machine is there and says that nobody listens."""


class Unclear:
    """Neither accepted nor refused in time."""


REFUSED: Final = Refused()
UNCLEAR: Final = Unclear()


async def knock(
    loop: asyncio.AbstractEventLoop, host: str, port: int, *, timeout_s: float
) -> socket.socket | Refused | Unclear:
    """Return a connection, the caller's to close, or why there is none. Of a name, all addresses must refuse."""
    try:
        async with asyncio.timeout(timeout_s):
            addresses = await _addresses(loop, host, port)
            for family, address in addresses:
                knocking = socket.socket(family, socket.SOCK_STREAM)
                try:
                    knocking.setblocking(False)
                    await loop.sock_connect(knocking, address)
                except ConnectionRefusedError:
                    knocking.close()
                except BaseException:
                    knocking.close()
                    raise
                else:
                    return knocking
            return REFUSED if addresses else UNCLEAR
    except (OSError, TimeoutError):
        return UNCLEAR


async def is_closed_by_peer(loop: asyncio.AbstractEventLoop, connection: socket.socket, *, within_s: float) -> bool:
    """Return whether the other side closes a connection in that time; it is closed afterwards in any case."""
    with connection:
        try:
            async with asyncio.timeout(within_s):
                return not await loop.sock_recv(connection, 1)
        except ConnectionError:
            return True
        except (OSError, TimeoutError):
            return False


async def _addresses(loop: asyncio.AbstractEventLoop, host: str, port: int) -> list[tuple[int, _Address]]:
    try:
        family = socket.AF_INET if ip_address(host).version == 4 else socket.AF_INET6
    except ValueError:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [(family, address) for family, _, _, _, address in found]
    return [(family, (host, port))]
