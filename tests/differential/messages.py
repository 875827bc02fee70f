"""Messages as plain values, every field as on the wire: requests made from dictionaries, answers read into them.

Nothing is converted, defaulted or refused here, on purpose: a script can say what no client would (a null where none
may be, a negative time) and sees all that is answered. Only the fields' order and types are taken from kio's classes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from kio.static.protocol import Entity

from penstock.protocol.schemas import FieldSchema, fields_of

Values = Mapping[str, Any]

_FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "error_code": "h",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
}
_TEXT = {"string"}
_ZERO_ID = UUID(int=0)


def encode(entity: type[Entity], values: Values) -> bytes:
    """The body in the form of `entity`'s version: what it lacks is left out, what is not said is Kafka's default.

    A name that no version has is the caller's to find: see `unknown_names`.
    """
    out = bytearray()
    _write_entity(out, entity, values)
    return bytes(out)


def decode(entity: type[Entity], data: bytes, position: int = 0) -> dict[str, Any]:
    """The body from `position` to the end of `data`; ValueError when it is not exactly one."""
    try:
        values, end = _read_entity(entity, data, position)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"{entity.__name__} v{entity.__version__}: {error}") from error
    if end != len(data):
        raise ValueError(f"{entity.__name__} v{entity.__version__} is followed by {len(data) - end} bytes")
    return values


def skip_tags(data: bytes, position: int) -> int:
    """The position behind tagged fields that are not read."""
    count, position = _read_uvarint(data, position)
    for _ in range(count):
        _, position = _read_uvarint(data, position)
        size, position = _read_uvarint(data, position)
        position += size
    return position


def _write_entity(out: bytearray, entity: type[Entity], values: Values) -> None:
    tagged: list[tuple[int, bytes]] = []
    for field in fields_of(entity):
        if field.tag is None:
            _write_field(out, field, _value(field, values), is_flexible=entity.__flexible__)
        elif field.name in values:
            part = bytearray()
            _write_field(part, field, values[field.name], is_flexible=entity.__flexible__)
            tagged.append((field.tag, bytes(part)))
    if entity.__flexible__:
        out += _uvarint(len(tagged))
        for tag, data in sorted(tagged):
            out += _uvarint(tag) + _uvarint(len(data)) + data


def _value(field: FieldSchema, values: Values) -> Any:
    if field.name in values:
        return values[field.name]
    if field.entity is not None and not field.is_array:
        return None if field.is_nullable else {}
    neutral = field.neutral
    if field.kafka_type in ("timedelta_i32", "timedelta_i64"):
        return round(neutral.total_seconds() * 1000)  # type: ignore[attr-defined]
    return -1 if field.kafka_type == "datetime_i64" else neutral


def _write_field(out: bytearray, field: FieldSchema, value: Any, *, is_flexible: bool) -> None:
    if not field.is_array:
        _write_item(out, field, value, is_flexible=is_flexible, is_nullable=field.is_nullable)
        return
    if is_flexible:
        out += _uvarint(0 if value is None else len(value) + 1)
    else:
        out += struct.pack(">i", -1 if value is None else len(value))
    for item in value or ():
        _write_item(out, field, item, is_flexible=is_flexible, is_nullable=False)


def _write_item(out: bytearray, field: FieldSchema, value: Any, *, is_flexible: bool, is_nullable: bool) -> None:
    kind = field.kafka_type
    if field.entity is not None:
        if is_nullable:
            out += b"\xff" if value is None else b"\x01"
        if value is not None:
            _write_entity(out, field.entity, value)
    elif kind == "uuid":
        out += (value or _ZERO_ID).bytes
    elif kind in _FIXED:
        out += struct.pack(">" + _FIXED[kind], value)
    else:
        data = None if value is None else value.encode() if isinstance(value, str) else bytes(value)
        if is_flexible:
            out += _uvarint(0 if data is None else len(data) + 1)
        else:
            out += struct.pack(">h" if kind in _TEXT else ">i", -1 if data is None else len(data))
        out += data or b""


def _read_entity(entity: type[Entity], data: bytes, position: int) -> tuple[dict[str, Any], int]:
    values: dict[str, Any] = {}
    tagged: dict[int, FieldSchema] = {}
    for field in fields_of(entity):
        if field.tag is None:
            values[field.name], position = _read_field(field, data, position, is_flexible=entity.__flexible__)
        else:
            tagged[field.tag] = field
    if not entity.__flexible__:
        return values, position
    count, position = _read_uvarint(data, position)
    for _ in range(count):
        tag, position = _read_uvarint(data, position)
        size, position = _read_uvarint(data, position)
        if tag in tagged:
            values[tagged[tag].name], end = _read_field(tagged[tag], data, position, is_flexible=True)
            if end != position + size:
                raise ValueError(
                    f"tag {tag} of {entity.__name__} has {size} bytes, of which {end - position} were read"
                )
        else:
            values[f"tag {tag}"] = data[position : position + size].hex()
        position += size
    return values, position


def _read_field(field: FieldSchema, data: bytes, position: int, *, is_flexible: bool) -> tuple[Any, int]:
    if not field.is_array:
        return _read_item(field, data, position, is_flexible=is_flexible, is_nullable=field.is_nullable)
    if is_flexible:
        count, position = _read_uvarint(data, position)
        count -= 1
    else:
        (count,) = struct.unpack_from(">i", data, position)
        position += 4
    if count < 0:
        return None, position
    items = []
    for _ in range(count):
        item, position = _read_item(field, data, position, is_flexible=is_flexible, is_nullable=False)
        items.append(item)
    return items, position


def _read_item(
    field: FieldSchema, data: bytes, position: int, *, is_flexible: bool, is_nullable: bool
) -> tuple[Any, int]:
    kind = field.kafka_type
    if field.entity is not None:
        if is_nullable:
            is_null = data[position] == 0xFF
            position += 1
            if is_null:
                return None, position
        return _read_entity(field.entity, data, position)
    if kind == "uuid":
        return UUID(bytes=data[position : position + 16]), position + 16
    if kind in _FIXED:
        layout = struct.Struct(">" + _FIXED[kind])
        return layout.unpack_from(data, position)[0], position + layout.size
    if is_flexible:
        size, position = _read_uvarint(data, position)
        size -= 1
    else:
        layout = struct.Struct(">h" if kind in _TEXT else ">i")
        (size,) = layout.unpack_from(data, position)
        position += layout.size
    if size < 0:
        return None, position
    value = data[position : position + size]
    if len(value) < size:
        raise IndexError(f"{field.name} is cut off")
    return (value.decode() if kind in _TEXT else value), position + size


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_uvarint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def unknown_names(api_classes: Sequence[type[Entity]], values: Values) -> set[str]:
    """The names in `values` that no class of these versions has, nested ones too: errors of the script."""
    known: dict[str, list[type[Entity]]] = {}
    for entity in api_classes:
        for field in fields_of(entity):
            known.setdefault(field.name, []).extend([] if field.entity is None else [field.entity])
    wrong = values.keys() - known.keys()
    for name in values.keys() & known.keys():
        nested = values[name] if isinstance(values[name], (list, tuple)) else [values[name]]
        for one in nested:
            if isinstance(one, Mapping):
                wrong |= unknown_names(known[name], one)
    return wrong
