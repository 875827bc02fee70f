"""A history as frames of Spark: lines become events, events operations, operations the parts of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, overload

import msgspec
import pyarrow as pa
from pyspark.sql import Window, functions

from ...chaos.histories.operation import NEMESIS, Header, History, Operation
from .key_parts import NEVER, NONE, By, PairRow, PartRow, parts_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EVENT: Final = "index long, time long, process string, type string, f string, final boolean, value string"
_PART: Final = (
    "key string, is_first boolean, order long, invoked long, invoked_ns long, completed long, completed_ns long,"
    " process string, f string, outcome string, final_invoked boolean, final_completed boolean, asked string,"
    " answer string, places array<long>, position long, micro_count long"
)
# Rows that go to the JVM at a time.
_ROWS_AT_ONCE: Final = 10_000
# Assignments belong to all keys.
_OF_ALL_KEYS: Final = ("assign", "subscribe")


class _Event(msgspec.Struct):
    """A line, its value as it is; `type` "header" is the first line of a file."""

    type: str
    index: int = NONE
    time: int = 0
    process: msgspec.Raw = msgspec.Raw(b"null")
    f: str = ""
    final: bool = False
    value: msgspec.Raw = msgspec.Raw(b"null")


def events_of(lines: DataFrame) -> DataFrame:
    """Events of clients, of rows with a `value`: a line of a history's file. Spark fails with ValueError for others."""
    return lines.mapInArrow(_decoded, _EVENT)


def _decoded(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    decode = msgspec.json.Decoder(_Event).decode
    nemesis = msgspec.json.encode(NEMESIS)
    for batch in batches:
        rows = []
        for line in batch.column(0).to_pylist():
            if not line.strip():
                continue
            try:
                event = decode(line)
            except msgspec.MsgspecError as error:
                raise ValueError(f"expected a line of a history, and found {line[:200]!r}: {error}") from error
            process = bytes(event.process)
            if event.type == "header" or process == nemesis:
                continue
            if event.type not in ("invoke", "ok", "fail", "info") or event.index < 0:
                raise ValueError(f"expected an event with an index and a type of its own, and found {line[:200]!r}")
            value = bytes(event.value)
            rows.append(
                (
                    event.index, event.time, process.decode(), event.type, event.f, event.final,
                    None if value == b"null" else value.decode(),
                )
            )  # fmt: skip
        yield _batch(rows, _EVENT)


def operations_of(events: DataFrame) -> DataFrame:
    """Each invocation with its completion, as `PairRow`. What a process did after an invocation without one ends it."""
    following = Window.partitionBy("process").orderBy("index")
    columns = ("index", "time", "type", "final", "value")
    paired = events.select(
        "*", *(functions.lead(column).over(following).alias(f"next_{column}") for column in columns)
    ).where("type = 'invoke'")
    is_complete = functions.col("next_type").isNotNull() & (functions.col("next_type") != "invoke")
    return paired.select(
        functions.coalesce("next_index", functions.lit(NEVER)).alias("order"),
        functions.col("index").alias("invoked"),
        functions.col("time").alias("invoked_ns"),
        functions.when(is_complete, functions.col("next_index")).otherwise(NONE).alias("completed"),
        functions.when(is_complete, functions.col("next_time")).otherwise(functions.col("time")).alias("completed_ns"),
        "process",
        "f",
        functions.when(is_complete, functions.col("next_type")).otherwise("info").alias("outcome"),
        functions.col("final").alias("final_invoked"),
        functions.when(is_complete, functions.col("next_final"))
        .otherwise(functions.lit(False))
        .alias("final_completed"),
        functions.col("value").alias("asked"),
        functions.when(is_complete, functions.col("next_value")).alias("answer"),
    )


def parts_frame(operations: DataFrame, by: By) -> DataFrame:
    """`PartRow`s. Spark fails with ValueError for values that are not those of the workload."""

    def split(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            parts = (part for row in _rows(batch) for part in parts_of(PairRow(*row), by))
            yield from _batches(parts, _PART)

    return operations.mapInArrow(split, _PART)


def by_key(
    parts: DataFrame, judge: Callable[[str, Iterator[PartRow]], Iterable[tuple[Any, ...]]], schema: str
) -> DataFrame:
    """`judge` is given each key with its rows in the order of `order`, assignments among them, and yields rows of
    `schema`."""
    keyed = parts.where("key is not null")
    of_all = parts.where(functions.col("key").isNull() & functions.col("f").isin(*_OF_ALL_KEYS)).drop("key")
    keys = keyed.select("key").distinct()
    columns = list(PartRow._fields)
    whole = keyed.select(columns).unionByName(of_all.crossJoin(functions.broadcast(keys)).select(columns))

    def run(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        rows = (PartRow(*row) for batch in batches for row in _rows(batch))
        for key, of_key in groupby(rows, key=lambda row: row.key):
            assert key is not None, "rows without a key are left out"
            yield from _batches(judge(key, of_key), schema)

    return whole.repartition("key").sortWithinPartitions("key", "order", "invoked").mapInArrow(run, schema)


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _batches(rows: Iterable[tuple[Any, ...]], schema: str) -> Iterable[pa.RecordBatch]:
    waiting = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == _ROWS_AT_ONCE:
            yield _batch(waiting, schema)
            waiting = []
    if waiting:
        yield _batch(waiting, schema)


_TYPES: Final = {
    "long": pa.int64(), "string": pa.string(), "boolean": pa.bool_(), "array<long>": pa.list_(pa.int64()),
}  # fmt: skip


def _batch(rows: list[tuple[Any, ...]], schema: str) -> pa.RecordBatch:
    fields = [pa.field(*_field(one)) for one in schema.split(",")]
    columns = list(zip(*rows, strict=True)) or [()] * len(fields)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _field(text: str) -> tuple[str, pa.DataType]:
    name, type_ = text.split()
    return name, _TYPES[type_]


class FrameHistory(Sequence[Operation]):
    """The events of lines that the driver cannot read from a file, sorted by Spark each time that they are gone
    through."""

    def __init__(self, lines: DataFrame) -> None:
        self._lines = lines

    def opened(self) -> History:
        """Raises ValueError where there is no line that is a header."""
        first = self._lines.where(functions.col("value").startswith('{"type":"header"')).first()
        if first is None:
            raise ValueError("expected a header in the first line of a history, and found none")
        return History(msgspec.json.decode(first.value, type=Header), self)

    def __iter__(self) -> Iterator[Operation]:
        decode = msgspec.json.Decoder(Operation).decode
        index = functions.get_json_object("value", "$.index").cast("long")
        for row in self._lines.where(index.isNotNull()).orderBy(index).toLocalIterator():
            yield decode(row.value)

    def __len__(self) -> int:
        return self._lines.count() - 1

    @overload
    def __getitem__(self, index: int) -> Operation: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Operation]: ...
    def __getitem__(self, index: int | slice) -> Operation | Sequence[Operation]:
        return list(self)[index]
