"""Where sends went: several values at an offset, one value at several, sends of one operation or process out of order.

Source: jepsen.tests.kafka.
"""

from __future__ import annotations

from typing import Final

from ..finding import Findings
from .columns import ASSIGN, FAIL, NONE, QueueColumns
from .orders import Orders

INTERLEAVED: Final = "what transactions write is not isolated: sends of others may lie between"
NOT_IDEMPOTENT: Final = "the producer is not idempotent, so its retries may repeat and reorder"


def find_bad_offsets(columns: QueueColumns, orders: Orders, findings: Findings, *, is_idempotent: bool) -> None:
    """inconsistent-offsets and duplicate."""
    for key, order in enumerate(orders.keys):
        for offset, values in order.conflicts.items():
            names = [columns.values[value] for value in values]
            findings.add(
                "inconsistent-offsets",
                f"offset {offset} was seen with {len(names)} values: {', '.join(map(str, names[:8]))}",
                [event for value in values for event in _seen_in(columns, value, offset)],
                key=columns.keys[key],
                detail={"offset": offset, "values": names},
            )
    for value, offsets in columns.more_offsets.items():
        findings.add(
            "duplicate",
            f"{columns.values[value]} lies at offsets {', '.join(map(str, sorted(offsets)))}",
            [event for offset in sorted(offsets) for event in _seen_in(columns, value, offset)],
            key=columns.keys[columns.key_of[value]],
            why_allowed=None if is_idempotent else NOT_IDEMPOTENT,
            detail={"value": columns.values[value], "offsets": sorted(offsets)},
        )


def find_sends_out_of_order(
    columns: QueueColumns, orders: Orders, findings: Findings, *, is_idempotent: bool
) -> None:  # fmt: skip
    """int-send-skip, int-nonmonotonic-send and nonmonotonic-send."""
    index_of, send_value, key_of = orders.index_of, columns.send_value, columns.key_of
    # By process: of each key, the last send: index, value, operation.
    positions: list[dict[int, tuple[int, int, int]]] = [{} for _ in columns.process_names]
    for operation in range(len(columns)):
        if columns.outcome[operation] == FAIL or columns.function[operation] >= ASSIGN:
            continue
        last_sends = positions[columns.process[operation]]
        for send in columns.sends(operation):
            value = send_value[send]
            index = index_of[value]
            last = last_sends.get(key_of[value])
            # An operation that sends a value a second time is judged by where the first one lies, and so not at all.
            if last is not None and index != NONE and last[0] != NONE and last[1] != value:
                this = index, value, operation
                if index <= last[0]:
                    _add_pair(columns, findings, last, this, None if is_idempotent else NOT_IDEMPOTENT)
                elif index != last[0] + 1 and last[2] == operation:
                    _add_pair(columns, findings, last, this, INTERLEAVED)
            last_sends[key_of[value]] = index, value, operation


def _add_pair(
    columns: QueueColumns,
    findings: Findings,
    last: tuple[int, int, int],
    this: tuple[int, int, int],
    why_allowed: str | None,
) -> None:
    is_skip = this[0] > last[0]
    prefix = "int-" if last[2] == this[2] else ""
    old, new = columns.values[last[1]], columns.values[this[1]]
    places = f"offsets {columns.offset_of[last[1]]} and {columns.offset_of[this[1]]}"
    text = f"{this[0] - last[0] - 1} others lie between" if is_skip else "the later one lies first"
    findings.add(
        f"{prefix}send-skip" if is_skip else f"{prefix}nonmonotonic-send",
        lambda: f"{old} and then {new} were sent, to {places}: {text}",
        (columns.event[last[2]], columns.event[this[2]]),
        key=columns.keys[columns.key_of[this[1]]],
        why_allowed=why_allowed,
        detail={"values": [old, new], "delta": this[0] - last[0]},
    )


def _seen_in(columns: QueueColumns, value: int, offset: int) -> list[int]:
    """Events that put the value at the offset: its send, and the first read."""
    writer = columns.writer[value]
    if writer != NONE and any(
        columns.send_value[send] == value and columns.send_offset[send] == offset for send in columns.sends(writer)
    ):
        return [columns.event[writer]]
    for read, one in enumerate(columns.read_value):
        if one == value and columns.read_offset[read] == offset:
            return [columns.event[columns.operation_of_read(read)]]
    return []
