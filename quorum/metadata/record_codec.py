"""Metadata records to bytes and back: CBOR, as `records.py` describes.

One log entry is `[format, timestamp_ms, [record, …]]`: its records take effect together, and its timestamp is its
proposer's, so that every voter serves identical bytes. A chunk of a snapshot has the
same form, with the timestamp of the image's last entry.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, NamedTuple, NewType, get_args, get_origin, get_type_hints
from uuid import UUID

import cbor2
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from ...protocol.errors import CorruptData
from ..raft.cbor_errors import CBOR_ERRORS
from .records import Endpoint, MetadataRecord, SupportedFeature
from .security_records import ClientQuotaEntity

_ENTRY_FORMAT = 1

# An array of three items, the first of them the format.
_HEAD = bytes((0x83, _ENTRY_FORMAT))

# Fields that hold other values with fields of their own.
_NESTED: Mapping[str, type[Struct]] = {
    "endpoints": Endpoint,
    "features": SupportedFeature,
    "entity": ClientQuotaEntity,
}

# Of fields without a conversion.
_PLAIN = frozenset({int, str, bool, bytes, float, NoneType})

# As many ids as a broker has topics in use together; the records of one topic share one object.
_KNOWN_IDS = 4096
# Partitions that lie on the same brokers, in the same order, share their lists.
_KNOWN_LISTS = 4096


class UnknownRecord(Exception):  # noqa: N818 - it names what was found
    """A record type or version that this software does not know: it is older than the log, and must not go on."""


class Entry(NamedTuple):
    """What one log entry says."""

    timestamp_ms: int
    records: tuple[MetadataRecord, ...]


class _Field(NamedTuple):
    """A field, and how its value differs from its CBOR form, when that is not None."""

    number: int
    name: str
    default: object
    encode: Callable[[Any], object] | None
    decode: Callable[[Any], object] | None


class _Layout:
    """How a struct is written: its fields by number."""

    def __init__(self, cls: type[Struct]) -> None:
        self.cls: Any = cls
        hints = get_type_hints(cls)
        self.fields = [
            _Field(number, field.name, field.default, *_conversion(field.name, hints[field.name]))
            for number, field in enumerate(fields(cls))
            if field.name != "unknown_fields"
        ]
        # There are as many calls as fields in the metadata of a large cluster: each of them has what it needs at hand.
        self.by_number = {field.number: (field.name, field.decode) for field in self.fields}

    def encode(self, value: object) -> dict[int, object]:
        encoded: dict[int, object] = {}
        for number, name, default, convert, _ in self.fields:
            content = getattr(value, name)
            if default is not NODEFAULT and content == default:
                continue
            encoded[number] = content if convert is None or content is None else convert(content)
        unknown: Mapping[int, object] = getattr(value, "unknown_fields")  # noqa: B009 - every struct here has it
        if unknown:
            encoded.update(unknown)
        return encoded

    def decode(self, encoded: Mapping[int, Any]) -> Any:
        values: dict[str, object] = {}
        unknown: dict[int, object] = {}
        find = self.by_number.get
        for number, content in encoded.items():
            field = find(number)
            if field is None:
                unknown[number] = content
                continue
            name, convert = field
            if convert is not None:
                values[name] = None if content is None else convert(content)
            elif content.__class__ in _PLAIN:
                values[name] = content
            else:
                # By its references CBOR can hold what holds itself, which could not be written again.
                raise TypeError(f"{name} is of the type {type(content).__name__}")
        if unknown:
            # What a later version wrote is kept, and is to be written again.
            cbor2.dumps(unknown)
            return self.cls(**values, unknown_fields=unknown)
        return self.cls(**values)


_Conversion = tuple[Callable[[Any], object] | None, Callable[[Any], object] | None]


def _conversion(name: str, hint: Any) -> _Conversion:
    nested_class = _NESTED.get(name)
    if nested_class is not None:
        nested = _Layout(nested_class)
        return (
            lambda items: [nested.encode(item) for item in items],
            lambda items: tuple([nested.decode(item) for item in items]),
        )
    choices = [choice for choice in get_args(hint) if choice is not NoneType] if isinstance(hint, UnionType) else [hint]
    (content,) = [_plain(choice) for choice in choices]
    if content is UUID:
        return attrgetter("bytes"), _id
    if get_origin(content) is not tuple:
        return None, None
    if _plain(get_args(content)[0]) is UUID:
        return lambda items: [item.bytes for item in items], _ids
    return None, _list


def _plain(hint: Any) -> Any:
    """Return what a value of this type is when the code runs: an id has a type for the checker alone."""
    return hint.__supertype__ if isinstance(hint, NewType) else hint


def _list(items: Iterable[object]) -> tuple[object, ...]:
    return _shared(tuple(items))


def _ids(items: Iterable[bytes]) -> tuple[UUID, ...]:
    return _shared_ids(tuple(items))


@lru_cache(_KNOWN_LISTS)
def _shared(items: tuple[object, ...]) -> tuple[object, ...]:
    return items


@lru_cache(_KNOWN_LISTS)
def _shared_ids(items: tuple[bytes, ...]) -> tuple[UUID, ...]:
    return tuple([_id(item) for item in items])


@lru_cache(_KNOWN_IDS)
def _id(content: bytes) -> UUID:
    # UUID itself only asserts it.
    if not isinstance(content, bytes):
        raise TypeError(f"an id is 16 bytes, not {content!r:.100}")
    return UUID(bytes=content)


_LAYOUTS: Mapping[int, _Layout] = {cls.TYPE: _Layout(cls) for cls in get_args(MetadataRecord)}


def encode_record(record: MetadataRecord) -> bytes:
    """Return one record, a CBOR item."""
    return cbor2.dumps([record.TYPE, record.VERSION, _LAYOUTS[record.TYPE].encode(record)])


def decode_record(item: object) -> MetadataRecord:
    """Return the record of a decoded CBOR item. Raises UnknownRecord, or CorruptData when it is not a record at all."""
    match item:
        case [int() as type_number, int() as version, dict() as encoded]:
            pass
        case _:
            raise CorruptData(f"expected a metadata record as [type, version, fields], found {item!r:.100}")
    layout = _LAYOUTS.get(type_number)
    if layout is None:
        raise UnknownRecord(
            f"the metadata log has a record of type {type_number}, which this version of penstock does not know; "
            "start the version that wrote it, or a later one"
        )
    if version > layout.cls.VERSION:
        raise UnknownRecord(
            f"the metadata log has a {layout.cls.__name__} of version {version}, this version of penstock knows up to "
            f"{layout.cls.VERSION}; start the version that wrote it, or a later one"
        )
    try:
        record: MetadataRecord = layout.decode(encoded)
    except (*CBOR_ERRORS, cbor2.CBOREncodeError, AttributeError) as error:
        raise CorruptData(f"a {layout.cls.__name__} cannot be read: {error}") from error
    return record


def encode_entry(timestamp_ms: int, encoded_records: Sequence[bytes]) -> bytes:
    """Return a log entry of records that are encoded already."""
    head = _HEAD + cbor2.dumps(timestamp_ms)
    return b"".join((head, _array_head(len(encoded_records)), *encoded_records))


def decode_entry(command: bytes) -> Entry:
    """Return what a log entry says. Raises CorruptData, UnknownRecord."""
    match _loads(command):
        case [int() as entry_format, int() as timestamp_ms, list() as items]:
            pass
        case _:
            raise CorruptData("expected a metadata log entry as [format, timestamp, records]")
    if entry_format != _ENTRY_FORMAT:
        raise UnknownRecord(f"the metadata log has an entry of format {entry_format}, known is {_ENTRY_FORMAT}")
    return Entry(timestamp_ms, tuple([decode_record(item) for item in items]))


def entry_timestamp_ms(command: bytes) -> int:
    """Return the timestamp of a log entry without reading its records. Raises CorruptData."""
    if command[:2] == _HEAD:
        first = command[2] if len(command) > 2 else 0xFF
        # A number of CBOR (RFC 8949 §3): itself below 24, else in the next 1, 2, 4 or 8 bytes.
        size = 0 if first < 24 else 1 << (first - 24)
        if first < 28 and len(command) >= 3 + size:
            return first if first < 24 else int.from_bytes(command[3 : 3 + size], "big")
    raise CorruptData(f"expected a metadata log entry as [format, timestamp, records], found {command[:20].hex()}…")


def _array_head(count: int) -> bytes:
    """Return the head of a CBOR array (RFC 8949 §3), written by hand because the items are encoded already."""
    if count < 24:
        return bytes((0x80 | count,))
    if count < 256:
        return bytes((0x98, count))
    if count < 65536:
        return b"\x99" + count.to_bytes(2, "big")
    return b"\x9a" + count.to_bytes(4, "big")


def _loads(data: bytes) -> object:
    try:
        return cbor2.loads(data)
    except CBOR_ERRORS as error:
        raise CorruptData(f"expected CBOR, found {data[:20].hex()}…: {error}") from error
