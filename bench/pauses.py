"""How long nodes leave requests unanswered: each gets the smallest request again and again during another operation."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from ..client import clock
from ..local.local_node import LocalNode
from .metadata_changes import ImpatientSocket
from .wire import API_VERSIONS_FRAME

_TIMEOUT_S: Final = 60.0
# Often enough to meet a pause of some tens of milliseconds, and next to no work for a node.
_ASK_PAUSE_S: Final = 0.004


@dataclass(slots=True)
class SlowestAnswer:
    """Over all nodes."""

    seconds: float = 0.0


@contextmanager
def slowest_answer(nodes: Iterable[LocalNode]) -> Iterator[SlowestAnswer]:
    """Asks while the context is open; the value is filled in meanwhile. A node that goes away is asked no more."""
    slowest = SlowestAnswer()
    is_over = threading.Event()
    asked = tuple(nodes)
    with ThreadPoolExecutor(len(asked)) as threads:
        try:
            asking = [threads.submit(_ask, node, slowest, is_over) for node in asked]
            yield slowest
        finally:
            is_over.set()
        for one in asking:
            one.result()


def _ask(node: LocalNode, slowest: SlowestAnswer, is_over: threading.Event) -> None:
    try:
        with ImpatientSocket(node, _TIMEOUT_S) as connection:
            connection.ask(API_VERSIONS_FRAME)
            while not is_over.wait(_ASK_PAUSE_S):
                asked_s = clock.monotonic_s()
                connection.ask(API_VERSIONS_FRAME)
                slowest.seconds = max(slowest.seconds, clock.monotonic_s() - asked_s)
    except OSError:
        if not is_over.is_set() and node.is_running:
            raise
