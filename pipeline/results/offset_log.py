"""What Spark's checkpoint says of one batch: the offsets it reads up to, and its watermark. Pure.

Spark writes `offsets/<batch>` before it runs a batch and never changes it, so that a batch that is run again reads the
same (Spark: `OffsetSeqLog`). Offsets of a Kafka source are JSON: topic, partition, next offset.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

Offsets = Mapping[str, Mapping[str, int]]
"""Next offset by topic and partition (as text, as Spark has it)."""

_VERSION: Final = "v1"
_NO_OFFSET: Final = "-"
_EARLIEST: Final = -2
"""Spark's sign for it in offsets to start from."""


class OffsetLogError(Exception):
    """A file of the checkpoint is not what this version of Spark writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedBatch:
    """`sources` in Spark's order; a source without new data may have none."""

    watermark_ms: int
    sources: tuple[Offsets | None, ...]


class _Metadata(msgspec.Struct, frozen=True):
    batchWatermarkMs: int  # noqa: N815


def parse_logged_batch(text: str) -> LoggedBatch:
    """Raises OffsetLogError."""
    lines = text.splitlines()
    if len(lines) < 3 or lines[0] != _VERSION:
        raise OffsetLogError(f"an offset log starts with {_VERSION}, metadata and offsets, not with {text[:40]!r}")
    try:
        watermark_ms = msgspec.json.decode(lines[1], type=_Metadata).batchWatermarkMs
        sources = tuple(None if line == _NO_OFFSET else _offsets(line) for line in lines[2:])
    except msgspec.DecodeError as error:
        raise OffsetLogError(f"an offset log is not as expected: {error}") from error
    return LoggedBatch(watermark_ms=watermark_ms, sources=sources)


def parse_initial_offsets(text: str) -> Offsets:
    """Of a file `sources/<number>/0`: where a source began. Raises OffsetLogError."""
    # A zero byte is at the front, for Spark 2.1.0 (SPARK-19517).
    version, _, line = text.lstrip("\0").partition("\n")
    if version != _VERSION:
        raise OffsetLogError(f"initial offsets start with {_VERSION}, not with {version[:40]!r}")
    try:
        return _offsets(line)
    except msgspec.DecodeError as error:
        raise OffsetLogError(f"initial offsets are not as expected: {error}") from error


def offsets_of(sources: Iterable[Offsets | None], topics: Iterable[str]) -> Offsets:
    """Those of the topics, or of all, wherever they are among the sources."""
    wanted = set(topics)
    return {name: ends for one in sources if one for name, ends in one.items() if not wanted or name in wanted}


def range_of_batch(before: Offsets, after: Offsets) -> tuple[str, str] | None:
    """What `startingOffsets` and `endingOffsets` of a read of the batch are; None when it has no records.

    A partition that was added meanwhile starts at its earliest offset.
    """
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for topic, partitions in after.items():
        for partition, end in partitions.items():
            start = before.get(topic, {}).get(partition, _EARLIEST)
            if start != end:
                starts.setdefault(topic, {})[partition] = start
                ends.setdefault(topic, {})[partition] = end
    if not ends:
        return None
    return json.dumps(starts), json.dumps(ends)


def _offsets(line: str) -> Offsets:
    return msgspec.json.decode(line, type=dict[str, dict[str, int]])
