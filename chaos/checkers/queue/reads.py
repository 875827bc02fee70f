"""What polls returned: aborted and precommitted reads, values that were never sent, and polls out of order.

A consumer reads each key from offset to offset. Within one operation that holds always, but where the group may have
rebalanced between its polls; from one operation of a process to its next it holds until it is assigned anew. What a
client does with its positions when it is assigned partitions again is its own affair (the Java client keeps them,
librdkafka begins anew), so each assignment begins a new sequence. Source: jepsen.tests.kafka.
"""

from __future__ import annotations

from typing import Final

from ..finding import Findings
from .columns import ASSIGN, FAIL, NONE, OK, POLL, SUBSCRIBE, TXN, QueueColumns
from .orders import Orders

REBALANCES: Final = "the consumer is subscribed, so its group may have rebalanced between"
UNCOMMITTED: Final = "the consumer reads uncommitted records of transactions"


def find_bad_reads(columns: QueueColumns, findings: Findings, *, sees_uncommitted: bool) -> None:
    """G1a, precommitted-read and unexpected. `sees_uncommitted`: of transactions that are not committed."""
    outcome, writer = columns.outcome, columns.writer
    why_allowed = UNCOMMITTED if sees_uncommitted else None
    for operation in range(len(columns)):
        if columns.function[operation] not in (POLL, TXN):
            continue
        for read in columns.reads(operation):
            value = columns.read_value[read]
            sender = writer[value]
            if sender == NONE:
                _add(columns, findings, "unexpected", "was polled, and no operation sent it", value, (operation,))
            elif sender == operation:
                text = "was polled by the transaction that sent it, before that was committed"
                _add(columns, findings, "precommitted-read", text, value, (operation,), why_allowed)
            elif outcome[sender] == FAIL and outcome[operation] == OK:
                text = "was polled, and its send or its transaction failed"
                _add(columns, findings, "G1a", text, value, (sender, operation), why_allowed)


def find_polls_out_of_order(
    columns: QueueColumns, orders: Orders, findings: Findings, *, is_subscribed: bool
) -> None:  # fmt: skip
    """int-poll-skip, int-nonmonotonic-poll, poll-skip and nonmonotonic-poll. `is_subscribed` says it of processes that
    name neither topics nor partitions."""
    process, function, outcome = columns.process, columns.function, columns.outcome
    # By process: of each key, where the last operation that read it stopped: index, value, operation.
    positions: list[dict[int, tuple[int, int, int]]] = [{} for _ in columns.process_names]
    subscribed = [is_subscribed] * len(columns.process_names)
    for operation in range(len(columns)):
        kind = function[operation]
        one = process[operation]
        if kind in (ASSIGN, SUBSCRIBE):
            if outcome[operation] != FAIL:
                positions[one] = {}
                subscribed[one] = kind == SUBSCRIBE
            continue
        if columns.first_read[operation] == columns.first_read[operation + 1]:
            continue
        before = positions[one]
        after = before if outcome[operation] == OK else dict(before)
        _check_polls(columns, orders, findings, operation, after, is_subscribed=subscribed[one])


def _check_polls(
    columns: QueueColumns,
    orders: Orders,
    findings: Findings,
    operation: int,
    positions: dict[int, tuple[int, int, int]],
    *,
    is_subscribed: bool,
) -> None:
    """Go through what one operation read, in order, and move `positions` on."""
    read_value, read_offset, begins_poll = columns.read_value, columns.read_offset, columns.begins_poll
    key_of, offset_of, index_of = columns.key_of, columns.offset_of, orders.index_of
    poll_of_key: dict[int, int] = {}
    poll = 0
    for read in columns.reads(operation):
        value = read_value[read]
        offset = read_offset[read]
        key = key_of[value]
        poll += begins_poll[read]
        index = index_of[value] if offset == offset_of[value] else orders.index_at(value, offset)
        last = positions.get(key)
        if last is not None and index != NONE and last[0] != NONE and index - last[0] != 1:
            is_inside = last[2] == operation
            # Of a group that rebalanced between two polls of one operation it may be said, too.
            is_excused = is_subscribed and not (is_inside and poll_of_key.get(key) == poll)
            _add_jump(columns, orders, findings, last, (index, value, operation), REBALANCES if is_excused else None)
        poll_of_key[key] = poll
        positions[key] = index, value, operation


def _add_jump(
    columns: QueueColumns,
    orders: Orders,
    findings: Findings,
    last: tuple[int, int, int],
    this: tuple[int, int, int],
    why_allowed: str | None,
) -> None:
    key = columns.key_of[this[1]]
    is_skip = this[0] > last[0]
    prefix = "int-" if last[2] == this[2] else ""
    type_ = f"{prefix}poll-skip" if is_skip else f"{prefix}nonmonotonic-poll"
    old, new = columns.values[last[1]], columns.values[this[1]]

    def message() -> str:
        if is_skip:
            skipped = orders.between(key, last[0], this[0])
            return f"after {old} a poll returned {new} and skipped {this[0] - last[0] - 1}, at offsets {skipped}"
        return f"after {old} a poll returned {new}, which lies {'before it' if this[0] < last[0] else 'there as well'}"

    findings.add(
        type_,
        message,
        (columns.event[last[2]], columns.event[this[2]]),
        key=columns.keys[key],
        why_allowed=why_allowed,
        detail={"values": [old, new], "delta": this[0] - last[0]},
    )


def _add(
    columns: QueueColumns,
    findings: Findings,
    type_: str,
    text: str,
    value: int,
    operations: tuple[int, ...],
    why_allowed: str | None = None,
) -> None:
    what = columns.values[value]
    findings.add(
        type_,
        lambda: f"{what} {text}",
        [columns.event[operation] for operation in operations],
        key=columns.keys[columns.key_of[value]],
        why_allowed=why_allowed,
        detail={"value": what, "offset": columns.offset_of[value]},
    )
