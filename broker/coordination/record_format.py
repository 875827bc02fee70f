"""The versioned keys and values of internal topics: bytes with a version in front, and their fields as a NamedTuple's.

A format says each field once, with the versions that have it, as Apache Kafka's message definitions do. Read is every
version that Kafka ever wrote, written is one. Tagged fields that are not known are skipped (KIP-915).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeAlias, TypeVar

from msgspec import Struct

from ...protocol.errors import CorruptData
from ...protocol.primitives import (
    FIXED,
    GARBAGE_ERRORS,
    Buffer,
    Reader,
    Writer,
    array_reader,
    array_writer,
    fixed_reader,
    fixed_writer,
    read_tags,
    sized_reader,
    sized_writer,
    uvarint,
)

T = TypeVar("T")

_VERSION: Final = struct.Struct(">h")
LAST: Final = 1 << 15


class Field(Struct, frozen=True, kw_only=True):
    """`type` is one of Kafka's primitives or the fields of a struct, whose NamedTuple `make` builds.

    Versions `since` to `until` have the field; in others it reads as `default`. A field with a `tag` is written when it
    is not `default`.
    """

    type: str | tuple[Field, ...]
    make: Callable[..., object] | None = None
    is_array: bool = False
    is_nullable: bool = False
    since: int = 0
    until: int = LAST
    default: object = None
    tag: int | None = None


def field(kafka_type: str, **options: Any) -> Field:
    return Field(type=kafka_type, **options)


def struct_array(make: Callable[..., object], *fields: Field, **options: Any) -> Field:
    return Field(type=fields, make=make, is_array=True, **options)


_Codec: TypeAlias = tuple[Reader, Writer]


class RecordFormat(Generic[T]):
    """The format of one key or value. `fields` are in the order of those of `make`'s NamedTuple."""

    def __init__(
        self,
        make: Callable[..., T],
        fields: Sequence[Field],
        *,
        versions: range,
        written: int | None = None,
        flexible_since: int = LAST,
    ) -> None:
        """`versions` are read, and `written`, or the last of them, is written; they are flexible from `flexible_since`
        on (KIP-482)."""
        self.version: Final = versions[-1] if written is None else written
        self._versions = versions
        self._codecs = {
            version: _struct_codec(make, fields, version, version >= flexible_since) for version in versions
        }

    def read(self, data: Buffer) -> T:
        """Raises CorruptData."""
        try:
            (version,) = _VERSION.unpack_from(data)
            if version not in self._codecs:
                raise CorruptData(f"version {version} is not one of {self._versions[0]} to {self._versions[-1]}")
            value, end = self._codecs[version][0](data, _VERSION.size)
        except GARBAGE_ERRORS as error:
            raise CorruptData(f"cannot be read: {error}") from None
        if end != len(data):
            raise CorruptData(f"is followed by {len(data) - end} bytes too many")
        return value  # type: ignore[return-value]

    def write(self, value: T) -> bytes:
        out = bytearray(_VERSION.pack(self.version))
        self._codecs[self.version][1](out, value)
        return bytes(out)


def version_of(data: Buffer) -> int:
    """Which kind of key it is: those of one topic differ in their versions. Raises CorruptData."""
    try:
        (version,) = _VERSION.unpack_from(data)
    except GARBAGE_ERRORS as error:
        raise CorruptData(f"cannot be read: {error}") from None
    return int(version)


def _struct_codec(make: Callable[..., object], fields: Sequence[Field], version: int, is_flexible: bool) -> _Codec:
    present = [one.since <= version <= one.until for one in fields]
    codecs = [_field_codec(one, version, is_flexible) for one in fields]
    plain = [number for number, one in enumerate(fields) if present[number] and one.tag is None]
    tagged = {one.tag: number for number, one in enumerate(fields) if present[number] and one.tag is not None}
    defaults = [one.default for one in fields]

    def read(buffer: Buffer, position: int) -> tuple[object, int]:
        values = list(defaults)
        for number in plain:
            values[number], position = codecs[number][0](buffer, position)
        if is_flexible:
            tags, position = read_tags(buffer, position)
            for tag, raw in tags.items():
                if tag in tagged:
                    values[tagged[tag]], _ = codecs[tagged[tag]][0](raw, 0)
        return make(*values), position

    def write(out: bytearray, value: object) -> None:
        assert isinstance(value, tuple)
        for number in plain:
            codecs[number][1](out, value[number])
        if is_flexible:
            said = [(tag, number) for tag, number in tagged.items() if value[number] != defaults[number]]
            out += uvarint(len(said))
            for tag, number in sorted(said):
                raw = bytearray()
                codecs[number][1](raw, value[number])
                out += uvarint(tag) + uvarint(len(raw)) + raw

    return read, write


def _field_codec(one: Field, version: int, is_flexible: bool) -> _Codec:
    is_item_nullable = one.is_nullable and not one.is_array
    if isinstance(one.type, tuple):
        assert one.make is not None, "a struct says what is made of it"
        reader, writer = _struct_codec(one.make, one.type, version, is_flexible)
        if is_item_nullable:
            reader, writer = _nullable(reader, writer)
    elif one.type in FIXED:
        reader, writer = fixed_reader(one.type), fixed_writer(one.type, is_nullable=is_item_nullable)
    else:
        reader = sized_reader(one.type, is_flexible=is_flexible, is_nullable=is_item_nullable)
        writer = sized_writer(one.type, is_flexible=is_flexible, is_nullable=is_item_nullable)
    if one.is_array:
        reader = array_reader(reader, is_flexible=is_flexible, is_nullable=one.is_nullable)
        writer = array_writer(writer, is_flexible=is_flexible, is_nullable=one.is_nullable)
    return reader, writer


def _nullable(reader: Reader, writer: Writer) -> _Codec:
    """A struct behind a byte that says whether there is one."""

    def read(buffer: Buffer, position: int) -> tuple[object, int]:
        return (None, position + 1) if buffer[position] == _ABSENT else reader(buffer, position + 1)

    def write(out: bytearray, value: object) -> None:
        if value is None:
            out.append(_ABSENT)
        else:
            out.append(_PRESENT)
            writer(out, value)

    return read, write


_ABSENT: Final = 0xFF
_PRESENT: Final = 1
