"""Flights and weather of the demo as input of a stream processor, and what must come of them, in plain Python."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from missing_tools import unavailable

from penstock.chaos.demo.dataset import DatasetMissingError, find_tables, open_table
from penstock.chaos.demo.rows import records_of
from penstock.chaos.demo.sources import SOURCES

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS


class Row(NamedTuple):
    topic: str
    key: bytes
    value: bytes
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    airlines: Sequence[Row]
    events: Sequence[Row]
    """Flights and weather, by time."""

    @property
    def flights(self) -> list[Row]:
        return [row for row in self.events if row.topic == "flights"]

    @property
    def weather(self) -> list[Row]:
        return [row for row in self.events if row.topic == "weather"]


def take(flight_count: int, *, now_ms: int) -> Sample:
    """The first flights of the year, each with a number of its own, and the weather until the last of them.

    As if all had just been: brokers delete what is older than a topic's retention, changelogs of windows too.
    """
    try:
        find_tables()
    except DatasetMissingError as missing:
        unavailable(str(missing))
    flights = [
        row._replace(value=json.dumps({**json.loads(row.value), "number": number}).encode())
        for number, row in enumerate(islice(_rows("flights"), flight_count))
    ]
    first_ms, last_ms = (choose(row.timestamp_ms for row in flights) for choose in (min, max))
    weather = [row for row in _rows("weather") if first_ms - HOUR_MS <= row.timestamp_ms <= last_ms]
    later_ms = (now_ms - last_ms) // DAY_MS * DAY_MS
    events = [row._replace(timestamp_ms=row.timestamp_ms + later_ms) for row in flights + weather]
    # Names are there before anything happens.
    airlines = [row._replace(timestamp_ms=first_ms + later_ms - DAY_MS) for row in _rows("airlines")]
    return Sample(airlines=airlines, events=sorted(events, key=lambda row: row.timestamp_ms))


def counts(sample: Sample) -> Counter[str]:
    """Flights by carrier and UTC day, `AA@` and the day's first millisecond."""
    return Counter(f"{_field(row, 'carrier')}@{row.timestamp_ms - row.timestamp_ms % DAY_MS}" for row in sample.flights)


def weather_of_flights(sample: Sample) -> Counter[str]:
    """Each flight with each report of its airport that is less than an hour older."""
    reports: dict[bytes, list[Row]] = defaultdict(list)
    for row in sample.weather:
        reports[row.key].append(row)
    return Counter(
        f"{_field(flight, 'number')}|{_field(report, 'time_hour')}|{_field(report, 'temp')}"
        for flight in sample.flights
        for report in reports[flight.key]
        if 0 <= flight.timestamp_ms - report.timestamp_ms < HOUR_MS
    )


def airlines_of_flights(sample: Sample) -> Counter[str]:
    """Each flight with the name of who flies."""
    names = {row.key.decode(): _field(row, "name") for row in sample.airlines}
    return Counter(f"{_field(row, 'number')}|{names[_field(row, 'carrier')]}" for row in sample.flights)


def _rows(topic: str) -> Iterator[Row]:
    (source,) = (source for source in SOURCES if source.topic == topic)
    with open_table(find_tables() / source.file) as lines:
        for record in records_of(source, lines):
            assert record.key is not None, "every row has a key"
            assert record.value is not None, "and a value"
            yield Row(topic, record.key, record.value, record.timestamp_ms or 0)


def _field(row: Row, name: str) -> str:
    value: Any = json.loads(row.value)[name]
    return "" if value is None else str(value)
