"""Avro: its schemas as types of Spark, and values from the writer's schema to the reader's.

The types are those of Spark's own Avro source (Spark: `SchemaConverters`), which knows a schema only when the query is
planned; here a schema that is registered while the query runs is found by its id.
"""

import io
import json
from dataclasses import dataclass, field
from typing import Any, Final

import fastavro
from fastavro.schema import parse_schema
from pyspark.sql import types as T  # noqa: N812

from .errors import BadRecordError, FormatError
from .registry import Registry, StoredSchema
from .schema_source import SchemaSource
from .wire_format import parse_frame

_PRIMITIVES: Final[dict[str, T.DataType]] = {
    "boolean": T.BooleanType(),
    "int": T.IntegerType(),
    "long": T.LongType(),
    "float": T.FloatType(),
    "double": T.DoubleType(),
    "bytes": T.BinaryType(),
    "string": T.StringType(),
}
_LOGICAL: Final[dict[str, T.DataType]] = {
    "date": T.DateType(),
    "timestamp-millis": T.TimestampType(),
    "timestamp-micros": T.TimestampType(),
    "local-timestamp-millis": T.TimestampNTZType(),
    "local-timestamp-micros": T.TimestampNTZType(),
}
_PROMOTED: Final[dict[frozenset[str], T.DataType]] = {
    frozenset({"int", "long"}): T.LongType(),
    frozenset({"float", "double"}): T.DoubleType(),
}
_MAX_WRITERS: Final = 1_000
"""Parsed schemas by id that one task keeps."""

Schema = Any
"""An Avro schema as JSON: a name, a list (a union) or an object."""


def parse(text: str, where: str) -> Schema:
    """The schema, without logical types that Spark has no type for: their values are numbers, bytes and strings.

    Raises FormatError.
    """
    try:
        schema = _known_logical(json.loads(text))
        parse_schema(schema)
    except fastavro.schema.UnknownType as error:
        raise FormatError(f"{where} names the type {error.name!r} and does not define it") from error
    except (ValueError, KeyError, TypeError, fastavro.schema.SchemaParseException) as error:
        raise FormatError(f"{where} is no Avro schema: {error}") from error
    return schema


def parse_stored(stored: StoredSchema, registry: Registry | None, where: str) -> Schema:
    """With the schemas that it refers to written out where they are named first. Raises FormatError, RegistryError."""
    if stored.schemaType != "AVRO":
        raise FormatError(f"{where} is {stored.schemaType}, not AVRO")
    if not stored.references:
        return parse(stored.schema, where)
    named: dict[str, Schema] = {}
    pending = [stored]
    while pending:
        for reference in pending.pop().references:
            if reference.name not in named and registry is not None:
                found = registry.version(reference.subject, reference.version)
                named[reference.name] = json.loads(found.schema)
                pending.append(found)
    return parse(json.dumps(_written_out(json.loads(stored.schema), named)), where)


def spark_type(schema: Schema) -> T.StructType:
    """Raises FormatError for a schema that is no record, refers to itself, or has a union of several types."""
    try:
        found = _type_of(schema, {}, "", ())
    except (KeyError, AttributeError) as error:
        raise FormatError(f"the reader's Avro schema is not whole: {error} is missing") from error
    if not isinstance(found, T.StructType):
        raise FormatError(f"the reader's Avro schema is {found.simpleString()}, and only a record has columns")
    return found


