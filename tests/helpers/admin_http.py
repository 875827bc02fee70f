"""The HTTP administration of a node in this process, on a free port, for tests that ask it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from memory_node import World

from penstock.broker.admin.admin_server import AdminServer
from penstock.broker.admin.application import make_application
from penstock.broker.admin.http_server import HttpServer
from penstock.broker.admin.node_ports import NodePorts, RunningNode
from penstock.broker.admin.operation import Operation
from penstock.broker.admin.operations import OPERATIONS
from penstock.broker.cluster.metadata_cache import MetadataCache
from penstock.broker.configuration.admin_listeners import AdminListener
from penstock.broker.configuration.node_config import load
from penstock.broker.metrics.metrics import Metrics
from penstock.broker.node.admin_ports import ports_of
from penstock.broker.node.server import Node
from penstock.client.connection import Connection
from penstock.protocol.ids import NodeId


def puppet_ports(
    loop: Any, *, metadata: MetadataCache | None = None, running: Callable[[], RunningNode | None] = lambda: None
) -> NodePorts:
    """A node that serves nothing by itself."""
    return NodePorts(
        config=load({}),
        metadata=metadata or MetadataCache(),
        metrics=Metrics(loop, NodeId(1)),
        loop=loop,
        wall_clock_ms=lambda: 1_000,
        phase=lambda: "It is a puppet.",
        running=running,
    )


@asynccontextmanager
async def asked(world: World, **properties: str) -> AsyncIterator[tuple[Node, Connection, aiohttp.ClientSession]]:
    """A whole node on a disk in memory, a connection to it, and all that it serves by HTTP."""
    loop = asyncio.get_running_loop()
    async with world.running(**properties) as (node, connection):
        ports = ports_of(node, node.config, loop, lambda: world.now_ms, started_ms=lambda: world.now_ms)
        async with served(loop, OPERATIONS, ports) as session:
            yield node, connection, session


@asynccontextmanager
async def served(
    loop: Any, operations: Sequence[Operation], node: NodePorts | None = None
) -> AsyncIterator[aiohttp.ClientSession]:
    """A session of a client whose paths begin at the server of these operations."""
    server = AdminServer((AdminListener(host="127.0.0.1", port=0),), loop, on_loaded=lambda: None)
    (bound,) = server.bind()
    application = make_application(node or puppet_ports(loop), operations, frozenset({"localhost"}))
    http = HttpServer(application, loop)
    await http.start(server.sockets)
    answers: list[aiohttp.ClientResponse] = []
    tracing = aiohttp.TraceConfig()

    async def remember(_session: Any, _context: Any, ended: aiohttp.TraceRequestEndParams) -> None:
        answers.append(ended.response)

    tracing.on_request_end.append(remember)
    try:
        async with aiohttp.ClientSession(base_url=str(bound), trace_configs=[tracing]) as session:
            yield session
            # Tests look at a status and leave the rest: no connection may be open when its answer is collected.
            for answer in answers:
                answer.close()
    finally:
        await http.stop()
        server.close()
