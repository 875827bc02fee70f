"""The verdict on topics of numbered records, in the form of the verdict on a history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from ...chaos.checkers.finding import KEPT_OF_A_TYPE, Findings, Verdict, worst_first
from .number_sequence import NumberSequence

_TEXTS: Final = {
    "duplicate": "number {number} of {name} is there again, at offset {offset}",
    "reordered": "number {number} of {name} lies at offset {offset}, behind a later one",
}


class Place(NamedTuple):
    """Which sequence: the records of a partition with this name."""

    topic: str
    partition: int
    sequence: str

    @property
    def key(self) -> str:
        return f"{self.topic}-{self.partition}"


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """Misplaced records of one batch of a sequence: all counted, those of the lowest offsets kept."""

    # By kind: how many, and (number, offset) of some.
    counts: dict[str, int]
    kept: dict[str, list[tuple[int, int]]]


def counted_in(sequence: NumberSequence, records: Iterable[tuple[int, int]]) -> Counted:
    """What `records`, (number, offset) in the order of their offsets, show of `sequence`, which is moved on."""
    counts: dict[str, int] = {}
    kept: dict[str, list[tuple[int, int]]] = {}
    for number, offset in records:
        misplaced = sequence.take(number, offset)
        if misplaced is not None:
            counts[misplaced.kind] = counts.get(misplaced.kind, 0) + 1
            places = kept.setdefault(misplaced.kind, [])
            if len(places) < KEPT_OF_A_TYPE:
                places.append((misplaced.number, misplaced.offset))
    return Counted(counts=counts, kept=kept)


def verdict_of(sequences: Iterable[tuple[Place, NumberSequence]], found: Iterable[tuple[Place, Counted]]) -> Verdict:
    """`sequences` as they stand at the end, `found` of all batches; gone through once, in their order."""
    findings = Findings()
    # Counted beside, where only some are kept.
    counts: Counter[str] = Counter()
    records = sequence_count = unnumbered = 0
    for place, sequence in sequences:
        sequence_count += 1
        records += sequence.records
        unnumbered += sequence.unnumbered
        counts["lost"] += sequence.lost
        name = place.sequence or "the partition"
        for gap in sequence.gaps:
            what = f"number {gap.first}" if gap.first == gap.last else f"numbers {gap.first} to {gap.last}"
            findings.add(
                "lost",
                f"{what} of {name} never came; what is behind lies at offset {gap.offset}",
                (),
                key=place.key,
                detail={"sequence": place.sequence, "first": gap.first, "last": gap.last, "offset": gap.offset},
            )
        if sequence.given_up:
            message = f"{sequence.given_up} more numbers of {name} never came, in gaps that were not kept"
            findings.add("lost", message, (), key=place.key, detail={"sequence": place.sequence})
    for place, counted in found:
        counts.update(counted.counts)
        for kind, places in counted.kept.items():
            for number, offset in places:
                name = place.sequence or "the partition"
                detail: Any = {"sequence": place.sequence, "number": number, "offset": offset}
                message = _TEXTS[kind].format(number=number, name=name, offset=offset)
                findings.add(kind, message, (), key=place.key, detail=detail)
    notes = []
    if not records:
        notes.append("no record with a number was read, so nothing was put to the test")
    if unnumbered:
        notes.append(f"{unnumbered:,} records have no number: nothing is known of them")
    kept = worst_first(findings.checked().findings)
    return Verdict(
        valid="anomalies" if kept else "invalid-run" if notes else "valid",
        findings=tuple(kept),
        counts={kind: count for kind, count in counts.items() if count},
        statistics={"topics": {"sequences": sequence_count, "records": records, "unnumbered": unnumbered}},
        notes=tuple(notes),
    )
