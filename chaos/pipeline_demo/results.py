"""What came out: the topics and the table, read by clients that know nothing of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from ...client.bootstrap import Bootstrap
from ...client.positions import Edge
from ...client.reader import Reader, resolve_ranges
from ...client.record_output import ReceivedRecord
from ...client.topics import Topics
from .expected import Frame
from .jobs import DEPARTURES, WITH_WEATHER


def departures_by_hour(bootstrap: Bootstrap) -> tuple[Frame, int]:
    """The last record of each key, by origin and hour; and how many records there are."""
    last: dict[bytes, dict[str, Any]] = {}
    count = 0
    for record in _records(bootstrap, DEPARTURES):
        last[record.key or b""] = msgspec.json.decode(record.value or b"")
        count += 1
    frame = pd.DataFrame(list(last.values()))
    frame["time"] = pd.to_datetime(frame["window_start"], utc=True)
    return frame.set_index(["origin", "time"])[["departures", "mean_delay"]].sort_index(), count


def flights_with_weather(bootstrap: Bootstrap) -> Frame:
    """One row for each record."""
    rows = []
    for record in _records(bootstrap, WITH_WEATHER):
        pair = msgspec.json.decode(record.value or b"")
        weather = {name: pair["right"][name] for name in ("temp", "precip", "visib")}
        rows.append({"time": pair["event_time"], **pair["left"], **weather})
    frame = pd.DataFrame(rows)
    frame["at_ms"] = pd.to_datetime(frame.pop("time"), utc=True).dt.as_unit("ms").astype("int64")
    return frame


def lake(location: Path) -> Frame:
    """The table's files, as any reader of Parquet sees them."""
    return pd.read_parquet(location, columns=["partition", "offset", "value"])


def _records(bootstrap: Bootstrap, topic: str) -> Iterator[ReceivedRecord]:
    topics = Topics(bootstrap)
    (found,) = topics.describe([topic])
    partitions = range(len(found.partitions))
    ranges = resolve_ranges(topics, topic, partitions, start=Edge.EARLIEST, end=Edge.LATEST)
    with Reader(bootstrap, topic, ranges) as reader:
        for batch in reader.batches():
            yield from batch
