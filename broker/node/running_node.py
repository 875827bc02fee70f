"""What operators ask of a node that has started: of a broker, and of one that is a controller alone.

Loaded when it is asked for first: a node without HTTP administration has no use for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ...quorum.links.rules.peer_proof import PeerHello
from ..admin.node_ports import RunningNode
from ..cluster.metadata_cache import MetadataCache
from ..cluster.peer_channel import PeerChannel
from ..cluster.quorum_link import QuorumLink
from ..cluster.tls_contexts import TlsContexts
from ..configuration.node_config import REQUEST_TIMEOUT_MS, NodeConfig
from ..configuration.topic_configs import ConfigResolver
from ..network.own_requests import OwnRequests
from .wiring import BrokerParts, peers_of


def running_broker(parts: BrokerParts, quorum: QuorumLink, loop: asyncio.AbstractEventLoop) -> RunningNode:
    """It answers as to clients, and asks other brokers over its own channel."""
    return RunningNode(
        own=OwnRequests(parts.handlers, loop),
        peers=parts.admin_channel,
        describe_quorum=quorum.describe_quorum,
        voter_access=quorum.voter_access,
        controller=quorum.channel(REQUEST_TIMEOUT_MS),
    )


def running_controller(
    config: NodeConfig,
    metadata: MetadataCache,
    configs: ConfigResolver,
    quorum: QuorumLink,
    hello: Callable[[], PeerHello],
    tls: TlsContexts,
    loop: asyncio.AbstractEventLoop,
) -> RunningNode:
    """It answers what the metadata say, and asks brokers for the rest."""
    # A broker has no use for it.
    from .controller_admin import register_admin_handlers

    controller = quorum.channel(REQUEST_TIMEOUT_MS)
    handlers = register_admin_handlers(config, metadata, configs, controller, quorum.describe_quorum, tls)
    peers = PeerChannel(
        metadata,
        lambda: peers_of(config, hello, tls),
        node_id=config.node_id,
        listener_name=config.inter_broker_listener_name,
        loop=loop,
    )
    peers.attach(handlers)
    return RunningNode(
        own=OwnRequests(handlers, loop),
        peers=peers,
        describe_quorum=quorum.describe_quorum,
        voter_access=quorum.voter_access,
        controller=controller,
    )
