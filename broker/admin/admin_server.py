"""The listening sockets of the HTTP administration.

They are bound before the node starts, and cost it nothing else: what serves them (`application.py`, aiohttp) is loaded,
in a thread, when the first connection comes. A node at which no one looks stays as small as it was.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...protocol.errors import ConfigError
from ...protocol.structs import replace
from ..configuration.admin_listeners import ADMIN_LISTENERS, HTTPS, AdminListener

if TYPE_CHECKING:
    from .http_server import HttpServer
    from .node_ports import NodePorts

logger = logging.getLogger(__name__)

BACKLOG = 64


class AdminServer:
    """`bind`, `begin` once the node may be looked at, `stop`."""

    def __init__(
        self, listeners: Sequence[AdminListener], loop: asyncio.AbstractEventLoop, on_loaded: Callable[[], None]
    ) -> None:
        """`on_loaded` is called when the modules have been loaded."""
        self._listeners = listeners
        self._loop = loop
        self._on_loaded = on_loaded
        self.sockets: list[socket.socket] = []
        self._node: Callable[[], NodePorts] | None = None
        self._known_hosts: frozenset[str] = frozenset()
        self._activation: asyncio.Task[None] | None = None
        self._server: HttpServer | None = None

    def bind(self) -> tuple[AdminListener, ...]:
        """Return where it listens, with the ports that the system chose. Raises ConfigError."""
        bound = []
        for listener in self._listeners:
            try:
                one = _listen(listener)
            except OSError as error:
                self.close()
                reason = error.strerror or error
                raise ConfigError(f"{ADMIN_LISTENERS} names {listener}, which cannot be bound: {reason}.") from error
            self.sockets.append(one)
            bound.append(replace(listener, port=one.getsockname()[1]))
        return tuple(bound)

    def begin(self, node: Callable[[], NodePorts], known_hosts: frozenset[str]) -> None:
        """From now on connections are served. `node` is called with the first one, in a thread.

        `known_hosts`: see `guards.refusal_of`.
        """
        self._node = node
        self._known_hosts = known_hosts
        for one in self.sockets:
            self._loop.add_reader(one.fileno(), self._on_first_connection)

    @property
    def is_begun(self) -> bool:
        return self._node is not None

    def _on_first_connection(self) -> None:
        for one in self.sockets:
            self._loop.remove_reader(one.fileno())
        self._activation = self._loop.create_task(self._activate())

    async def _activate(self) -> None:
        assert self._node is not None, "it has begun"
        try:
            make_server, node = await self._loop.run_in_executor(None, _load, self._node)
            self._server = make_server(node, self._known_hosts, self._loop)
            encrypted = [
                one for one, listener in zip(self.sockets, self._listeners, strict=True) if listener.scheme == HTTPS
            ]
            await self._server.start(self.sockets, encrypted)
            self._on_loaded()
        except Exception:
            # Records go on; the administration is not there.
            logger.exception("HTTP administration failed to start")

    async def stop(self) -> None:
        """Ends what runs, and closes the sockets."""
        if self._node is not None and self._activation is None:
            for one in self.sockets:
                self._loop.remove_reader(one.fileno())
        if self._activation is not None:
            await asyncio.wait((self._activation,))
        if self._server is not None:
            await self._server.stop()
        self.close()

    def close(self) -> None:
        for one in self.sockets:
            one.close()
        self.sockets.clear()


def _load(
    node: Callable[[], NodePorts],
) -> tuple[Callable[[NodePorts, frozenset[str], asyncio.AbstractEventLoop], HttpServer], NodePorts]:
    from .http_server import make_server

    return make_server, node()


def _listen(listener: AdminListener) -> socket.socket:
    host = listener.host or "0.0.0.0"
    family, _, _, _, address = socket.getaddrinfo(
        host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.setblocking(False)
        one.bind(address)
        one.listen(BACKLOG)
    except BaseException:
        one.close()
        raise
    return one
