"""What operations of the queue say: sends with their offsets, and records that were polled."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Final, NamedTuple

from ..histories.operation import History, Pair

NO_FINAL_READS: Final = "the run had no final reads, so it may only be late"


class Sent(NamedTuple):
    key: str
    value: Hashable
    # None: unknown.
    offset: int | None


class Polled(NamedTuple):
    key: str
    offset: int
    value: Hashable


def sent(pair: Pair) -> Iterator[Sent]:
    """In the order of the operation's micro-operations `["send", key, value]`, `["send", key, [offset, value]]`."""
    for operation in _micro_operations(pair.value):
        if operation[0] == "send":
            _, key, told = operation
            if isinstance(told, list):
                yield Sent(key, told[1], told[0])
            else:
                yield Sent(key, told, None)


def polled(pair: Pair) -> Iterator[Polled]:
    """In the order of the operation's micro-operations `["poll", {key: [[offset, value], …]}]`. A value that is a list,
    as an output is, becomes a tuple."""
    for operation in _micro_operations(pair.value):
        if operation[0] == "poll" and len(operation) > 1:
            for key, records in operation[1].items():
                for offset, value in records:
                    yield Polled(key, offset, tuple(value) if isinstance(value, list) else value)


def is_final(pair: Pair) -> bool:
    return pair.invocation.final or (pair.completion is not None and pair.completion.final)


def has_final_polls(history: History) -> bool:
    return any(one.final and one.type == "ok" and one.f in ("poll", "txn") for one in history.operations)


def _micro_operations(value: Any) -> list[Any]:
    return value if isinstance(value, list) and all(isinstance(one, list) and one for one in value) else []
