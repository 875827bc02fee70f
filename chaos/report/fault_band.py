"""Faults of a run as bands over its time, each with what its canaries proved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from ..faults.kinds import full_name
from ..histories.operation import History, Operation

CANARY: Final = "canary"
# Kinds that begin so make links fail; what slows a link lets canaries through.
PARTITION: Final = "partition"

Proof = Literal["proved", "took hold", "without effect", "not healed", "no canary"]


class FaultBand(Struct, frozen=True, kw_only=True):
    """A fault from `begin_ns` to `end_ns`; one that was never ended lasts as long as the run, and is not `is_ended`."""

    number: int
    kind: str
    begin_ns: int
    end_ns: int
    is_ended: bool
    # The fault as data, as the schedule has it.
    fault: Any
    proof: Proof
    error: str | None = None

    @property
    def name(self) -> str:
        """The kind with what it hits, as schedules name it: `partition:leaders`."""
        selector = self.fault.get("selector") if isinstance(self.fault, Mapping) else None
        return full_name(self.kind, selector if isinstance(selector, str) else "")


class _Canary(Struct, frozen=True):
    time_ns: int
    during: str | None
    works: bool


def fault_bands(history: History, end_ns: int) -> list[FaultBand]:
    """In the order of their beginnings. A fault begins with an event of the nemesis whose value has "begin", and ends
    with the next one of its kind that has none."""
    canaries: list[_Canary] = []
    begun: dict[str, list[Operation]] = {}
    spans: list[tuple[Operation, Operation | None]] = []
    for event in history.faults():
        if event.f == CANARY:
            value = event.value if isinstance(event.value, Mapping) else {}
            canaries.append(_Canary(event.time, value.get("during"), bool(value.get("works"))))
        elif isinstance(event.value, Mapping) and "begin" in event.value:
            begun.setdefault(event.f, []).append(event)
        elif begun.get(event.f):
            spans.append((begun[event.f].pop(0), event))
        else:
            # An event without a beginning is a fault of one moment.
            spans.append((event, event))
    spans += [(event, None) for left in begun.values() for event in left]
    spans.sort(key=lambda span: span[0].time)
    bands = []
    for number, (begin, end) in enumerate(spans, 1):
        value = begin.value
        band_end_ns = end_ns if end is None else end.time
        bands.append(
            FaultBand(
                number=number,
                kind=begin.f,
                begin_ns=begin.time,
                end_ns=band_end_ns,
                is_ended=end is not None,
                fault=value["begin"] if isinstance(value, Mapping) and "begin" in value else value,
                proof=_proof(canaries, [one for one in (begin, end) if one is not None], band_end_ns),
                error=begin.error or (None if end is None else end.error),
            )
        )
    return bands


def _proof(canaries: list[_Canary], events: list[Operation], end_ns: int) -> Proof:
    """The nemesis itself says where a fault did not take hold; partitions are proved by canaries."""
    for event in events:
        if event.error is not None or (isinstance(event.value, Mapping) and event.value.get("took_hold") is False):
            return "without effect"
    kind = events[0].f
    during = [one for one in canaries if one.during == kind and events[0].time <= one.time_ns <= end_ns]
    if not kind.startswith(PARTITION):
        return "took hold"
    if not during:
        return "no canary"
    if all(one.works for one in during):
        return "without effect"
    after = [one for one in canaries if one.during is None and one.time_ns >= end_ns]
    return "proved" if not after or after[0].works else "not healed"
