"""A segment that is no longer appended to, for processes that read it beside its node."""

from msgspec import Struct


class ClosedSegment(Struct, frozen=True):
    base_offset: int
    size_bytes: int
