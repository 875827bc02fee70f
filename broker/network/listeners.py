"""The sockets on which the node accepts connections, by listener name."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType

from msgspec import Struct

from ...protocol.errors import ConfigError
from ..configuration.listener_config import ListenerConfig
from ..configuration.principal_mapping import PrincipalMapping
from ..configuration.sasl_config import SaslConfig
from .connection import Connection
from .connection_host import Authentication, ConnectionHost
from .protocol_sniffer import LinkAcceptor, ProtocolSniffer, UnknownConnections
from .sasl_connection import SaslConnection
from .tls_transport import TlsHost, TlsTransport

logger = logging.getLogger(__name__)


class NetworkStatistics(Struct, frozen=True, kw_only=True):
    """Counts since start, but for `connections` and `request_memory_bytes`, which are of now."""

    connections: int
    connections_opened: int
    connections_closed: int
    connections_refused: int
    connections_throttled: int
    connections_failed: int
    connections_idle_closed: int
    requests: int
    bytes_in: int
    bytes_out: int
    request_memory_bytes: int
    request_memory_limit_bytes: int
    open_by_listener: Mapping[str, int]
    opened_by_listener: Mapping[str, int]
    authentications: Mapping[tuple[str, Authentication], int]
    sessions_expired: int


class Listeners:
    """Binds first, accepts later, so that a node can tell its ports before it is ready for clients."""

    def __init__(
        self,
        host: ConnectionHost,
        links: LinkAcceptor | None = None,
        tls_of: Callable[[str], Callable[[], ssl.SSLContext] | None] = lambda _name: None,
        *,
        principal_mapping_of: Callable[[str], PrincipalMapping | None] = lambda _name: None,
        sasl: Mapping[str, SaslConfig] = MappingProxyType({}),
        failed_authentication_delay_ms: int = 0,
    ) -> None:
        """`links` shares the ports. `tls_of` gives what makes the contexts of a listener by its name, None for one
        without TLS, and `principal_mapping_of` what says who its clients' certificates name. `sasl` has the listeners
        with SASL."""
        self._host = host
        self._links = links
        self._unknown = UnknownConnections(host.loop)
        self._tls_of = tls_of
        self._principal_mapping_of = principal_mapping_of
        self._sasl = sasl
        self._failed_authentication_delay_ms = failed_authentication_delay_ms
        self._tls_hosts: list[TlsHost] = []
        self._servers: dict[str, asyncio.Server] = {}

    async def bind(self, configs: Sequence[ListenerConfig], *, backlog: int) -> Mapping[str, int]:
        """Binds every listener; the ports by listener name, where port 0 was the system's choice.

        Raises ConfigError when an address cannot be had.
        """
        ports: dict[str, int] = {}
        for config in configs:
            try:
                server = await self._host.loop.create_server(
                    self._protocols(config.name),
                    config.host or None,
                    config.port,
                    backlog=backlog,
                    start_serving=False,
                )
            except OSError as error:
                raise ConfigError(f"Listener {config} cannot be bound: {error.strerror or error}.") from error
            self._servers[config.name] = server
            ports[config.name] = server.sockets[0].getsockname()[1]
        return ports

    def _protocols(self, listener_name: str) -> Callable[[], asyncio.BaseProtocol]:
        """What makes the protocol of each connection."""
        make_connection: Callable[[], Connection] = partial(Connection, self._host, listener_name)
        sasl = self._sasl.get(listener_name)
        if sasl is not None:
            make_connection = partial(
                SaslConnection,
                self._host,
                listener_name,
                frame_bytes_max=sasl.max_receive_size,
                refusal_delay_s=self._failed_authentication_delay_ms / 1000,
            )
        make: Callable[[], asyncio.BaseProtocol] = make_connection
        if self._links is not None:
            make = partial(ProtocolSniffer, self._links, make_connection, self._unknown)
        context = self._tls_of(listener_name)
        if context is None:
            return make
        tls = TlsHost(
            host=self._host,
            listener_name=listener_name,
            context=context,
            make_protocol=make,
            principal_mapping=self._principal_mapping_of(listener_name),
        )
        self._tls_hosts.append(tls)
        return partial(TlsTransport, tls)

    async def start(self) -> None:
        """From now on connections are accepted. Raises ConfigError when another process listens there meanwhile."""
        for name, server in self._servers.items():
            told = ", ".join(":".join(map(str, one.getsockname()[:2])) for one in server.sockets)
            with suppress(OSError):
                await server.start_serving()
                # uvloop says nothing of a socket that cannot listen, and closes it.
                if all(one.fileno() >= 0 for one in server.sockets):
                    continue
            raise ConfigError(f"Listener {name} cannot listen on {told}: another process listens there.")

    def close(self) -> None:
        """Nothing more is accepted; connections stay."""
        for server in self._servers.values():
            server.close()
        self._unknown.abort_all()

    async def drain(self, timeout_ms: int) -> None:
        """Lets every connection answer what it has begun, begin nothing more, and close; aborts what takes longer."""
        for tls in self._tls_hosts:
            for handshaking in (*tls.handshaking, *tls.throttled):
                handshaking.abort()
        connections = self._host.connections
        for connection in tuple(connections):
            connection.drain()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._host.has_no_connections.wait()
        except TimeoutError:
            logger.warning("Connections aborted: count=%d reason=not drained in %d ms", len(connections), timeout_ms)
        for connection in tuple(connections):
            connection.abort()

    def client_software(self) -> Iterator[tuple[str, str]]:
        """Listener and client software of each open connection. May be left and gone on with."""
        for connection in tuple(self._host.connections):
            yield connection.listener_name, connection.client_software

    def statistics(self) -> NetworkStatistics:
        counters = self._host.counters
        return NetworkStatistics(
            connections=len(self._host.connections),
            connections_opened=counters.connections_opened,
            connections_closed=counters.connections_closed,
            connections_refused=counters.connections_refused,
            connections_throttled=counters.connections_throttled,
            connections_failed=counters.connections_failed,
            connections_idle_closed=counters.connections_idle_closed,
            requests=self._host.requests.count,
            bytes_in=counters.bytes_in,
            bytes_out=counters.bytes_out + sum(connection.sent_bytes for connection in self._host.connections),
            request_memory_bytes=self._host.memory.used_bytes,
            request_memory_limit_bytes=self._host.memory.limit_bytes,
            open_by_listener=Counter(one.listener_name for one in self._host.connections),
            opened_by_listener=dict(self._host.opened_by_listener),
            authentications=dict(self._host.authentications),
            sessions_expired=counters.sessions_expired,
        )
