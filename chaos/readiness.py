"""Asks a cluster over the protocol whether it can be used."""

import socket
from collections.abc import Set as AbstractSet
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from ..client import clock
from ..client.client_log import SILENT_LOGGER
from .local_node import LocalNode

# One attempt of the protocol's client; a node that listens answers in milliseconds.
_ATTEMPT_S: Final = 2.0
_POLL_S: Final = 0.005


def wait_ready(nodes: tuple[LocalNode, ...], *, timeout_s: float) -> None:
    """Returns once each of these nodes, asked itself, lists all of them as live brokers.

    Raises NodeFailedError when a node ends instead, or the time is over.
    """
    deadline_s = clock.monotonic_s() + timeout_s
    ids = {node.id for node in nodes}
    for node in nodes:
        _wait_listening(node, deadline_s)
        while not ids <= _live_brokers(node.address, timeout_s=min(_ATTEMPT_S, deadline_s - clock.monotonic_s())):
            _check(node, deadline_s, "listens, but did not become ready")
            clock.pause(_POLL_S)


def _wait_listening(node: LocalNode, deadline_s: float) -> None:
    # A plain connection first: it costs nothing, and the protocol's client would back off between attempts.
    while True:
        try:
            socket.create_connection((node.address.partition(":")[0], node.port), timeout=_ATTEMPT_S).close()
        except OSError:
            _check(node, deadline_s, "did not listen")
            clock.pause(_POLL_S)
        else:
            return


def _live_brokers(address: str, *, timeout_s: float) -> AbstractSet[int]:
    """The brokers that the node at this address tells clients of; none when it does not answer."""
    admin = AdminClient({"bootstrap.servers": address}, logger=SILENT_LOGGER)
    try:
        return admin.list_topics(timeout=max(timeout_s, _POLL_S)).brokers.keys()
    except KafkaException:
        return frozenset()


def _check(node: LocalNode, deadline_s: float, what: str) -> None:
    if not node.is_running:
        raise node.failure("ended before it was ready")
    if clock.monotonic_s() >= deadline_s:
        raise node.failure(f"{what} in time")
