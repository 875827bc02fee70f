"""Fields of decoded records: groups, and the time of an event, whatever type its field has."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from ..job import JobError
from ..records.decoding import ENCODED, REASON

EVENT_TIME: Final = "event_time"

_MAX_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999."""
_OWN: Final = {
    "record.key": F.col,
    "record.topic": F.col,
    "record.partition": F.col,
    "record.timestamp": F.col,
}


class FieldError(JobError):
    """A field that the config names is not in the value, or has no fitting type."""


def field(records: DataFrame, path: str) -> tuple[Column, T.DataType]:
    """A field of the value by its path (`a.b`), or of the record: `record.key` (as text), `record.topic`,
    `record.partition`, `record.timestamp`. Raises FieldError."""
    if path == "record.key":
        return F.col("key").cast("string"), T.StringType()
    if path.startswith("record."):
        name = path.removeprefix("record.")
        if path not in _OWN:
            raise FieldError(f"a record has no {name}: it has {', '.join(sorted(_OWN))}")
        return F.col(name), records.schema[name].dataType
    kind: T.DataType = records.schema["value"].dataType
    column = F.col("value")
    for name in path.split("."):
        if not isinstance(kind, T.StructType) or name not in kind.fieldNames():
            known = f"it has {', '.join(kind.fieldNames())}" if isinstance(kind, T.StructType) else "set value.format"
            raise FieldError(f"the value has no field {path!r}: {known}")
        column, kind = column[name], kind[name].dataType
    return column, kind


def with_event_time(records: DataFrame, path: str, *, max_ahead_ms: int = 0) -> DataFrame:
    """Adds `event_time`. A record without one gets a reason, as has one that is more than `max_ahead_ms` after the
    record's own timestamp (0: any is good): one time in the far future closes all windows before it, for all records.

    A number is milliseconds since 1970, a text is ISO 8601. An empty path is the record's timestamp. Raises FieldError.
    """
    if not path:
        return records.withColumn(EVENT_TIME, F.col("timestamp"))
    column, kind = field(records, path)
    if isinstance(kind, T.LongType | T.IntegerType):
        # Beyond this Spark refuses the number and with it the query.
        time = F.when(column.between(-_MAX_MS, _MAX_MS), F.timestamp_millis(column.cast("bigint")))
    elif isinstance(kind, T.StringType):
        time = F.try_to_timestamp(column)
    elif isinstance(kind, T.TimestampType | T.TimestampNTZType | T.DateType):
        time = column.cast("timestamp")
    else:
        raise FieldError(f"{path} is {kind.simpleString()}: an event time is a timestamp, a date, a text or a long")
    timed = records.withColumn(EVENT_TIME, time)
    missing = F.when(F.col(ENCODED).isNull(), F.lit("the value is null, so it has no event time")).when(
        F.col(EVENT_TIME).isNull(), F.lit(f"the event time {path} is null, or no time")
    )
    if max_ahead_ms:
        ahead = F.unix_millis(EVENT_TIME) - F.unix_millis("timestamp")
        missing = missing.when(ahead > max_ahead_ms, F.lit(f"the event time {path} is too far after the record's own"))
    return timed.withColumn(REASON, F.coalesce(REASON, missing))
