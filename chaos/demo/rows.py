"""Rows of a table as records: JSON with the row's key and its event's time."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from ...client.positions import timestamp_ms_of
from ...client.record_input import RecordToSend
from .sources import Source

_NOT_AVAILABLE: Final = "NA"
_MINUTE_MS: Final = 60_000

_Value = str | int | float | None


def records_of(source: Source, lines: Iterable[str]) -> Iterator[RecordToSend]:
    """Reads CSV with a heading. Raises ValueError for a row that does not fit the source."""
    rows = csv.reader(lines)
    columns = next(rows)
    converters: list[Callable[[str], _Value]] = [
        _text if column in source.text_columns else _number for column in columns
    ]
    key_index = columns.index(source.key_column)
    hour_index = None if source.hour_column is None else columns.index(source.hour_column)
    minute_index = None if source.minute_column is None else columns.index(source.minute_column)
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    # A year has fewer hours than flights.
    hours: dict[str, int] = {}
    for row in rows:
        timestamp_ms = None
        if hour_index is not None:
            hour = row[hour_index]
            timestamp_ms = hours.get(hour)
            if timestamp_ms is None:
                timestamp_ms = hours[hour] = timestamp_ms_of(hour)
            if minute_index is not None:
                timestamp_ms += int(row[minute_index]) * _MINUTE_MS
        values = {column: convert(text) for column, convert, text in zip(columns, converters, row, strict=True)}
        yield RecordToSend(key=row[key_index].encode(), value=encode(values).encode(), timestamp_ms=timestamp_ms)


def _text(text: str) -> _Value:
    return None if text == _NOT_AVAILABLE else text


def _number(text: str) -> _Value:
    if text == _NOT_AVAILABLE:
        return None
    try:
        return int(text)
    except ValueError:
        return float(text)
