"""Protobuf: messages as types of Spark, and values as what Arrow makes structs of.

Fields are found by their numbers, so the reader's message reads what any writer wrote, and skips fields that it has
not. A field that is not set is null where Protobuf can tell (messages, `optional`, `oneof`), and its default elsewhere.
64 bits without a sign are a decimal, as in Spark's own Protobuf functions.
"""

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from google.protobuf import (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    message_factory,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)
from google.protobuf.message import DecodeError
from pyspark.sql import types as T  # noqa: N812

from .errors import BadRecordError, FormatError
from .registry import Registry, StoredSchema
from .schema_source import DESCRIPTOR_SET, SchemaSource
from .wire_format import parse_frame, parse_message_indexes

_WELL_KNOWN: Final = (
    any_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
    type_pb2,
    api_pb2,
)
"""What every Protobuf compiler brings, so that no registry has it. Each after what it imports."""
_MAX_WRITERS: Final = 1_000
"""Message names by schema id and indexes that one task keeps."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP: Final = "google.protobuf.Timestamp"

_Field = Any
_Message = Any
"""Protobuf's library brings no types."""
_Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageType:
    """A message by its full name, and all files that it needs, each after what it imports (serialized)."""

    name: str
    files: tuple[bytes, ...]

    def descriptor(self) -> Any:
        """Raises FormatError."""
        try:
            return _pool(self.files).FindMessageTypeByName(self.name)
        except KeyError:
            raise FormatError(f"the Protobuf schema has no message {self.name}") from None


def reader_type(stored: StoredSchema, registry: Registry | None, message: str, where: str) -> MessageType:
    """The message of this name, or the first of the file. Raises FormatError, RegistryError."""
    files = files_of(stored, registry, where)
    names = [f"{package}{one}" for package, one in _messages(files[-1])]
    if not message and not names:
        raise FormatError(f"{where} has no message")
    return MessageType(name=message or names[0], files=files)


def files_of(stored: StoredSchema, registry: Registry | None, where: str) -> tuple[bytes, ...]:
    """The last is the schema itself. Raises FormatError, RegistryError."""
    try:
        if stored.schemaType == DESCRIPTOR_SET:
            whole = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(stored.schema, validate=True))
            files = [one.SerializeToString() for one in whole.file]
        elif stored.schemaType == "PROTOBUF":
            files = _with_references(stored, registry, "", set())
        else:
            raise FormatError(f"{where} is {stored.schemaType}, not PROTOBUF")
        if not files:
            raise FormatError(f"{where} is an empty descriptor set")
        _pool(tuple(files))
    except (DecodeError, ValueError, TypeError) as error:
        raise FormatError(f"{where} is no serialized Protobuf descriptor: {error}") from error
    return tuple(files)


def spark_type(message: MessageType) -> T.StructType:
    """Raises FormatError for a message that is not there, or has itself inside."""
    return _struct_type(message.descriptor(), ())


@dataclass(slots=True)
class ProtobufDecoder:
    """From bytes to what Arrow makes a struct of. One for each task; it is sent to it without what it has made."""

    reader: MessageType
    source: SchemaSource | None
    registry: Registry | None
    _class: Any = field(default=None, repr=False)
    _convert: _Convert | None = field(default=None, repr=False)
    _writers: dict[tuple[int, tuple[int, ...]], str] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return ProtobufDecoder, (self.reader, self.source, self.registry)

    def decode(self, data: bytes) -> dict[str, Any]:
        """Raises BadRecordError, RegistryError."""
        if self._convert is None:
            descriptor = self.reader.descriptor()
            self._class = message_factory.GetMessageClass(descriptor)
            self._convert = _message_converter(descriptor)
        if self.source is not None:
            frame = parse_frame(data)
            indexes, start = parse_message_indexes(data, frame.body_start)
            self._check_writer(frame.schema_id, indexes, self.source)
            data = data[start:]
        try:
            message = self._class.FromString(data)
        except DecodeError as error:
            raise BadRecordError(f"the value is not Protobuf: {error}") from error
        found: dict[str, Any] = self._convert(message)
        return found

    def _check_writer(self, schema_id: int, indexes: tuple[int, ...], source: SchemaSource) -> None:
        name = self._writers.get((schema_id, indexes))
        if name is None:
            try:
                files = files_of(source.by_id(schema_id), self.registry, f"schema {schema_id}")
                name = message_name(files[-1], indexes)
            except FormatError as error:
                raise BadRecordError(str(error)) from error
            if len(self._writers) >= _MAX_WRITERS:
                self._writers.clear()
            self._writers[schema_id, indexes] = name
        if name != self.reader.name:
            raise BadRecordError(f"the value is a {name} (schema {schema_id}), and a {self.reader.name} is expected")


def message_name(file: bytes, indexes: tuple[int, ...]) -> str:
    """The full name of the message that the indexes lead to. Raises BadRecordError."""
    descriptor = descriptor_pb2.FileDescriptorProto.FromString(file)
    names = [descriptor.package] if descriptor.package else []
    messages = descriptor.message_type
    for index in indexes:
        if not 0 <= index < len(messages):
            raise BadRecordError(f"message indexes {list(indexes)} lead to no message of {descriptor.name}")
        names.append(messages[index].name)
        messages = messages[index].nested_type
    return ".".join(names)


