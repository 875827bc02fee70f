"""An operation as a person reads it: what it did, in one line, cut down to what a finding is about."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from ..histories.operation import Pair
from .client_series import polled, sent

# A poll returns hundreds of records; these few are shown around those that matter, and of the others the ends.
_NEIGHBOURS: Final = 2
_ENDS: Final = 3
_ELEMENTS_MAX: Final = 40


def operation_text(pair: Pair, *, key: str | None, focus: Collection[int]) -> str:
    """`focus` are offsets that matter in the partition `key`; of a poll, other partitions are only counted then."""
    value = pair.value
    if not isinstance(value, list) or not value or not all(_is_step(step) for step in value):
        return "" if value is None else value if isinstance(value, str) else _json(value)
    return " · ".join(_step(step, key, focus) for step in value)


def focus_of(pairs: Sequence[Pair], key: str | None, detail: Any) -> set[int]:
    """The offsets that evidence is about: those of its sends and of its detail; of polls of a single record, too."""
    offsets = {offset for pair in pairs for sent_key, _, offset in sent(pair) if sent_key == key and offset is not None}
    if isinstance(detail, Mapping):
        for name, value in detail.items():
            if name in ("offset", "offsets"):
                offsets |= {one for one in (value if isinstance(value, list) else [value]) if isinstance(one, int)}
    for pair in pairs:
        records = [offset for read_key, offset, _ in polled(pair) if read_key == key]
        if len(records) == 1:
            offsets.add(records[0])
    return offsets


def _is_step(step: Any) -> bool:
    return isinstance(step, list) and bool(step) and step[0] in ("send", "poll", "append", "r")


def _step(step: list[Any], key: str | None, focus: Collection[int]) -> str:
    name, *rest = step
    if name == "send" and len(rest) == 2:
        told = rest[1]
        if isinstance(told, list) and len(told) == 2:
            return f"{rest[0]} {_json(told[1])} at offset {_json(told[0])}"
        return f"{rest[0]} {_json(told)}"
    if name == "append" and len(rest) == 2:
        return f"append {_json(rest[0])} {_json(rest[1])}"
    if name == "r" and len(rest) == 2:
        return f"read {_json(rest[0])} → {'?' if rest[1] is None else _list(rest[1])}"
    if name == "poll" and rest and isinstance(rest[0], Mapping):
        return _poll(rest[0], key, focus) or "nothing"
    return name if name == "poll" else _json(step)


def _poll(read: Mapping[str, Any], key: str | None, focus: Collection[int]) -> str:
    parts = []
    others = 0
    for read_key, records in read.items():
        if key is not None and key in read and read_key != key:
            others += len(records)
            continue
        parts.append(f"{read_key}: {_records(records, focus if read_key == key else ())}")
    if others:
        parts.append(f"and {others} of other partitions")
    return ", ".join(parts)


def _records(records: Sequence[Any], focus: Collection[int]) -> str:
    """`offset=value` of those in or around the focus, else of the first and the last."""
    centres = [
        number for number, (offset, _) in enumerate(records) if any(abs(offset - wanted) <= 1 for wanted in focus)
    ]
    near = sorted(
        {
            number
            for centre in centres
            for number in range(max(0, centre - _NEIGHBOURS), min(len(records), centre + _NEIGHBOURS + 1))
        }
    )
    if not near:
        near = [number for number in range(len(records)) if number < _ENDS or number >= len(records) - _ENDS]
    shown = []
    previous = -1
    for number in near:
        if number != previous + 1:
            shown.append("…")
        shown.append(f"{records[number][0]}={_json(records[number][1])}")
        previous = number
    if near and previous != len(records) - 1:
        shown.append("…")
    count = f" ({len(records)} records)" if "…" in shown else ""
    return " ".join(shown) + count


def _list(value: Any) -> str:
    if not isinstance(value, list):
        return _json(value)
    if len(value) <= _ELEMENTS_MAX:
        return f"[{' '.join(map(_json, value))}]"
    half = _ELEMENTS_MAX // 2
    return f"[{' '.join(map(_json, value[:half]))} … {' '.join(map(_json, value[-half:]))}] ({len(value)})"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
