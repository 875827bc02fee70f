"""Sends a table into its topic and reads it back."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click
from msgspec import Struct

from ...client import clock
from ...client.bootstrap import Bootstrap
from ...client.positions import AtTime, Edge, timestamp_ms_of
from ...client.reader import Reader, resolve_ranges
from ...client.sender import Placed, Sender
from ...client.terminal import progress
from ...client.topics import Topics
from ...protocol.murmur2 import partition_of_key
from .dataset import open_table
from .ledger import Ledger
from .rows import records_of
from .sources import Source

_RECORDS_PER_REPORT: Final = 500
# Enough to see what kind of thing is wrong.
_MAX_FINDINGS: Final = 5
# A day in the middle of the year, to look up by time.
_LOOKED_UP_TIME: Final = "2013-07-04T12:00:00Z"


class Streamed(Struct, frozen=True, kw_only=True):
    """What was sent of one table, all of it acknowledged."""

    ledger: Ledger
    size_bytes: int
    seconds: float
    partitions: Mapping[int, Placed]


class ReadBack(Struct, frozen=True, kw_only=True):
    record_count: int
    seconds: float
    # One sentence for each thing that is not as it was sent.
    findings: tuple[str, ...]


def stream(bootstrap: Bootstrap, source: Source, tables: Path) -> Streamed:
    """Raises ClickException when a record is refused."""
    ledger = Ledger()
    started_s = clock.monotonic_s()
    sender = Sender(bootstrap, source.topic, compression="lz4")
    with (
        open_table(tables / source.file) as lines,
        progress(f"sending {source.topic}", total=source.row_count, unit="records") as bar,
    ):
        for number, record in enumerate(records_of(source, lines), start=1):
            assert record.key is not None, "every row has a key"
            assert record.value is not None, "and a value"
            sender.send(record)
            ledger.add(record.key, record.value, record.timestamp_ms)
            if sender.has_failed:
                break
            if number % _RECORDS_PER_REPORT == 0:
                bar.advance_to(number)
        sent = sender.finish()
    if sent.first_error is not None:
        raise click.ClickException(f"Topic {source.topic}: {bootstrap.sentence(sent.first_error)}")
    return Streamed(
        ledger=ledger,
        size_bytes=sent.size_bytes,
        seconds=clock.monotonic_s() - started_s,
        partitions=sent.partitions,
    )


def read_back(bootstrap: Bootstrap, source: Source, streamed: Streamed) -> ReadBack:
    """Reads the whole topic and compares it with what was sent."""
    topics = Topics(bootstrap)
    ranges = resolve_ranges(topics, source.topic, range(source.partition_count), start=Edge.EARLIEST, end=Edge.LATEST)
    ledger = Ledger()
    findings: list[str] = []
    next_offsets = dict.fromkeys(range(source.partition_count), 0)
    looked_up_ms = timestamp_ms_of(_LOOKED_UP_TIME)
    first_after: dict[int, int] = {}
    placed: dict[bytes, int] = {}
    started_s = clock.monotonic_s()
    with (
        progress(f"reading {source.topic}", total=source.row_count, unit="records") as bar,
        Reader(bootstrap, source.topic, ranges) as reader,
    ):
        for batch in reader.batches():
            for record in batch:
                key = record.key or b""
                # A table row has the time at which it was sent, which only the client knew.
                timestamp_ms = None if source.hour_column is None else record.timestamp_ms
                ledger.add(key, record.value or b"", timestamp_ms)
                if record.offset != next_offsets[record.partition]:
                    findings.append(
                        f"partition {record.partition} has offset {record.offset}"
                        f" where {next_offsets[record.partition]} is due"
                    )
                next_offsets[record.partition] = record.offset + 1
                placed.setdefault(key, record.partition)
                if placed[key] != record.partition:
                    findings.append(f"key {key!r} is on partitions {placed[key]} and {record.partition}")
                if timestamp_ms is not None and timestamp_ms >= looked_up_ms:
                    first_after.setdefault(record.partition, record.offset)
            bar.advance_to(ledger.record_count)
    seconds = clock.monotonic_s() - started_s
    findings += streamed.ledger.findings(ledger)
    findings += [
        f"key {key!r} is on partition {partition}, where the Java client would not look for it"
        for key, partition in placed.items()
        if partition_of_key(key, source.partition_count) != partition
    ]
    if ledger.record_count != source.row_count:
        findings.append(f"{source.row_count} records are due, and {ledger.record_count} are there")
    if source.hour_column is not None:
        found = topics.offsets(source.topic, range(source.partition_count), AtTime(looked_up_ms))
        findings += [
            f"partition {partition} looks up {_LOOKED_UP_TIME} at offset {offset}, not {first_after.get(partition)}"
            for partition, offset in found.items()
            if offset != first_after.get(partition)
        ]
    return ReadBack(record_count=ledger.record_count, seconds=seconds, findings=tuple(findings[:_MAX_FINDINGS]))
