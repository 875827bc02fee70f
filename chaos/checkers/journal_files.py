"""A plain reader of the voters' metadata journals, and what must hold of them together, whatever the voters say.

The format is described in `quorum/raft/frames.py` and `journal_items.py`; nothing of these is used here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final, NamedTuple

import cbor2
import crc32c

_FRAME: Final = Struct(">4sQII")
_CHECKED: Final = Struct(">QI")
_MAGIC: Final = b"PQF1"
_SEGMENT: Final = 0


class Entry(NamedTuple):
    epoch: int
    command: bytes


@dataclass(slots=True)
class PlainJournal:
    """What is in a voter's files, up to the first frame that is not intact."""

    start_offset: int = 0
    commit_end: int = 0
    entries: list[Entry] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """What no journal may have, as sentences."""

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self.entries)

    def entry(self, offset: int) -> Entry | None:
        place = offset - self.start_offset
        return self.entries[place] if 0 <= place < len(self.entries) else None


def read_journal(segments: Mapping[int, bytes]) -> PlainJournal:
    """`segments` are the files, by the offset in their names."""
    journal = PlainJournal()
    is_first = True
    for name, data in sorted(segments.items()):
        has_head = False
        for items in _frames(data):
            for item in items:
                if item[0] == _SEGMENT:
                    if has_head:
                        journal.faults.append(f"segment {name} has a second head")
                    has_head = True
                    first_offset = item[2]
                    if is_first:
                        journal.start_offset = journal.commit_end = first_offset
                        is_first = False
                    elif first_offset != journal.end_offset:
                        journal.faults.append(f"segment {name} begins at {first_offset}, not {journal.end_offset}")
                        return journal
                elif not _replay(journal, item):
                    journal.faults.append(f"segment {name} has offset {item[1]}, not {journal.end_offset}")
                    return journal
    return journal


def judge_journals(journals: Mapping[int, PlainJournal], *, committed_end: int) -> Iterator[str]:
    """Of all voters by node; everything below `committed_end` is known to be committed. Yields sentences."""
    for node, journal in journals.items():
        yield from (f"the journal of voter {node}: {sentence}" for sentence in journal.faults)
    majority = len(journals) // 2 + 1
    committed_end = max([committed_end, *(journal.commit_end for journal in journals.values())])
    start = min((journal.start_offset for journal in journals.values()), default=0)
    for offset in range(start, max((journal.end_offset for journal in journals.values()), default=0)):
        found = {node: entry for node, one in journals.items() if (entry := one.entry(offset)) is not None}
        by_epoch: dict[int, bytes] = {}
        for node, entry in found.items():
            if by_epoch.setdefault(entry.epoch, entry.command) != entry.command:
                yield f"metadata offset {offset} of epoch {entry.epoch} has two contents, one on voter {node}"
        if offset < committed_end:
            # A snapshot took the place of what is below the start.
            covered = sum(journal.start_offset > offset for journal in journals.values())
            holders = max((list(found.values()).count(entry) for entry in found.values()), default=0)
            if covered + holders < majority:
                yield f"metadata offset {offset} is committed up to {committed_end}, and no majority has it: {found}"
                return
    if max((journal.end_offset for journal in journals.values()), default=0) < committed_end:
        yield f"metadata is committed up to {committed_end}, and no voter has that"


def _frames(data: bytes) -> Iterator[list[list[Any]]]:
    position = 0
    while len(data) - position >= _FRAME.size:
        magic, sequence, length, checksum = _FRAME.unpack_from(data, position)
        start = position + _FRAME.size
        payload = data[start : start + length]
        if magic != _MAGIC or len(payload) < length:
            return
        if crc32c.crc32c(payload, crc32c.crc32c(_CHECKED.pack(sequence, length))) != checksum:
            return
        yield cbor2.loads(payload)
        position = start + length


def _replay(journal: PlainJournal, item: list[Any]) -> bool:
    """Returns whether it can stand here."""
    match item:
        case [2, int() as offset, int() as epoch, bytes() as command]:
            if offset != journal.end_offset:
                return False
            journal.entries.append(Entry(epoch, command))
        case [4, int() as offset, int() as epoch]:
            kept = offset - journal.start_offset
            if 0 < kept <= len(journal.entries) and journal.entries[kept - 1].epoch == epoch:
                del journal.entries[kept:]
            elif kept == 0:
                journal.entries.clear()
            else:
                journal.start_offset = journal.commit_end = offset
                journal.entries.clear()
        case [5, int() as end_offset]:
            journal.commit_end = max(journal.commit_end, end_offset)
    return True
