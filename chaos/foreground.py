"""Looks after a running cluster until it is told to stop."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from ..client import clock
from ..client.terminal import say
from .cluster import LocalCluster

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOOK_INTERVAL_S: Final = 0.1


@contextmanager
def stop_signals_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP act as Ctrl-C does, so that nodes are not left behind while they are started or filled."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def look_after(cluster: LocalCluster) -> None:
    """Returns after a signal to this program, with the cluster stopped, or once another program stopped all its nodes.

    A second Ctrl-C kills what has not stopped yet. Raises NodeFailedError when one ends by itself; others are stopped.
    """
    received: list[int] = []

    def receive(number: int, _frame: FrameType | None) -> None:
        received.append(number)

    previous = {number: signal.signal(number, receive) for number in _SIGNALS}
    try:
        while not received and all(node.is_running for node in cluster.nodes.values()):
            clock.pause(_LOOK_INTERVAL_S)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    fallen = [] if received else [node for node in cluster.nodes.values() if node.exit_status]
    if cluster.is_running:
        say("Stopping …")
    try:
        cluster.stop()
    except KeyboardInterrupt:
        with suppress(KeyboardInterrupt):
            cluster.kill()
        raise
    if fallen:
        raise fallen[0].failure("ended by itself")
