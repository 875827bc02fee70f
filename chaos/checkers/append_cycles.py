"""Cycles of transactions that append to lists and read them."""

from __future__ import annotations

from array import array
from itertools import pairwise
from typing import Any, Final

from .append_lists import AppendLists
from .dependencies import NAMES, ORDERS, PROCESS, RW, WR, WW, Cycle, Dependencies
from .finding import Findings

NOT_ISOLATED: Final = "Kafka does not isolate what transactions append: appends of others lie between theirs"
NOT_A_SNAPSHOT: Final = "a read is no part of its transaction: it returns what is committed and stable, a prefix"
# Of a history without snapshots; stale reads cover most of it.
_SEARCHED_MAX: Final = 20_000
_PIECES: Final = 10


def find_cycles(lists: AppendLists, findings: Findings, *, is_serializable: bool) -> dict[str, Any]:
    dependencies = _dependencies(lists)
    statistics = {}
    reported: set[tuple[int, ...]] = set()
    for name, kinds in (("wr", WR), ("ww+wr", WW | WR), ("ww+wr+rw", WW | WR | RW)):
        if kinds & RW and not is_serializable:
            # That a read was stale says only what is allowed.
            search = dependencies.cycles(kinds, orders=(0,), searched_max=_SEARCHED_MAX, parts_max=_PIECES)
        else:
            search = dependencies.cycles(kinds, orders=ORDERS)
        statistics[name] = {"searched": search.searched, "is_whole": search.is_whole}
        for cycle in search.cycles:
            operations = tuple(sorted(cycle.operations))
            if operations not in reported:
                reported.add(operations)
                _add_cycle(lists, findings, cycle, None if is_serializable else _why_allowed(lists, cycle))
    return statistics


def _dependencies(lists: AppendLists) -> Dependencies:
    invoked, completed, process, position = array("q"), array("q"), array("q"), array("q")
    processes: dict[int | str, int] = {}
    for pair in lists.pairs:
        end = pair.completion.index if pair.completion is not None and pair.outcome == "ok" else -1
        invoked.append(pair.invocation.index)
        completed.append(end)
        process.append(processes.setdefault(pair.invocation.process, len(processes)))
        position.append(end if end != -1 else pair.invocation.index)
    dependencies = Dependencies(invoked, completed, process, position)
    for key, elements in lists.order.items():
        writers = [lists.committer(key, element) for element in elements]
        for before, after in pairwise(writers):
            if before is not None and after is not None:
                dependencies.add(before, after, WW)
    for number in range(len(lists.pairs)):
        for key, elements in lists.reads(number):
            order = lists.order.get(key, [])
            for element in elements:
                writer = lists.committer(key, element)
                if writer is not None:
                    dependencies.add(writer, number, WR)
            if len(elements) < len(order) and elements == order[: len(elements)]:
                writer = lists.committer(key, order[len(elements)])
                if writer is not None:
                    dependencies.add(number, writer, RW)
    return dependencies


def _why_allowed(lists: AppendLists, cycle: Cycle) -> str | None:
    if RW in cycle.kinds:
        return NOT_A_SNAPSHOT
    for source, target, kind in cycle.edges():
        if kind == WW and any(len(lists.pairs[one].invocation.value) > 1 for one in (source, target)):
            return NOT_ISOLATED
    return None


def _add_cycle(lists: AppendLists, findings: Findings, cycle: Cycle, why_allowed: str | None) -> None:
    steps = [_step(lists, *edge) for edge in cycle.edges()]
    findings.add(
        cycle.type,
        "; ".join(step["text"] for step in steps),
        [lists.event(number) for number in cycle.operations],
        key=next((step["key"] for step in steps if step["key"] is not None), None),
        why_allowed=why_allowed,
        detail={"steps": steps},
    )


def _step(lists: AppendLists, source: int, target: int, kind: int) -> dict[str, Any]:
    """One edge, with what proves it."""
    before, after = lists.event(source), lists.event(target)
    key, value = _evidence(lists, source, target, kind)
    if kind == WW:
        text = f"{before} appended to {key} right before {after} appended {value}"
    elif kind == WR:
        text = f"{before} appended {value} to {key}, which {after} read"
    elif kind == RW:
        text = f"{before} read {key} without {value}, which {after} appended"
    elif kind == PROCESS:
        text = f"process {lists.pairs[source].invocation.process} did {before} before {after}"
    else:
        text = f"{before} was complete before {after} began"
    return {"kind": NAMES[kind], "from": before, "to": after, "key": key, "value": value, "text": text}


def _evidence(lists: AppendLists, source: int, target: int, kind: int) -> tuple[str | None, Any]:
    """The key and the element that make the edge."""
    if kind == WR:
        own = {*lists.appends(source)}
        for key, elements in lists.reads(target):
            for element in elements:
                if (key, element) in own:
                    return key, element
    for key, element in lists.appends(target) if kind in (WW, RW) else ():
        index = lists.index.get((key, element))
        if index is None:
            continue
        if kind == WW and index and lists.writer.get((key, lists.order[key][index - 1])) == source:
            return key, element
        if kind == RW and any(other == key and len(elements) == index for other, elements in lists.reads(source)):
            return key, element
    return None, None
