"""A node that is a controller and no broker, a broker beside it, and the HTTP administration of the controller.

All that brokers know is asked of the other node.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from typing import Any

import aiohttp
from admin_http import served

from penstock.broker.admin.operations import OPERATIONS
from penstock.broker.configuration.node_config import load
from penstock.broker.node.admin_ports import ports_of
from penstock.broker.node.server import Node
from penstock.storage.disk.memory_files import MemoryFiles

CONTROLLER, BROKER = 1, 2
DEADLINE_S = 60
NOW_MS = 1_700_000_000_000
NONE: Mapping[str, str] = {}


def node(properties: Mapping[str, str], voters: str) -> Node:
    common = {"controller.quorum.voters": voters, "cluster.secret": "hush", "log.dirs": "/data"}
    return Node(
        load({**common, **properties}),
        MemoryFiles(),
        loop=asyncio.get_running_loop(),
        wall_clock_ms=lambda: NOW_MS,
        random=Random(7),
    )


@asynccontextmanager
async def controller_and_broker(
    properties: Mapping[str, str] = NONE,
) -> AsyncIterator[tuple[Node, Node, aiohttp.ClientSession]]:
    """A controller, a broker that follows it, and what the controller serves by HTTP. `properties` are of both."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(DEADLINE_S), AsyncExitStack() as stack:
        controller = node(
            {
                **properties,
                "node.id": str(CONTROLLER),
                "process.roles": "controller",
                "listeners": "CONTROLLER://127.0.0.1:0",
            },
            f"{CONTROLLER}@127.0.0.1:1",
        )
        await controller.start()
        stack.push_async_callback(controller.stop)
        port = controller.bound_ports["CONTROLLER"]
        broker = node(
            {
                **properties,
                "node.id": str(BROKER),
                "process.roles": "broker",
                "listeners": "PLAINTEXT://127.0.0.1:0",
            },
            f"{CONTROLLER}@127.0.0.1:{port}",
        )
        await broker.start()
        stack.push_async_callback(broker.stop)
        ports = ports_of(controller, controller.config, loop, lambda: NOW_MS, started_ms=lambda: NOW_MS)
        http = await stack.enter_async_context(served(loop, OPERATIONS, ports))
        yield controller, broker, http


async def told(http: aiohttp.ClientSession, path: str, status: int = 200) -> Any:
    answer = await http.get(path)
    assert answer.status == status, await answer.text()
    return await answer.json(content_type=None)
