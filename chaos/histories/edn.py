"""Histories as EDN, one map a line, which Jepsen's own checkers read (`jepsen.history/history` of what
`clojure.edn/read` gives).

Types, functions and the names of micro-operations are keywords, as Jepsen has them; keys of partitions and other names
stay strings. Source: github.com/edn-format/edn, jepsen.history.Op.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from ...local.errors import ClusterError
from .operation import NEMESIS, Operation

# Of these the value is a list of micro-operations, which begin with their name.
_MICRO: Final = frozenset({"send", "poll", "txn"})
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_?-]*")


def write_edn(path: Path, operations: Iterable[Operation]) -> None:
    """Raises ClusterError where it cannot be written."""
    try:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(edn_lines(operations))
    except OSError as error:
        raise ClusterError(f"{path} cannot be written: {error.strerror or error}") from error


def edn_lines(operations: Iterable[Operation]) -> Iterator[str]:
    """Each event as a line. What never completed is completed at the end, with an unknown outcome: Jepsen's checkers
    look for the writer of a value among completions."""
    pending: dict[int | str, Operation] = {}
    last: Operation | None = None
    for last in operations:
        if last.type == "invoke":
            pending[last.process] = last
        else:
            pending.pop(last.process, None)
        yield f"{_event(last)}\n"
    if last is not None:
        for index, operation in enumerate(pending.values(), last.index + 1):
            open_ = msgspec.structs.replace(operation, index=index, time=last.time, type="info", error="no completion")
            yield f"{_event(open_)}\n"


def _event(operation: Operation) -> str:
    process = f":{NEMESIS}" if operation.process == NEMESIS else _form(operation.process)
    value = _micro_operations(operation.value) if operation.f in _MICRO else _form(operation.value)
    parts = [
        f":index {operation.index}, :time {operation.time}, :type :{operation.type}, :process {process}",
        f":f {_keyword(operation.f)}, :value {value}",
    ]
    if operation.error is not None:
        parts.append(f":error {_form(operation.error)}")
    if operation.final:
        parts.append(":final? true")
    return "{" + ", ".join(parts) + "}"


def _micro_operations(value: Any) -> str:
    if not isinstance(value, list):
        return _form(value)
    return "[" + " ".join(_micro_operation(one) for one in value) + "]"


def _micro_operation(micro: Any) -> str:
    if not isinstance(micro, list) or not micro or not isinstance(micro[0], str):
        return _form(micro)
    # What a poll returned goes by names of partitions, which are data.
    parts = [_keyword(micro[0]), *(_form(part, has_names=False) for part in micro[1:])]
    return "[" + " ".join(parts) + "]"


def _form(value: Any, *, has_names: bool = True) -> str:
    """A value; the keys of its maps are keywords if they are names of fields."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        items = (
            f"{_keyword(key) if has_names else _form(key)} {_form(one, has_names=has_names)}"
            for key, one in value.items()
        )
        return "{" + ", ".join(items) + "}"
    if isinstance(value, list | tuple):
        return "[" + " ".join(_form(one, has_names=has_names) for one in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def _keyword(name: Any) -> str:
    return f":{name}" if isinstance(name, str) and _WORD.fullmatch(name) else _form(name)
