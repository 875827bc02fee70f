"""Where in a partition to begin or end: an offset, a distance from the end, a time."""

import re
from datetime import UTC, datetime
from enum import Enum
from typing import Final

from msgspec import Struct

_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGO = re.compile(r"-(\d+)(ms|s|m|h|d)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

SYNTAX: Final = (
    "`earliest`, `latest`, an offset (42), so many records before the end (-10), "
    "a time (2013-01-31, 2013-01-31T05:00Z, @1359608400000) or an age (-15m, -2h, -1d)"
)


class Edge(Enum):
    """The first offset that is there, and the one after the last."""

    EARLIEST = "earliest"
    LATEST = "latest"


class AtOffset(Struct, frozen=True):
    offset: int


class BeforeEnd(Struct, frozen=True):
    """So many offsets before the end, or at the start when there are fewer."""

    count: int


class AtTime(Struct, frozen=True):
    """The first offset whose timestamp is this or later; else the end."""

    timestamp_ms: int


Position = Edge | AtOffset | BeforeEnd | AtTime


def parse_position(text: str, now_ms: int) -> Position:
    """Reads one of `SYNTAX`. Times without a zone are UTC. Raises ValueError with a sentence."""
    if text in ("earliest", "beginning"):
        return Edge.EARLIEST
    if text in ("latest", "end"):
        return Edge.LATEST
    if re.fullmatch(r"\d+", text):
        return AtOffset(int(text))
    if re.fullmatch(r"-\d+", text):
        return BeforeEnd(-int(text))
    if ago := _AGO.fullmatch(text):
        return AtTime(now_ms - int(ago[1]) * _UNITS_MS[ago[2]])
    if re.fullmatch(r"@\d+", text):
        return AtTime(int(text[1:]))
    try:
        return AtTime(timestamp_ms_of(text))
    except ValueError:
        raise ValueError(f"{text!r} is no position; use {SYNTAX}") from None


def timestamp_ms_of(text: str) -> int:
    """Reads ISO 8601; without a zone it is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    elapsed = moment - _EPOCH
    # In integers: a float of seconds since 1970 does not hold every millisecond.
    return (elapsed.days * 86_400 + elapsed.seconds) * 1000 + elapsed.microseconds // 1000
