"""Looks after a running cluster until it is told to stop."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from ..client import clock
from ..client.terminal import say
from .cluster import LocalCluster
from .held_signals import STOP_SIGNALS
from .local_node import LocalNode

_LOOK_INTERVAL_S: Final = 0.1


class StopRequest:
    """Whether this program has been told to stop."""

    def __init__(self) -> None:
        self.is_made = False


@contextmanager
def stop_signals_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP act as Ctrl-C does, so that nodes are not left behind while they are started or filled."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    with _handled(interrupt):
        yield


@contextmanager
def stop_signals_request() -> Iterator[StopRequest]:
    """The signals only leave a request. Enter it before saying that the cluster is up: the answer may come at once."""
    request = StopRequest()

    def take() -> None:
        request.is_made = True

    with _handled(take):
        yield request


def look_after(cluster: LocalCluster, request: StopRequest) -> None:
    """Returns once a stop is requested, with the cluster stopped, or once another program stopped all its nodes.

    Single nodes may be stopped, killed and started by other programs meanwhile (`penstock node`). Ctrl-C while it stops
    kills what is left. Raises NodeFailedError when a node ends by itself; others are stopped.
    """
    fallen: list[LocalNode] = []
    while not request.is_made and not fallen and _is_in_use(cluster):
        clock.pause(_LOOK_INTERVAL_S)
        fallen = _fallen(cluster)
    cluster.follow_record()
    if cluster.is_running:
        # The terminal may be closed, which is why it stops.
        with suppress(OSError):
            say("Stopping …")
    with stop_signals_interrupt():
        try:
            cluster.stop()
        except KeyboardInterrupt:
            with suppress(KeyboardInterrupt):
                cluster.kill()
            raise
    if fallen:
        raise fallen[0].failure("ended by itself")


def _is_in_use(cluster: LocalCluster) -> bool:
    """Whether a node runs, or all that do not are to be started again."""
    return any(node.is_running or node.is_down for node in cluster.nodes.values())


def _fallen(cluster: LocalCluster) -> list[LocalNode]:
    if all(node.is_running for node in cluster.nodes.values()):
        return []
    cluster.follow_record()
    return [node for node in cluster.nodes.values() if node.exit_status and not node.is_down]


@contextmanager
def _handled(action: Callable[[], None]) -> Iterator[None]:
    def handle(_number: int, _frame: FrameType | None) -> None:
        action()

    # By nohup.
    is_hangup_ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    numbers = [number for number in STOP_SIGNALS if not (number == signal.SIGHUP and is_hangup_ignored)]
    previous = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
