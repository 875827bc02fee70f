"""The entries of index files as they lie on the disk, read without a segment and without writing."""

from collections.abc import Sequence
from struct import Struct

from ..disk.files import Files
from ..log.offset_index import ENTRY as OFFSET_ENTRY
from ..log.time_index import ENTRY as TIME_ENTRY
from .rules.report import Report


def read_entries(files: Files, path: str, entry: Struct, report: Report) -> Sequence[tuple[int, int]]:
    """Pairs of integers. Apache Kafka makes the files of a segment that is appended to in their full size: the zeros
    behind the entries are left out. What is no entry is reported. OSError."""
    data = files.read(path)
    over = len(data) % entry.size
    if over:
        report.find(path, f"{len(data)} bytes are no multiple of the {entry.size} of an entry", len(data) - over)
        data = data[: len(data) - over]
    count = len(data) // entry.size
    zeros = bytes(entry.size)
    # An entry of zeros says nothing that no entry would not say, but the first of them.
    while count > 1 and data[(count - 1) * entry.size : count * entry.size] == zeros:
        count -= 1
    if count == 1 and data[: entry.size] == zeros and len(data) > entry.size:
        count = 0
    if count * entry.size < len(data):
        report.note(path, f"{len(data) - count * entry.size} bytes are preallocated", count * entry.size)
    return [(first, second) for first, second in entry.iter_unpack(data[: count * entry.size])]


def read_offset_entries(files: Files, path: str, base_offset: int, report: Report) -> list[tuple[int, int]]:
    """(last offset of a batch, its position)."""
    return [(base_offset + delta, place) for delta, place in read_entries(files, path, OFFSET_ENTRY, report)]


def read_time_entries(files: Files, path: str, base_offset: int, report: Report) -> list[tuple[int, int]]:
    """(timestamp, offset)."""
    return [(timestamp, base_offset + delta) for timestamp, delta in read_entries(files, path, TIME_ENTRY, report)]
