"""A segment that is no longer appended to, for processes that read it beside its node."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClosedSegment:
    base_offset: int
    size_bytes: int
