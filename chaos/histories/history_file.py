"""Histories in files: JSON lines, a header first, then one event a line (`docs/correctness.md` documents them)."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, cast, overload

import msgspec

from ...local.errors import ClusterError
from .operation import FORMAT, Header, History, Operation

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(Operation)
# Read at a time: many lines, decoded in one call.
_BLOCK_SIZE: Final = 1 << 20


def read_history(path: Path) -> History:
    """The history in the file at `path`, which may be compressed (`.gz`), all of it in memory. Raises ClusterError for
    a file that does not hold one, with the number of the line."""
    history = open_history(path)
    return History(history.header, list(history.operations))


def open_history(path: Path) -> History:
    """The same without keeping its events: they are read again each time that they are gone through, and ClusterError
    is raised where one is not an event. For histories of millions."""
    return History(_read_header(path), _FileOperations(path))


def write_history(path: Path, header: Header, operations: Iterable[Operation]) -> None:
    with path.open("wb") as file:
        file.write(_ENCODER.encode(header) + b"\n")
        for operation in operations:
            file.write(_ENCODER.encode(operation) + b"\n")


class _FileOperations(Sequence[Operation]):
    """The events in a file. To go through them is quick; to ask for one of them, or how many they are, reads the
    file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[Operation]:
        with _reading(self._path) as file:
            last_index = -1
            number = 2
            file.readline()
            for block in _whole_lines(file):
                for operation in self._decode(block, number):
                    if operation.index <= last_index:
                        raise ClusterError(
                            f"{self._path.name}, line {number}: index {operation.index} does not follow {last_index}"
                        )
                    last_index = operation.index
                    number += 1
                    yield operation

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, index: int) -> Operation: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Operation]: ...
    def __getitem__(self, index: int | slice) -> Operation | Sequence[Operation]:
        if isinstance(index, slice) or index < 0:
            return list(self)[index]
        for operation in islice(self, index, None):
            return operation
        raise IndexError(index)

    def _decode(self, block: bytes, number: int) -> list[Operation]:
        """The events of whole lines, the first of which has the number `number`."""
        try:
            return _DECODER.decode_lines(block)
        except msgspec.MsgspecError:
            for line in block.splitlines():
                try:
                    _DECODER.decode(line)
                except msgspec.MsgspecError as error:
                    raise _not_a_line(self._path, number, error) from error
                number += 1
            raise


def _read_header(path: Path) -> Header:
    with _reading(path) as file:
        line = file.readline()
    try:
        header = msgspec.json.decode(line, type=Header)
    except msgspec.MsgspecError as error:
        raise _not_a_line(path, 1, error) from error
    if header.format != FORMAT:
        raise ClusterError(f"{path.name} has the format {header.format!r}; this version reads {FORMAT!r}")
    return header


@contextmanager
def _reading(path: Path) -> Iterator[BinaryIO]:
    """Raises ClusterError where it cannot be read, or not to its end."""
    try:
        with cast(BinaryIO, gzip.open(path)) if path.suffix == ".gz" else path.open("rb") as file:
            yield file
    except (OSError, EOFError, zlib.error) as error:
        raise ClusterError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    """Blocks of lines; the last one may lack its end."""
    rest = b""
    while block := file.read(_BLOCK_SIZE):
        block = rest + block
        end = block.rfind(b"\n") + 1
        rest = block[end:]
        yield block[:end]
    yield rest


def _not_a_line(path: Path, number: int, error: Exception) -> ClusterError:
    return ClusterError(f"{path.name}, line {number} is no line of a history ({FORMAT}): {error}")
