"""Asks a cluster over the protocol whether it can be used."""

import socket
from typing import Final

from ..client import clock
from .local_node import LocalNode
from .metadata_probe import MAX_RESPONSE_SIZE, REQUEST, SIZE, broker_ids

# For one question; a node that listens answers in milliseconds.
_ATTEMPT_S: Final = 2.0
_POLL_S: Final = 0.005


def wait_ready(nodes: tuple[LocalNode, ...], *, timeout_s: float) -> None:
    """Returns once each of these nodes, asked itself, lists all of them as live brokers.

    Raises NodeFailedError when a node ends instead, or the time is over.
    """
    deadline_s = clock.monotonic_s() + timeout_s
    ids = {node.id for node in nodes}
    for node in nodes:
        while not ids <= _live_brokers(node, timeout_s=min(_ATTEMPT_S, deadline_s - clock.monotonic_s())):
            # Whichever ended: it is never listed.
            for ended in nodes:
                if not ended.is_running:
                    raise ended.failure("ended before it was ready")
            if clock.monotonic_s() >= deadline_s:
                raise node.failure(f"was not ready within {timeout_s:g} s")
            clock.pause(_POLL_S)


def _live_brokers(node: LocalNode, *, timeout_s: float) -> frozenset[int]:
    """The brokers that this node tells clients of; none when it does not answer."""
    try:
        with socket.create_connection((node.host, node.port), timeout=max(timeout_s, _POLL_S)) as connection:
            connection.sendall(REQUEST)
            with connection.makefile("rb") as answer:
                (size,) = SIZE.unpack(answer.read(SIZE.size).rjust(SIZE.size, b"\0"))
                return broker_ids(answer.read(min(size, MAX_RESPONSE_SIZE)) if size > 0 else b"")
    except (OSError, ValueError):  # refused, silent, or cut off in the middle: not yet
        return frozenset()