@dataclass(slots=True)
class AvroDecoder:
    """From bytes to what Arrow makes a struct of. One for each task; it is sent to it without what it has parsed."""

    reader: Schema
    source: SchemaSource | None
    registry: Registry | None
    _parsed_reader: Schema = field(default=None, repr=False)
    _writers: dict[int, Schema] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroDecoder, (self.reader, self.source, self.registry)

    def decode(self, data: bytes) -> dict[str, Any]:
        """Raises BadRecordError, RegistryError."""
        if self._parsed_reader is None:
            self._parsed_reader = parse_schema(self.reader)
        if self.source is None:
            return self._read(data, 0, self._parsed_reader)
        frame = parse_frame(data)
        writer = self._writers.get(frame.schema_id)
        if writer is None:
            writer = self._writer(frame.schema_id, self.source)
        return self._read(data, frame.body_start, writer)

    def _writer(self, schema_id: int, source: SchemaSource) -> Schema:
        stored = source.by_id(schema_id)
        try:
            writer = parse_schema(parse_stored(stored, self.registry, f"schema {schema_id}"))
        except FormatError as error:
            raise BadRecordError(str(error)) from error
        if len(self._writers) >= _MAX_WRITERS:
            self._writers.clear()
        self._writers[schema_id] = writer
        return writer

    def _read(self, data: bytes, start: int, writer: Schema) -> dict[str, Any]:
        stream = io.BytesIO(data)
        stream.seek(start)
        try:
            found: Any = fastavro.schemaless_reader(stream, writer, self._parsed_reader)
        except Exception as error:  # of bytes that are anything, a reader may fail in any way
            raise BadRecordError(f"the value is not Avro of its schema: {_said(error)}") from error
        left = len(data) - stream.tell()
        if left:
            raise BadRecordError(f"{left} bytes follow the value, so it is not Avro of its schema")
        if not isinstance(found, dict):
            raise BadRecordError("the writer's schema is no record")
        return found


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _known_logical(schema: Schema) -> Schema:
    if isinstance(schema, list):
        return [_known_logical(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    logical = schema.get("logicalType")
    kept = {
        name: _known_logical(value) if name in ("type", "items", "values") else value
        for name, value in schema.items()
        if name != "logicalType" or logical in _LOGICAL or logical == "decimal"
    }
    if "fields" in kept:
        kept["fields"] = [_known_logical(one) for one in kept["fields"]]
    return kept


def _written_out(schema: Schema, named: dict[str, Schema]) -> Schema:
    """`named` shrinks: Avro allows one definition of each name, and its uses after it."""
    if isinstance(schema, str):
        return _written_out(named.pop(schema), named) if schema in named else schema
    if isinstance(schema, list):
        return [_written_out(branch, named) for branch in schema]
    whole = dict(schema)
    for name in ("type", "items", "values"):
        if name in whole:
            whole[name] = _written_out(whole[name], named)
    if isinstance(whole.get("fields"), list):
        whole["fields"] = [_written_out(one, named) for one in whole["fields"]]
    return whole


def _type_of(schema: Schema, named: dict[str, Schema], namespace: str, above: tuple[str, ...]) -> T.DataType:
    """All may be null: of a record that cannot be decoded nothing is there. `above` are the records around this one."""
    if isinstance(schema, list):
        return _union_type(schema, named, namespace, above)
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return _PRIMITIVES[schema]
        if schema == "null":
            return T.NullType()
        full = schema if schema in named else f"{namespace}.{schema}"
        if full in above:
            raise FormatError(f"the Avro record {schema} has itself inside, and no type of Spark has")
        return _type_of(named[full], named, namespace, above)
    kind = schema["type"]
    if isinstance(kind, dict | list):
        return _type_of(kind, named, namespace, above)
    name = ""
    if kind in ("record", "error", "enum", "fixed"):
        name, namespace = _full_name(schema, namespace)
        named[name] = schema
    if kind in ("bytes", "fixed") and schema.get("logicalType") == "decimal":
        return T.DecimalType(schema["precision"], schema.get("scale", 0))
    if kind == "enum":
        return T.StringType()
    if kind == "fixed":
        return T.BinaryType()
    if kind in ("record", "error"):
        inside = (*above, name)
        return T.StructType(
            [T.StructField(one["name"], _type_of(one["type"], named, namespace, inside)) for one in schema["fields"]]
        )
    if kind == "array":
        return T.ArrayType(_type_of(schema["items"], named, namespace, above))
    if kind == "map":
        return T.MapType(T.StringType(), _type_of(schema["values"], named, namespace, above))
    logical = _LOGICAL.get(schema.get("logicalType", ""))
    return logical or _type_of(kind, named, namespace, above)


def _union_type(branches: list[Schema], named: dict[str, Schema], namespace: str, above: tuple[str, ...]) -> T.DataType:
    values = [branch for branch in branches if branch != "null"]
    if len(values) == 1:
        return _type_of(values[0], named, namespace, above)
    if all(isinstance(branch, str) for branch in values):
        promoted = _PROMOTED.get(frozenset(values))
        if promoted is not None:
            return promoted
    raise FormatError(f"the Avro union {json.dumps(branches)} has several types, and a column has one")


def _full_name(schema: Schema, namespace: str) -> tuple[str, str]:
    """The name with its namespace, and the namespace of what is inside."""
    name: str = schema["name"]
    if "." in name:
        return name, name.rpartition(".")[0]
    inner: str = schema.get("namespace", namespace)
    return (f"{inner}.{name}" if inner else name), inner
