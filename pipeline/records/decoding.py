"""Decodes the column `value` of records: DataFrame to DataFrame, streams and batches alike.

One bad record never ends a query here: its `value` is null, and `reason` says why. A null value (a tombstone) is null
with no reason. `dead_letters` says what becomes of bad records.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_type

from . import avro, protobuf
from .errors import BadRecordError, FormatError
from .registry import Registry, StoredSchema, registry_of
from .schema_source import FolderSource, SchemaSource, schema_source, stored_file
from .value_format import ValueFormat

ENCODED: Final = "encoded"
"""The column with the value as it came."""
REASON: Final = "reason"
"""The column with the reason why a value cannot be decoded; null when it can."""

_CORRUPT: Final = "__corrupt"
_MAX_REASON: Final = 500
"""Characters: a reason is a header of the dead letter."""
_HEADER_SIZE: Final = 5


class _Decoder(Protocol):
    def decode(self, data: bytes) -> dict[str, Any]: ...


def decode(records: DataFrame, value: ValueFormat, topic: str = "") -> DataFrame:
    """The records with their `value` decoded, the columns `encoded` and `reason` added at the end.

    `topic` makes the subject `<topic>-value` when neither the reader's schema nor a subject is set. Raises FormatError,
    and RegistryError when the reader's schema is a registry's. Schemas of writers are looked up where and when the
    values are decoded: a registry that does not answer then fails the query, for no record is to blame.
    """
    records = records.withColumn(ENCODED, F.col("value"))
    if value.format == "raw":
        return records.withColumn(REASON, F.lit(None).cast("string"))
    if value.format == "json":
        return _decode_json(records, value)
    source = schema_source(value)
    registry = registry_of(value.registry) if value.registry else None
    stored, where = _reader_schema(value, registry, source, topic)
    decoder: _Decoder
    if value.format == "avro":
        schema = avro.parse_stored(stored, registry, where)
        struct = avro.spark_type(schema)
        decoder = avro.AvroDecoder(schema, source, registry)
    else:
        message = protobuf.reader_type(stored, registry, value.message, where)
        struct = protobuf.spark_type(message)
        decoder = protobuf.ProtobufDecoder(message, source, registry)
    return _decode_in_python(records, struct, decoder)


def _reader_schema(
    value: ValueFormat, registry: Registry | None, source: SchemaSource | None, topic: str
) -> tuple[StoredSchema, str]:
    if value.schema:
        return stored_file(Path(value.schema)), value.schema
    if isinstance(source, FolderSource):
        return source.newest, f"the newest schema of {value.schemas}"
    if registry is None:
        raise AssertionError("settings without a reader's schema are refused")
    subject = value.subject or (topic and f"{topic}-value")
    if not subject:
        raise FormatError("of several topics no single subject follows: set subject, or schema")
    return registry.newest(subject), f"the newest schema of {subject}"


def _decode_json(records: DataFrame, value: ValueFormat) -> DataFrame:
    struct = json_type(value)
    if _CORRUPT in struct.fieldNames():
        raise FormatError(f"a field cannot be called {_CORRUPT}")
    encoded = F.col(ENCODED)
    body = encoded
    framing = F.lit(None).cast("string")
    if value.wire_format:
        body = F.substring(encoded, _HEADER_SIZE + 1, 2**31 - 1)
        framing = F.when(
            (F.length(encoded) < _HEADER_SIZE) | (F.substring(encoded, 1, 1) != F.lit(b"\0")),
            F.lit(f"the value does not start with the {_HEADER_SIZE} bytes of the wire format"),
        )
    text = body.cast("string")
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    parsed = F.from_json(text, T.StructType([*struct.fields, T.StructField(_CORRUPT, T.StringType())]), options)
    reason = F.coalesce(
        framing,
        F.when(~F.is_valid_utf8(text), F.lit("the value is not UTF-8, which JSON is")),
        F.when(F.trim(text) == "", F.lit("the value is empty")),
        F.when(
            F.col("parsed").isNull() | F.col(f"parsed.{_CORRUPT}").isNotNull(),
            F.when(F.try_parse_json(text).isNull(), F.lit("the value is not JSON")).otherwise(
                F.lit(_capped(f"the value is JSON, but not of the schema {struct.simpleString()}"))
            ),
        ),
    )
    fields = [F.col(f"parsed.`{name.replace('`', '``')}`").alias(name) for name in struct.fieldNames()]
    return (
        records.withColumn("parsed", parsed)
        .withColumn(REASON, F.when(encoded.isNotNull(), reason))
        .withColumn("value", F.when(_is_good(encoded), F.struct(*fields)))
        .drop("parsed")
    )


def _is_good(encoded: Column) -> Column:
    return encoded.isNotNull() & F.col(REASON).isNull()


def json_type(value: ValueFormat) -> T.StructType:
    """Raises FormatError."""
    try:
        if value.schema.endswith(".json"):
            found: Any = T.StructType.fromJson(_json_file(Path(value.schema)))
        else:
            found = T.StructType.fromDDL(value.schema)
    except FormatError:
        raise
    except Exception as error:  # Spark's parser raises Java's exceptions, the other one KeyError and the like
        raise FormatError(f"schema {value.schema!r} is no schema of Spark: {str(error).splitlines()[0]}") from error
    if not isinstance(found, T.StructType):
        raise FormatError(f"schema {value.schema!r} is {found.simpleString()}, and only a struct has columns")
    return found


def _json_file(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except OSError as error:
        raise FormatError(f"the schema {path} cannot be read: {error.strerror}") from error
    return found


def _decode_in_python(records: DataFrame, struct: T.StructType, decoder: _Decoder) -> DataFrame:
    result = T.StructType(
        [
            *(T.StructField("value", struct) if one.name == "value" else one for one in records.schema.fields),
            T.StructField(REASON, T.StringType()),
        ]
    )
    names = [one.name for one in records.schema.fields]
    return records.mapInArrow(_batches(decoder, to_arrow_type(struct), names), result)


def _batches(
    decoder: _Decoder, struct: pa.DataType, names: list[str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Sent to executors, so it holds nothing but what it needs."""

    def decode_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values, reasons = decode_values(batch.column(names.index("value")).to_pylist(), decoder, struct)
            columns = [values if name == "value" else batch.column(index) for index, name in enumerate(names)]
            yield pa.RecordBatch.from_arrays([*columns, reasons], names=[*names, REASON])

    return decode_batches


def decode_values(encoded: list[bytes | None], decoder: _Decoder, struct: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """The decoded values and the reasons, one of each for each value. Raises RegistryError."""
    values: list[dict[str, Any] | None] = []
    reasons: list[str | None] = []
    for data in encoded:
        value, reason = None, None
        if data is not None:
            try:
                value = decoder.decode(data)
            except BadRecordError as error:
                reason = _capped(str(error))
        values.append(value)
        reasons.append(reason)
    try:
        made = pa.array(values, type=struct)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        # One value that its type cannot hold (a decimal with too many digits) refuses them all: which is it?
        for index, value in enumerate(values):
            try:
                pa.array([value], type=struct)
            except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
                values[index], reasons[index] = None, _capped(f"the value does not fit its type: {error}")
        made = pa.array(values, type=struct)
    return made, pa.array(reasons, type=pa.string())


def _capped(reason: str) -> str:
    return reason if len(reason) <= _MAX_REASON else f"{reason[: _MAX_REASON - 1]}…"
