"""A node as its HTTP administration sees it. Loaded when that is first asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from ssl import SSLContext

from ...protocol.ids import NodeId
from ..admin.node_ports import NodePorts
from ..configuration.admin_listeners import ADMIN
from ..configuration.node_config import NodeConfig
from .node_facts import node_facts
from .server import Node


def ports_of(
    node: Node,
    config: NodeConfig,
    loop: asyncio.AbstractEventLoop,
    wall_clock_ms: Callable[[], int],
    *,
    started_ms: Callable[[], int | None],
) -> NodePorts:
    """A node as its HTTP administration sees it."""
    return NodePorts(
        config=config,
        metadata=node.metadata,
        metrics=node.metrics,
        loop=loop,
        wall_clock_ms=wall_clock_ms,
        phase=lambda: node.phase,
        running=lambda: node.running,
        is_stopping=lambda: node.is_stopping,
        facts=lambda: node_facts(node, loop, started_ms=started_ms()),
        quorum_leader=lambda: None if node.quorum is None else node.quorum.leader_id,
        silent_voters=lambda: _silent_voters(node),
        events=node.events,
        identities=lambda: node.identities,
        authorizer=node.authorizer,
        tls=_tls_of(node, config),
    )


def _tls_of(node: Node, config: NodeConfig) -> Callable[[], SSLContext] | None:
    if ADMIN not in config.tls:
        return None

    def current() -> SSLContext:
        assert node.tls is not None, "certificates are loaded first of all"
        serve = node.tls.server(ADMIN)
        assert serve is not None
        return serve()

    return current


async def _silent_voters(node: Node) -> Mapping[NodeId, str]:
    return {} if node.quorum is None else await node.quorum.voter_access.silent()
