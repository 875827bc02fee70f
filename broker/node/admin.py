"""The HTTP administration of a node process: bound before the node starts, served once it runs, or waits."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..admin.admin_server import AdminServer
from ..configuration.admin_listeners import ADMIN_ADVERTISED_LISTENERS, advertised_admin_listeners
from ..configuration.node_config import NodeConfig
from . import garbage
from .server import Node

if TYPE_CHECKING:
    from ..admin.node_ports import NodePorts

WAITING_S: Final = 2.0
"""A node that has not started by then waits for others; operators want to know for what."""


class Admin:
    """`bind`, `begin`, `stop`."""

    def __init__(self, config: NodeConfig, loop: asyncio.AbstractEventLoop, wall_clock_ms: Callable[[], int]) -> None:
        self._config = config
        self._loop = loop
        self._wall_clock_ms = wall_clock_ms
        self._server = AdminServer(config.admin_listeners, loop, on_loaded=garbage.freeze)
        self._late: asyncio.TimerHandle | None = None
        self._started_ms: int | None = None

    def bind(self) -> NodeConfig:
        """Return the configuration with the addresses that others are told. Raises ConfigError."""
        config = self._config
        bound = self._server.bind()
        advertised = advertised_admin_listeners(config.admin_advertised_listeners, bound, socket.gethostname())
        self._config = replace(
            config,
            admin_listeners=bound,
            admin_advertised_listeners=advertised,
            properties={**config.properties, ADMIN_ADVERTISED_LISTENERS: ",".join(map(str, advertised))},
        )
        return self._config

    def begin(self, node: Node) -> None:
        """Connections are served from when the node runs (`on_started`), or in WAITING_S."""
        self._late = self._loop.call_later(WAITING_S, self._serve, node)

    def on_started(self, node: Node) -> None:
        self._started_ms = self._wall_clock_ms()
        self._serve(node)

    def _serve(self, node: Node) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
        if self._server.is_begun:
            return
        self._server.begin(lambda: self._ports(node), self._known_hosts())

    def _ports(self, node: Node) -> NodePorts:
        from .admin_ports import ports_of

        return ports_of(node, self._config, self._loop, self._wall_clock_ms, started_ms=lambda: self._started_ms)

    def _known_hosts(self) -> frozenset[str]:
        config = self._config
        advertised = (listener.host.lower() for listener in config.admin_advertised_listeners)
        return frozenset({"localhost", socket.gethostname().lower(), *advertised, *config.admin_allowed_hosts})

    async def stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
        await self._server.stop()
