"""What was acknowledged and never polled: lost-write and unseen, and how many values were unseen over time.

A value below one that a poll returned was passed by: it is lost. What lies above may only be late, so it counts where
the run ended with reads that had time to catch up. Source: jepsen.tests.kafka.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..finding import Findings
from ..micro_operations import NO_FINAL_READS
from .columns import NONE, OK, POLL, TXN, QueueColumns
from .orders import Orders

_POINTS: Final = 300


def has_final_reads(columns: QueueColumns) -> bool:
    """Whether the run ended with reads that had time to catch up."""
    return any(
        columns.is_final[operation] and columns.outcome[operation] == OK
        for operation in range(len(columns))
        if columns.function[operation] in (POLL, TXN)
    )


def find_losses(columns: QueueColumns, orders: Orders, findings: Findings, *, has_final_reads: bool) -> None:
    """lost-write and unseen."""
    reader = columns.reader
    for key, order in enumerate(orders.keys):
        bound = max(
            (
                index
                for index, value in enumerate(order.values)
                if reader[value] != NONE and value not in columns.more_offsets
            ),
            default=NONE,
        )
        for value in _unread(columns, key):
            index = orders.index_of[value]
            if index != NONE and _last_index(columns, orders, value) < bound:
                _add_lost(columns, findings, value, order.values[bound])
            _add_unseen(columns, findings, value, None if has_final_reads else NO_FINAL_READS)


def unseen_over_time(columns: QueueColumns) -> Mapping[str, Sequence[Any]]:
    """Of each key, and "all": at each of `times` (in ns), how many values were acknowledged and not polled yet."""
    end = max(columns.completed_ns, default=0)
    width = end // _POINTS + 1
    changes: list[list[int]] = [[0] * (_POINTS + 2) for _ in columns.keys]
    for value, writer in enumerate(columns.writer):
        if writer == NONE or columns.outcome[writer] != OK:
            continue
        acknowledged = columns.completed_ns[writer]
        reader = columns.reader[value]
        polled = columns.completed_ns[reader] if reader != NONE else end + width
        if polled > acknowledged:
            # At the end of a slot: what was polled within the same one was hardly unseen.
            changes[columns.key_of[value]][acknowledged // width] += 1
            changes[columns.key_of[value]][min(polled // width, _POINTS + 1)] -= 1
    series: dict[str, Sequence[Any]] = {"times": [width * (slot + 1) for slot in range(end // width + 1)]}
    total = [0] * len(series["times"])
    for key, slots in zip(columns.keys, changes, strict=True):
        count = 0
        series[key] = counts = []
        for slot in range(len(total)):
            count += slots[slot]
            counts.append(count)
            total[slot] += count
    series["all"] = total
    return series


def _unread(columns: QueueColumns, key: int) -> Iterator[int]:
    """Values of a key that no successful poll returned, and that provably are there."""
    for value in columns.numbers[key].values():
        if columns.reader[value] == NONE and columns.is_there(value):
            yield value


def _last_index(columns: QueueColumns, orders: Orders, value: int) -> int:
    return max(orders.index_at(value, offset) for offset in columns.more_offsets.get(value, (NONE,)))


def _add_lost(columns: QueueColumns, findings: Findings, value: int, later: int) -> None:
    what, offset, last = columns.values[value], columns.offset_of[value], columns.values[later]
    findings.add(
        "lost-write",
        lambda: (
            f"{what}, acknowledged at offset {offset}, was never polled, though {last} at offset"
            f" {columns.offset_of[later]} was"
        ),
        (columns.event[columns.writer[value]], columns.event[columns.reader[later]]),
        key=columns.keys[columns.key_of[value]],
        detail={"value": what, "offset": offset, "polled": last},
    )


def _add_unseen(columns: QueueColumns, findings: Findings, value: int, why_allowed: str | None) -> None:
    what = columns.values[value]
    writer = columns.writer[value]
    text = "acknowledged" if columns.outcome[writer] == OK else "of a transaction of which other values were polled,"
    findings.add(
        "unseen",
        lambda: f"{what}, {text} was never polled",
        (columns.event[writer],),
        key=columns.keys[columns.key_of[value]],
        why_allowed=why_allowed,
        detail={"value": what, "offset": columns.offset_of[value]},
    )
