"""The process of one node: event loop, clock, chance, signals, log lines, exit status.

Exit status: 0 after a graceful stop, 1 when the node failed, 2 when it cannot start as it is configured.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import sys
import time
from collections.abc import Callable
from random import Random, SystemRandom
from typing import Any

from ...protocol.errors import ConfigError
from ...storage.disk.files import DiskFiles, Files
from ..configuration.node_config import NodeConfig
from ..network.handlers import Intercept
from . import garbage
from .admin import Admin
from .listener_check import unusable_listener
from .log_lines import log_to_standard_error
from .server import Node

logger = logging.getLogger(__name__)

SWITCH_INTERVAL_S = 0.0001
"""A thread of the executor that has come back from the disk holds the loop up at most that long (default: 5 ms)."""


def raise_open_files_limit() -> None:
    """As many files and sockets as the system lets a process have: the usual soft limit of 1,024 is for `select`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        logger.warning("Failed to raise the limit of open files, it stays at %d: %s", soft, error)


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


def run(
    config: NodeConfig,
    *,
    files: Files | None = None,
    wall_clock_ms: Callable[[], int] = wall_clock_ms,
    intercept: Intercept | None = None,
) -> int:
    """Runs the node until it is told to stop; returns the exit status. The machine's disk is its, unless given one."""
    log_to_standard_error(config.log_level)
    raise_open_files_limit()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    garbage.begin()
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        node_files = DiskFiles() if files is None else files
        return loop.run_until_complete(_run(config, node_files, wall_clock_ms, intercept, loop))
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop where there is one; asyncio's own serves the same, slower."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _run(
    config: NodeConfig,
    files: Files,
    wall_clock_ms: Callable[[], int],
    intercept: Intercept | None,
    loop: asyncio.AbstractEventLoop,
) -> int:
    for warning in config.warnings:
        logger.warning("Configuration: %s", warning)
    problem = unusable_listener(config.bound_listeners)
    if problem is not None:
        sys.stderr.write(f"penstock: {problem}\n")
        return 2
    told_to_stop: asyncio.Future[str] = loop.create_future()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
            # By nohup.
            continue
        loop.add_signal_handler(number, _tell_to_stop, told_to_stop, number.name)
    admin = Admin(config, loop, wall_clock_ms)
    try:
        config = admin.bind()
    except ConfigError as error:
        sys.stderr.write(f"penstock: {error}\n")
        return 2
    node = Node(
        config,
        files,
        loop=loop,
        wall_clock_ms=wall_clock_ms,
        random=Random(),
        random_bytes=SystemRandom().randbytes,
        followers=(garbage.FreezeLargeChanges(),),
        intercept=intercept,
    )
    admin.begin(node)
    try:
        return await _run_node(node, admin, told_to_stop, loop)
    finally:
        await admin.stop()


async def _run_node(
    node: Node, admin: Admin, told_to_stop: asyncio.Future[str], loop: asyncio.AbstractEventLoop
) -> int:
    # A node may have to wait for its cluster before it can start.
    starting = loop.create_task(node.start())
    either: set[asyncio.Future[Any]] = {starting, told_to_stop}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.wait({starting})
        logger.info("Shutting down before startup is complete: reason=%s", told_to_stop.result())
        return 0
    try:
        starting.result()
    except ConfigError as error:
        sys.stderr.write(f"penstock: {error}\n")
        return 2
    garbage.freeze()
    admin.on_started(node)
    node.metrics.start()
    await asyncio.wait({told_to_stop, node.failure}, return_when=asyncio.FIRST_COMPLETED)
    if node.failure.done():
        logger.critical("Encountered fatal fault: reason=%s", node.failure.result())
        await node.stop()
        return 1
    logger.info("Shutting down: reason=%s", told_to_stop.result())
    await node.stop()
    return 0


def _tell_to_stop(told_to_stop: asyncio.Future[str], reason: str) -> None:
    if not told_to_stop.done():
        told_to_stop.set_result(reason)
