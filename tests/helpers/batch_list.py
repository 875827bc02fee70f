"""A partition's log as a plain list of the batches that were written, against which a log is judged."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.protocol.batches import BatchHeader, read_header
from penstock.protocol.records import read_records
from penstock.storage.log.rules.producer_entry import IN_FLIGHT_BATCHES


@dataclass(frozen=True, slots=True)
class Written:
    """A batch, as it must be stored."""

    data: bytes
    header: BatchHeader

    @property
    def base_offset(self) -> int:
        return self.header.base_offset

    @property
    def next_offset(self) -> int:
        return self.header.next_offset


@dataclass(frozen=True, slots=True)
class Transaction:
    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class BatchList:
    """`hasty` are the producers that had more batches above the high watermark, once, than may be in flight."""

    def __init__(self) -> None:
        self.batches: list[Written] = []
        self.hasty: set[int] = set()

    @property
    def end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else 0

    def add(self, data: bytes, leader_epoch: int, high_watermark: int) -> None:
        head = self.end_offset.to_bytes(8) + data[8:12] + leader_epoch.to_bytes(4)
        stored = head + data[16:]
        header = read_header(stored, 0)
        self.batches.append(Written(stored, header))
        in_flight = [one for one in self.since(high_watermark) if one.header.producer_id == header.producer_id]
        if header.producer_id >= 0 and len(in_flight) > IN_FLIGHT_BATCHES:
            self.hasty.add(header.producer_id)

    def cut(self, offset: int) -> None:
        self.batches = [one for one in self.batches if one.next_offset <= offset]

    def since(self, offset: int) -> list[Written]:
        return [one for one in self.batches if one.next_offset > offset]

    def sequences(self, start_offset: int = 0) -> dict[int, int]:
        """Those that come next, of the producers with a batch from `start_offset` on."""
        found = {}
        for one in self.since(start_offset):
            header = one.header
            if header.producer_id >= 0 and not header.is_control:
                found[header.producer_id] = header.last_sequence + 1
        return found

    def transactions(self) -> tuple[list[Transaction], dict[int, int]]:
        """Those that ended, and since when others are open, by producer id."""
        ended: list[Transaction] = []
        is_open: dict[int, int] = {}
        for one in self.batches:
            header = one.header
            if header.is_control:
                (marker,) = read_records(one.data, header)
                first = is_open.pop(header.producer_id, None)
                if first is not None:
                    is_aborted = (marker.key or b"")[2:4] == b"\0\0"
                    ended.append(Transaction(header.producer_id, first, header.last_offset, is_aborted))
            elif header.is_transactional:
                is_open.setdefault(header.producer_id, header.base_offset)
        return ended, is_open

    def find(self, timestamp_ms: int, start_offset: int) -> int | None:
        """The first record with that timestamp or a larger one."""
        for one in self.since(start_offset):
            header = one.header
            for record in read_records(one.data, header):
                if record.offset >= start_offset and record.timestamp_ms >= timestamp_ms:
                    return record.offset
        return None
