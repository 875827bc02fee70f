"""Which operation has to come before which: edges between operations, and the cycles that no order of them allows.

Kinds of edges, after Adya: ww, the second overwrites or follows what the first wrote; wr, the second read what the
first wrote; rw, the second wrote what follows what the first read; process, one process did the first and then the
second; realtime, the first was complete when the second began. A cycle is named by its edges as Elle names it: G0 has
only ww, G1c also wr, G-single one rw, G-nonadjacent several apart, G2-item any; `-process` and `-realtime` if such
edges are needed.

A cycle has to go back somewhere: each operation has a position, and every cut between two positions that a cycle spans
is crossed by one of its edges that lead backwards. So only what such edges cover is searched, and of the history of a
healthy cluster that is little or nothing. Source: Elle (Kingsbury and Alvaro, VLDB 2020) for the names and what is
searched.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from msgspec import Struct

from .components import strong_components

WW: Final = 1
WR: Final = 2
RW: Final = 4
PROCESS: Final = 8
REALTIME: Final = 16
NAMES: Final = {WW: "ww", WR: "wr", RW: "rw", PROCESS: "process", REALTIME: "realtime"}
# Without any order but that of data, with that of each process, and with real time.
ORDERS: Final = (0, PROCESS, PROCESS | REALTIME)

# How many edges of a component are tried for the smallest cycle, and how many cycles of a search are kept.
_TRIED: Final = 16
_KEPT: Final = 16

Span = tuple[int, int]
"""From a position to another, both inside."""


class Cycle(Struct, frozen=True):
    """`operations[i]` precedes `operations[i + 1]` by `kinds[i]`, and the last one the first."""

    operations: tuple[int, ...]
    kinds: tuple[int, ...]

    @property
    def type(self) -> str:
        rw_count = self.kinds.count(RW)
        if rw_count == 0:
            name = "G1c" if WR in self.kinds else "G0"
        elif rw_count == 1:
            name = "G-single"
        else:
            following = self.kinds[1:] + self.kinds[:1]
            is_adjacent = any(one == RW == other for one, other in zip(self.kinds, following, strict=True))
            name = "G2-item" if is_adjacent else "G-nonadjacent"
        return name + ("-realtime" if REALTIME in self.kinds else "-process" if PROCESS in self.kinds else "")

    def edges(self) -> Iterator[tuple[int, int, int]]:
        """(from, to, kind)"""
        return zip(self.operations, self.operations[1:] + self.operations[:1], self.kinds, strict=True)


@dataclass(slots=True)
class Dependencies:
    """Operations by number, and the edges between them that come of what they read and wrote.

    `invoked` and `completed` are indices of events; `completed` is -1 where the outcome is unknown, which therefore
    precedes nothing in real time. `position` puts an operation somewhere between the two."""

    invoked: Sequence[int]
    completed: Sequence[int]
    process: Sequence[int]
    position: Sequence[int]
    sources: array[int] = field(default_factory=lambda: array("i"))
    targets: array[int] = field(default_factory=lambda: array("i"))
    kinds: bytearray = field(default_factory=bytearray)

    def add(self, source: int, target: int, kind: int) -> None:
        if source != target:
            self.sources.append(source)
            self.targets.append(target)
            self.kinds.append(kind)

    def cycles(
        self,
        kinds: int,
        *,
        orders: Sequence[int] = ORDERS,
        searched_max: int | None = None,
        parts_max: int | None = None,
        spans: Sequence[Span] | None = None,
    ) -> Search:
        """Cycles of edges of these kinds, and of those of each of `orders`, one after the other. What backward
        edges cover falls into parts; of one with more than `searched_max` operations pieces of that size are searched,
        and of all parts and pieces `parts_max`. `spans` says what they cover where not all edges are here."""
        parts, is_whole = self._parts(self.spans(kinds) if spans is None else spans, searched_max, parts_max)
        search = Search(searched=sum(map(len, parts)), is_whole=is_whole)
        for operations, edges in zip(parts, self._edges_within(parts, kinds), strict=True):
            _search(self, operations, edges, kinds, orders, search)
        return search

    def spans(self, kinds: int) -> Sequence[Span]:
        """What backward edges of these kinds cover."""
        position = self.position
        return merged_spans(
            (position[target], position[source])
            for source, target, kind in zip(self.sources, self.targets, self.kinds, strict=True)
            if kind & kinds and position[target] < position[source]
        )

    def _parts(
        self, spans: Sequence[Span], searched_max: int | None, parts_max: int | None
    ) -> tuple[list[list[int]], bool]:  # fmt: skip
        """Operations that may be in a cycle, part by part, and whether these are all."""
        position = self.position
        starts = [start for start, _ in spans]
        covered: list[list[int]] = [[] for _ in spans]
        for operation, at in enumerate(position if spans else ()):
            span = bisect_right(starts, at) - 1
            if span >= 0 and at <= spans[span][1]:
                covered[span].append(operation)
        pieces = []
        for part in covered:
            part.sort(key=position.__getitem__)
            size = searched_max or len(part)
            pieces += [part[first : first + size] for first in range(0, len(part), size)]
        is_whole = len(pieces) == len(covered) and (parts_max is None or len(pieces) <= parts_max)
        return pieces[:parts_max], is_whole

    def _edges_within(self, parts: list[list[int]], kinds: int) -> list[list[tuple[int, int, int]]]:
        if not parts:
            return []
        part_of = array("i", [-1]) * len(self.position)
        for number, part in enumerate(parts):
            for operation in part:
                part_of[operation] = number
        edges: list[list[tuple[int, int, int]]] = [[] for _ in parts]
        for source, target, kind in zip(self.sources, self.targets, self.kinds, strict=True):
            if kind & kinds and part_of[source] == part_of[target] != -1:
                edges[part_of[source]].append((source, target, kind))
        return edges


@dataclass(slots=True)
class Search:
    """What was found among `searched` operations, which are all that a cycle could have if `is_whole`."""

    cycles: list[Cycle] = field(default_factory=list)
    searched: int = 0
    is_whole: bool = True


Graph = Mapping[int, Mapping[int, int]]


def _search(
    dependencies: Dependencies,
    operations: list[int],
    edges: list[tuple[int, int, int]],
    kinds: int,
    orders: Sequence[int],
    search: Search,
) -> None:
    graph: dict[int, dict[int, int]] = {operation: {} for operation in operations}
    for source, target, kind in edges:
        graph[source][target] = graph[source].get(target, 0) | kind
    for kind, ordered in ((PROCESS, _process_edges), (REALTIME, _realtime_edges)):
        if any(order & kind for order in orders):
            for source, target in ordered(dependencies, operations):
                graph[source][target] = graph[source].get(target, 0) | kind
    found: set[frozenset[int]] = set()
    for component in strong_components(graph, lambda _: True):
        part = {one: {to: kind for to, kind in graph[one].items() if to in component} for one in sorted(component)}
        for order in orders:
            for required, others in ((WW, WW), (WR, WW | WR), (RW, WW | WR), (RW, WW | WR | RW)):
                path = others & kinds | order
                if required & kinds:
                    _search_component(part, required, path, search, found)


def _search_component(
    graph: Graph, required: int, path: int, search: Search, found: set[frozenset[int]]
) -> None:  # fmt: skip
    """The smallest cycle through one edge of the kind `required` and otherwise of the kinds in `path`, by component."""
    for component in strong_components(graph, (path | required).__and__):
        best: Cycle | None = None
        tried = 0
        # Sorted, so that a search of the same operations by other numbers finds the same cycle.
        for source in sorted(component):
            for target, kind in graph[source].items():
                if not kind & required or target not in component:
                    continue
                tried += 1
                back = _shortest(graph, target, source, path, component)
                if back is not None and (best is None or len(back) < len(best.operations)):
                    labels = (_label(graph[one][other], path) for one, other in pairwise(back))
                    best = Cycle((source, *back[:-1]), (required, *labels))
                if tried >= _TRIED:
                    break
            if tried >= _TRIED:
                break
        if best is not None and (one := frozenset(best.operations)) not in found and len(search.cycles) < _KEPT * 8:
            found.add(one)
            search.cycles.append(best)


def _shortest(
    graph: Graph, start: int, end: int, path: int, inside: frozenset[int]
) -> tuple[int, ...] | None:  # fmt: skip
    """From `start` to `end` along edges of the kinds in `path`."""
    before: dict[int, int] = {start: start}
    waiting = deque([start])
    while waiting:
        one = waiting.popleft()
        if one == end:
            steps = [one]
            while steps[-1] != start:
                steps.append(before[steps[-1]])
            return tuple(reversed(steps))
        for other, kind in graph[one].items():
            if kind & path and other in inside and other not in before:
                before[other] = one
                waiting.append(other)
    return None


def _label(kinds: int, path: int) -> int:
    """The kind that proves most."""
    return next(kind for kind in NAMES if kind & kinds & path)


def _process_edges(dependencies: Dependencies, operations: list[int]) -> Iterator[tuple[int, int]]:
    last: dict[int, int] = {}
    for operation in sorted(operations, key=dependencies.invoked.__getitem__):
        process = dependencies.process[operation]
        if process in last:
            yield last[process], operation
        last[process] = operation


def _realtime_edges(dependencies: Dependencies, operations: list[int]) -> Iterator[tuple[int, int]]:
    """Those from which all others follow: from what is complete, but for what precedes something that is complete."""
    events = [(dependencies.invoked[operation], operation, True) for operation in operations]
    events += [
        (dependencies.completed[operation], operation, False)
        for operation in operations
        if dependencies.completed[operation] != -1
    ]
    front: set[int] = set()
    before: dict[int, tuple[int, ...]] = {}
    for _, operation, is_invocation in sorted(events):
        if is_invocation:
            before[operation] = tuple(front)
            for one in front:
                yield one, operation
        else:
            front.difference_update(before.pop(operation))
            front.add(operation)


def merged_spans(spans: Iterable[Span]) -> list[Span]:
    """Those that touch as one, in their order."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged
