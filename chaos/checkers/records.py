"""Whether a partition kept what its producers were promised: what was sent and acknowledged against what is stored.

Every value is sent once by one producer, which numbers what it sends to one partition; retries are the client's and
carry the same value. What is judged holds under every fault: an acknowledged record is stored, once, where the
acknowledgement said; records of one producer are stored in the order sent; nothing is stored that no producer sent.
That offsets have no hole holds for partitions without transactions and compaction.
"""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from msgspec import Struct


class Anomaly(Enum):
    LOST = "an acknowledged record is not stored"
    MOVED = "an acknowledged record is stored at another offset"
    DUPLICATED = "a record is stored more than once"
    REORDERED = "records of one producer are not stored in the order sent"
    FOREIGN = "a record is stored that no producer sent"
    HOLE = "offsets are not contiguous"


class Stored(NamedTuple):
    """A record as a consumer read it."""

    offset: int
    value: bytes


class Sent(Struct, frozen=True, kw_only=True):
    """A record as its producer sent it."""

    producer: str
    # Rises by one with each record of this producer to this partition.
    number: int
    value: bytes
    # Where it was acknowledged; None when it never was: then it may be stored or not.
    offset: int | None = None


class Finding(Struct, frozen=True, kw_only=True):
    anomaly: Anomaly
    evidence: str

    def __str__(self) -> str:
        return f"{self.anomaly.name}: {self.anomaly.value}: {self.evidence}"


def judge(sent: Iterable[Sent], stored: Sequence[Stored], *, is_idempotent: bool = True) -> list[Finding]:
    """The anomalies of one partition, all of whose records are `stored`; none means that every promise was kept.

    Without idempotence a retry may store a record again and behind later ones: neither is an anomaly then.
    """
    by_value = {one.value: one for one in sent}
    places: dict[bytes, list[int]] = {}
    findings: list[Finding] = []

    def find(anomaly: Anomaly, evidence: str) -> None:
        findings.append(Finding(anomaly=anomaly, evidence=evidence))

    last_number: dict[str, int] = {}
    for before, record in zip((None, *stored), stored, strict=False):
        if before is not None and record.offset != before.offset + 1:
            find(Anomaly.HOLE, f"offset {record.offset} follows {before.offset}")
        places.setdefault(record.value, []).append(record.offset)
        origin = by_value.get(record.value)
        if origin is None:
            find(Anomaly.FOREIGN, f"{record.value!r:.60} at offset {record.offset}")
        elif is_idempotent:
            last = last_number.get(origin.producer, -1)
            if origin.number < last:
                find(Anomaly.REORDERED, f"{origin.producer} {origin.number} at {record.offset}, behind {last}")
            last_number[origin.producer] = max(last, origin.number)
    for value, offsets in places.items():
        if is_idempotent and len(offsets) > 1:
            find(Anomaly.DUPLICATED, f"{value!r:.60} at offsets {offsets}")
    for one in by_value.values():
        if one.offset is not None:
            found = places.get(one.value, [])
            if not found:
                find(Anomaly.LOST, f"{one.producer} {one.number}, acknowledged at offset {one.offset}")
            elif one.offset not in found:
                find(Anomaly.MOVED, f"{one.producer} {one.number}, acknowledged at {one.offset}, stored at {found}")
    return findings
