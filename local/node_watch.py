"""Looks at nodes of this machine all the time, and keeps which of them ended by themselves.

A process that crashes between two faults, or that another program kills, says nothing to the program that started it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Final

from msgspec import Struct

from ..client import clock
from .background_work import BackgroundWork
from .local_node import LocalNode
from .processes import ProcessId

_INTERVAL_S: Final = 0.05


class NodeEnd(Struct, frozen=True, kw_only=True):
    """`time_ns` is when it was seen, by the monotonic clock."""

    node_id: int
    time_ns: int
    exit_status: int | None
    """As `LocalNode.exit_status`."""
    sentence: str
    log_tail: str
    """The last lines of its log; empty where the sentence has the last one."""


class NodeWatch(BackgroundWork):
    """From `__enter__` to `__exit__`. `nodes` are those that there are now; `on_end` is told
    the id of each that ended by itself, after it is in `ends`, and may wait for other threads.

    Safe to share between threads.
    """

    def __init__(
        self, nodes: Callable[[], Iterable[LocalNode]], *, on_end: Callable[[int], None] = lambda _node_id: None
    ) -> None:
        super().__init__("node-watch")
        self._nodes = nodes
        self._on_end = on_end
        self._turn = Lock()
        self._ends: list[NodeEnd] = []
        self._known: set[ProcessId] = set()

    @property
    def ends(self) -> tuple[NodeEnd, ...]:
        """Until now, in their order."""
        self.look()
        with self._turn:
            return tuple(self._ends)

    def look(self) -> None:
        """Before a node is started again too: a process that has ended is known by the one that is there now."""
        new: list[int] = []
        with self._turn:
            for node in self._nodes():
                process = node.process
                if node.has_ended_by_itself and process is not None and process not in self._known:
                    failure = node.failure("ended by itself")
                    self._known.add(process)
                    self._ends.append(
                        NodeEnd(
                            node_id=node.id,
                            time_ns=clock.monotonic_ns(),
                            exit_status=node.exit_status,
                            sentence=failure.sentence,
                            log_tail=failure.log_tail,
                        )
                    )
                    new.append(node.id)
        for node_id in new:
            self._on_end(node_id)

    def _work(self) -> None:
        while not self._is_ended.wait(_INTERVAL_S):
            self.look()
