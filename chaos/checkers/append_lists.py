"""The lists of a history of transactions that append to them: who appended what, who read it, and in which order it
lies.

The longest read of a list is the order of its elements; source: Elle (elle.list-append).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..histories.operation import Pair
from .finding import Findings


class AppendLists:
    """Transactions by number, and of each key the elements in their order."""

    def __init__(self, pairs: list[Pair]) -> None:
        self.pairs = pairs
        # By key and element: the transaction that appends it.
        self.writer: dict[tuple[str, Any], int] = {}
        self.order: dict[str, list[Any]] = {}
        self.index: dict[tuple[str, Any], int] = {}
        # By key and element: the first transaction that read it and was successful.
        self.reader: dict[tuple[str, Any], int] = {}
        # The transaction whose read is the order.
        self.longest: dict[str, int] = {}
        for number, pair in enumerate(pairs):
            for f, key, value in micro_operations(pair):
                if f == "append":
                    self.writer.setdefault((key, value), number)

    def reads(self, number: int) -> Iterator[tuple[str, list[Any]]]:
        """Of a transaction that was successful: what it read of which key."""
        if self.pairs[number].outcome == "ok":
            for f, key, value in micro_operations(self.pairs[number]):
                if f == "r":
                    yield key, value or []

    def appends(self, number: int) -> list[tuple[str, Any]]:
        return [(key, value) for f, key, value in micro_operations(self.pairs[number]) if f == "append"]

    def is_there(self, number: int) -> bool:
        """Whether a transaction provably committed."""
        outcome = self.pairs[number].outcome
        return outcome == "ok" or (outcome == "info" and any(one in self.reader for one in self.appends(number)))

    def committer(self, key: str, element: Any) -> int | None:
        """The transaction that appended it, unless that was aborted."""
        writer = self.writer.get((key, element))
        return None if writer is None or self.pairs[writer].outcome == "fail" else writer

    def event(self, number: int) -> int:
        return self.pairs[number].index

    def note_orders(self, findings: Findings) -> None:
        """Take the longest read of each key for its order. duplicate-elements and incompatible-order are noted."""
        for number in range(len(self.pairs)):
            for key, elements in self.reads(number):
                if len(elements) > len(self.order.get(key, ())):
                    self.order[key] = elements
                    self.longest[key] = number
                for element in elements:
                    self.reader.setdefault((key, element), number)
        for key, elements in self.order.items():
            for index, element in enumerate(elements):
                self.index.setdefault((key, element), index)
        for number in range(len(self.pairs)):
            for key, elements in self.reads(number):
                if len({*elements}) < len(elements):
                    twice = sorted(one for one in {*elements} if elements.count(one) > 1)
                    text = f"a read returned {twice[0]} {elements.count(twice[0])} times"
                    findings.add("duplicate-elements", text, [self.event(number)], key=key, detail={"elements": twice})
                elif elements != self.order.get(key, [])[: len(elements)]:
                    at = next(i for i, one in enumerate(elements) if one != self.order[key][i])
                    text = f"reads disagree on element {at}: {elements[at]} and {self.order[key][at]}"
                    both = [self.event(number), self.event(self.longest[key])]
                    findings.add("incompatible-order", text, both, key=key, detail={"index": at})


def micro_operations(pair: Pair) -> Iterator[tuple[str, str, Any]]:
    """(append or r, key, element or list)"""
    for micro in pair.value or ():
        yield micro[0], str(micro[1]), micro[2]
