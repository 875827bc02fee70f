"""Histories in files: JSON lines, a header first, then one event a line (`docs/correctness.md` documents them)."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from ...local.errors import ClusterError
from .operation import FORMAT, Header, History, Operation

_ENCODER: Final = msgspec.json.Encoder()


def read_history(path: Path) -> History:
    """The history in the file at `path`, which may be compressed (`.gz`). Raises ClusterError for a file that does not
    hold one, with the number of the line."""
    opener = gzip.open if path.suffix == ".gz" else open
    operations: list[Operation] = []
    decode = msgspec.json.Decoder(Operation).decode
    number = 1
    try:
        with opener(path, "rb") as file:
            header = msgspec.json.decode(file.readline(), type=Header)
            for number, line in enumerate(file, 2):
                operation = decode(line)
                if operations and operation.index <= operations[-1].index:
                    raise ClusterError(
                        f"{path.name}, line {number}: index {operation.index} does not follow {operations[-1].index}"
                    )
                operations.append(operation)
    except OSError as error:
        raise ClusterError(f"{path} cannot be read: {error.strerror or error}") from error
    except msgspec.MsgspecError as error:
        raise ClusterError(f"{path.name}, line {number} is no line of a history ({FORMAT}): {error}") from error
    if header.format != FORMAT:
        raise ClusterError(f"{path.name} has the format {header.format!r}; this version reads {FORMAT!r}")
    return History(header, operations)


def write_history(path: Path, header: Header, operations: Iterable[Operation]) -> None:
    with path.open("wb") as file:
        file.write(_ENCODER.encode(header) + b"\n")
        for operation in operations:
            file.write(_ENCODER.encode(operation) + b"\n")
