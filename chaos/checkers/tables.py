"""What must hold of a compacted topic: of each key the last record is there, and of what is there nothing is made up.

| rule | what it says |
|---|---|
| FOREIGN | a record has the key and the value of one that was sent, and not in a transaction that was aborted |
| ORDER | offsets rise |
| MOVED | an acknowledged record that is there is at its offset |
| LOST | of an acknowledged record's key there is that record or a later one, unless a later one may be a tombstone, or
         behind the end that a reader had in mind when it began: while it reads, compaction goes on |
| STALE | where a tombstone is gone, so are the values before it: of files only, as they may go while one reads |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(slots=True, eq=False)
class TableSend:
    key: bytes
    value: bytes | None
    """None: a tombstone."""
    offset: int | None = None
    """Where it was acknowledged to be; of one in a transaction once that is committed."""
    acknowledged_s: float | None = None
    is_aborted: bool = False
    """Its client asked for that."""


class TableRecord(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None


@dataclass(slots=True)
class TableHistory:
    sends: list[TableSend] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    read_count: int = 0

    def on_read(self, who: str, records: Sequence[TableRecord], end_offset: int, *, began_s: float) -> None:
        """`records` are all of the topic that are committed and below `end_offset`, read from `began_s` on."""
        self.read_count += len(records)
        known = [
            one
            for one in self.sends
            if one.acknowledged_s is not None
            and one.acknowledged_s < began_s
            and one.offset is not None
            and one.offset < end_offset
        ]
        for sentence in judge_table(records, self.sends, known, end_offset=end_offset):
            self.violations.append(f"{who}: {sentence}")

    def judge_files(self, records: Sequence[TableRecord], *, keeps_tombstones: bool) -> Iterator[str]:
        """Of one replica that must have all that was acknowledged; it may have what was aborted, too.

        `keeps_tombstones`: it was not away for longer than tombstones stay.
        """
        known = [one for one in self.sends if one.acknowledged_s is not None]
        yield from judge_table(records, self.sends, known, has_aborted=True)
        last_of_key = {record.key: record.offset for record in records}
        for one in known:
            assert one.offset is not None
            if keeps_tombstones and one.value is None and last_of_key.get(one.key, one.offset) < one.offset:
                yield f"STALE: {one.key!r} at {last_of_key[one.key]}, deleted at offset {one.offset}"


def judge_table(
    records: Sequence[TableRecord],
    sends: Sequence[TableSend],
    acknowledged: Iterable[TableSend],
    *,
    has_aborted: bool = False,
    end_offset: int | None = None,
) -> Iterator[str]:
    """Yields sentences. `acknowledged` are those that must be there, or a later record of the same key.

    A reader read up to `end_offset`; with None `records` are all that there is.
    """
    # Of tombstones no two can be told apart.
    sent = {(one.key, one.value): one for one in sends}
    is_possible = {key for key, one in sent.items() if has_aborted or one.value is None or not one.is_aborted}
    last_offset = -1
    last_of_key: dict[bytes, int] = {}
    for record in records:
        if record.offset <= last_offset:
            yield f"ORDER: offset {record.offset} follows {last_offset}"
        last_offset = max(last_offset, record.offset)
        if record.key is None or (record.key, record.value) not in is_possible:
            yield f"FOREIGN: {record.key!r} {(record.value or b'')[:40]!r} at offset {record.offset}"
            continue
        origin = sent[record.key, record.value]
        if record.value is not None and origin.offset is not None and origin.offset != record.offset:
            yield f"MOVED: {record.value[:40]!r} is at {record.offset}, acknowledged at {origin.offset}"
        last_of_key[record.key] = record.offset
    unplaced_tombstones: set[bytes] = set()
    tombstone_ends: dict[bytes, int] = {}
    for one in sends:
        if one.value is None and one.offset is not None:
            tombstone_ends[one.key] = max(tombstone_ends.get(one.key, -1), one.offset)
        elif one.value is None:
            unplaced_tombstones.add(one.key)
    behind = set() if end_offset is None else _keys_behind(sends, end_offset)
    for one in acknowledged:
        assert one.offset is not None
        is_there = last_of_key.get(one.key, -1) >= one.offset
        may_be_deleted = tombstone_ends.get(one.key, -1) >= one.offset or one.key in unplaced_tombstones
        if not is_there and not may_be_deleted and one.key not in behind:
            yield f"LOST: {one.key!r} {(one.value or b'')[:40]!r}, acknowledged at offset {one.offset}"


def _keys_behind(sends: Iterable[TableSend], end_offset: int) -> set[bytes]:
    """Keys of which a record may have been written from `end_offset` on."""
    return {one.key for one in sends if not one.is_aborted and (one.offset is None or one.offset >= end_offset)}