def _messages(file: bytes) -> Iterable[tuple[str, str]]:
    descriptor = descriptor_pb2.FileDescriptorProto.FromString(file)
    package = f"{descriptor.package}." if descriptor.package else ""
    return [(package, message.name) for message in descriptor.message_type]


def _with_references(stored: StoredSchema, registry: Registry | None, name: str, seen: set[str]) -> list[bytes]:
    """Depth first, so that each file comes after what it imports."""
    files: list[bytes] = []
    for reference in stored.references:
        if reference.name not in seen and registry is not None:
            seen.add(reference.name)
            found = registry.version(reference.subject, reference.version)
            files += _with_references(found, registry, reference.name, seen)
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(stored.schema, validate=True))
    # Registries keep no names of files; what imports one knows it by that of the reference.
    file.name = name or file.name or "schema.proto"
    return [*files, file.SerializeToString()]


def _pool(files: tuple[bytes, ...]) -> Any:
    pool = descriptor_pool.DescriptorPool()
    parsed = [descriptor_pb2.FileDescriptorProto.FromString(one) for one in files]
    own = {one.name for one in parsed}
    for module in _WELL_KNOWN:
        if module.DESCRIPTOR.name not in own:
            pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    for one in parsed:
        pool.Add(one)
    return pool


def _struct_type(descriptor: Any, above: tuple[str, ...]) -> T.StructType:
    if descriptor.full_name in above:
        raise FormatError(f"the Protobuf message {descriptor.full_name} has itself inside, and no type of Spark has")
    inside = (*above, descriptor.full_name)
    return T.StructType([T.StructField(one.name, _field_type(one, inside)) for one in descriptor.fields])


def _field_type(one: _Field, above: tuple[str, ...]) -> T.DataType:
    if _is_map(one):
        key, value = one.message_type.fields_by_name["key"], one.message_type.fields_by_name["value"]
        return T.MapType(_single_type(key, above), _single_type(value, above))
    single = _single_type(one, above)
    return T.ArrayType(single) if one.is_repeated else single


def _single_type(one: _Field, above: tuple[str, ...]) -> T.DataType:
    if one.message_type is not None:
        if one.message_type.full_name == _TIMESTAMP:
            return T.TimestampType()
        return _struct_type(one.message_type, above)
    return _SCALARS[one.type]


def _message_converter(descriptor: Any) -> _Convert:
    converters: list[tuple[str, bool, _Convert | None]] = [
        (one.name, one.has_presence and not one.is_repeated, _field_converter(one)) for one in descriptor.fields
    ]

    def convert(message: _Message) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, has_presence, one in converters:
            if has_presence and not message.HasField(name):
                found[name] = None
            else:
                value = getattr(message, name)
                found[name] = value if one is None else one(value)
        return found

    return convert


def _field_converter(one: _Field) -> _Convert | None:
    """None: the value is fine as it is."""
    if _is_map(one):
        of_value = _single_converter(one.message_type.fields_by_name["value"])
        if of_value is None:
            return lambda values: list(values.items())
        return lambda values: [(key, of_value(value)) for key, value in values.items()]
    single = _single_converter(one)
    if not one.is_repeated:
        return single
    if single is None:
        return list
    return lambda values: [single(value) for value in values]


def _single_converter(one: _Field) -> _Convert | None:
    if one.message_type is not None:
        return _timestamp if one.message_type.full_name == _TIMESTAMP else _message_converter(one.message_type)
    if one.enum_type is not None:
        names = {value.number: value.name for value in one.enum_type.values}
        # Open enums carry numbers that the reader's schema has no name for.
        return lambda number: names.get(number, str(number))
    return Decimal if one.type in (one.TYPE_UINT64, one.TYPE_FIXED64) else None


def _timestamp(value: _Message) -> datetime:
    """Microseconds, which is what Spark has. Raises BadRecordError beyond year 9999."""
    try:
        return _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1_000)
    except OverflowError:
        raise BadRecordError(f"{value.seconds} s after 1970 is no timestamp that Spark has") from None


def _is_map(one: _Field) -> bool:
    return one.message_type is not None and bool(one.message_type.GetOptions().map_entry)


_P = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final[dict[int, T.DataType]] = {
    _P.TYPE_INT32: T.IntegerType(),
    _P.TYPE_SINT32: T.IntegerType(),
    _P.TYPE_SFIXED32: T.IntegerType(),
    _P.TYPE_UINT32: T.LongType(),
    _P.TYPE_FIXED32: T.LongType(),
    _P.TYPE_INT64: T.LongType(),
    _P.TYPE_SINT64: T.LongType(),
    _P.TYPE_SFIXED64: T.LongType(),
    _P.TYPE_UINT64: T.DecimalType(20, 0),
    _P.TYPE_FIXED64: T.DecimalType(20, 0),
    _P.TYPE_FLOAT: T.FloatType(),
    _P.TYPE_DOUBLE: T.DoubleType(),
    _P.TYPE_BOOL: T.BooleanType(),
    _P.TYPE_STRING: T.StringType(),
    _P.TYPE_BYTES: T.BinaryType(),
    _P.TYPE_ENUM: T.StringType(),
}
