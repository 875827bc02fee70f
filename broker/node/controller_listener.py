"""The listener of a controller: what other nodes, and Kafka's tools, ask of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from ...protocol.ids import NodeId
from ...quorum.controller.controller import Controller
from ...quorum.links.rules.peer_proof import PeerHello
from ...quorum.raft.consensus import Consensus
from ...quorum.voter.snapshots import Snapshots
from ..apis import sasl_authentication
from ..cluster.controller_channel import LocalControllerChannel
from ..cluster.metadata_cache import MetadataCache
from ..cluster.rules.quorum_view import QuorumView
from ..cluster.tls_contexts import TlsContexts
from ..configuration.node_config import NodeConfig
from ..configuration.topic_configs import ConfigResolver
from ..network.connection_host import NEVER_MS, ConnectionHost
from ..network.dispatch import Dispatcher
from ..network.handlers import Handlers
from ..network.listeners import Listeners
from ..network.peer_log import PeerLog
from ..network.protocol_sniffer import LinkAcceptor
from ..network.request import RequestContext
from ..network.rules.connection_limits import ConnectionLimits
from ..network.rules.request_memory import RequestMemory
from ..network.rules.request_statistics import RequestStatistics
from ..quotas.client_quotas import ClientQuotas
from ..security.rules.sasl_mechanisms import SaslMechanisms
from ..security.wiring import authorizer_of
from .controller_handlers import table
from .controller_handlers.decided_request import outcome_tags
from .controller_handlers.dependencies import ControllerHandlerDependencies
from .heartbeat_connections import HeartbeatConnections

DRAIN_TIMEOUT_MS = 2_000
"""For other nodes that do not read their answers while this one stops."""


class ControllerListener:
    """Bound first, then started; `stop` answers what has begun."""

    def __init__(
        self,
        config: NodeConfig,
        consensus: Consensus,
        controller: Controller,
        metadata: MetadataCache,
        configs: ConfigResolver,
        snapshots: Snapshots,
        view: QuorumView,
        *,
        hello: Callable[[], PeerHello],
        tls: TlsContexts,
        sasl: SaslMechanisms,
        quotas: ClientQuotas,
        links: LinkAcceptor | None,
        loop: asyncio.AbstractEventLoop,
        wall_clock_ms: Callable[[], int],
        on_heartbeats_closed: Callable[[NodeId], None],
        on_closed_by_peer: Callable[[NodeId], None],
    ) -> None:
        """`on_heartbeats_closed` is called with the id of a broker that closed the connection of its heartbeats,
        `on_closed_by_peer` with that of a node that closed any."""
        self._controller = controller
        self._config = config
        handlers = self.handlers = Handlers()
        peer_log = PeerLog(loop)
        sasl_authentication.register(
            handlers,
            sasl_authentication.SaslDependencies(
                mechanisms=sasl,
                secret=config.cluster_secret,
                certificates=config.node_certificates,
                hello=hello,
                failed_authentication_delay_ms=config.failed_authentication_delay_ms,
                peer_log=peer_log,
                loop=loop,
                wall_clock_ms=wall_clock_ms,
            ),
        )
        heartbeats = HeartbeatConnections(on_heartbeats_closed)

        def on_connection_lost(context: RequestContext, is_closed_by_peer: bool) -> None:
            heartbeats.on_connection_lost(context, is_closed_by_peer)
            if is_closed_by_peer and context.node_id is not None:
                on_closed_by_peer(context.node_id)

        table.register(
            handlers,
            ControllerHandlerDependencies(
                config=config,
                controller=controller,
                local=LocalControllerChannel(controller),
                consensus=consensus,
                snapshots=snapshots,
                view=view,
                metadata=metadata,
                configs=configs,
                heartbeats=heartbeats,
                header_tags=outcome_tags(controller),
                loop=loop,
            ),
        )
        self.requests = RequestStatistics()
        self.dispatcher = Dispatcher(handlers, loop, peer_log, self.requests)
        host = ConnectionHost(
            loop=loop,
            begin=self.dispatcher.begin,
            overlapping=handlers.overlapping,
            memory=RequestMemory(config.queued_max_request_bytes),
            requests=self.requests,
            peer_log=peer_log,
            authorizer=authorizer_of(config, metadata, loop),
            limits=ConnectionLimits(
                total=config.max_connections,
                per_host=config.max_connections_per_ip,
                per_host_overrides=config.max_connections_per_ip_overrides,
            ),
            find_quota=quotas.find,
            request_bytes_max=config.socket_request_max_bytes,
            idle_ms_max=NEVER_MS,
            on_connection_lost=on_connection_lost,
        )
        # No rates of connections: nodes come by this listener, and no client may keep them out.
        quotas.attach(host.on_quotas_changed)
        self.listeners = Listeners(
            host,
            links,
            tls.server,
            principal_mapping_of=config.principal_mapping_of,
            sasl=config.sasl,
            failed_authentication_delay_ms=config.failed_authentication_delay_ms,
        )

    async def bind(self) -> Mapping[str, int]:
        """Returns the ports by listener name. Raises ConfigError."""
        return await self.listeners.bind(
            self._config.controller_listeners, backlog=self._config.socket_listen_backlog_size
        )

    async def start(self) -> None:
        await self.listeners.start()

    async def stop(self) -> None:
        self.listeners.close()
        self._controller.release_waiting()
        await self.listeners.drain(DRAIN_TIMEOUT_MS)
        await self.dispatcher.stop()
