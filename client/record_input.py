"""Records as people and programs write them: lines of text, or lines of JSON as `consume --json` prints them."""

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Final, Protocol

from msgspec import Struct

from .positions import timestamp_ms_of

Headers = tuple[tuple[str, bytes | None], ...]

_FIELDS: Final = frozenset({"key", "key_base64", "value", "value_base64", "headers", "partition", "timestamp"})
# What `consume --json` says about a record and a broker decides anew.
_IGNORED: Final = frozenset({"topic", "offset", "timestamp_type"})


class RecordToSend(Struct, frozen=True, kw_only=True):
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    # None: for the partitioner, the clock, to decide.
    partition: int | None = None
    timestamp_ms: int | None = None


class InputError(ValueError):
    """A line that is no record; the message does not know the line's number."""


class LineFormat(Protocol):
    def parse(self, line: bytes) -> RecordToSend:
        """Reads one line, without its end. Raises InputError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLines(LineFormat):
    """A line is a value, or a key and a value with the separator's first occurrence between them."""

    key_separator: bytes | None = None
    # What stands for no key and no value; without it, every text is one.
    null: bytes | None = None

    def parse(self, line: bytes) -> RecordToSend:
        if self.key_separator is None:
            return RecordToSend(value=self._bytes(line))
        key, separator, value = line.partition(self.key_separator)
        if not separator:
            raise InputError(f"there is no key separator {self.key_separator.decode(errors='replace')!r} in it")
        return RecordToSend(key=self._bytes(key), value=self._bytes(value))

    def _bytes(self, text: bytes) -> bytes | None:
        return None if text == self.null else text


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonLines(LineFormat):
    """A line is an object: `key`, `value`, `headers`, `partition` and `timestamp`, all optional.

    Keys and values are text, null, or any JSON, which is sent as such; `key_base64` and `value_base64` hold bytes.
    """

    def parse(self, line: bytes) -> RecordToSend:
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise InputError(f"it is not JSON: {error}") from error
        if not isinstance(fields, dict):
            raise InputError("it is not a JSON object")
        unknown = sorted(fields.keys() - _FIELDS - _IGNORED)
        if unknown:
            raise InputError(f"a record has no {unknown[0]!r}; it has {', '.join(sorted(_FIELDS))}")
        partition = fields.get("partition")
        if partition is not None and (not isinstance(partition, int) or isinstance(partition, bool) or partition < 0):
            raise InputError(f"partition {partition!r} is not a number from 0")
        return RecordToSend(
            key=_bytes_of(fields, "key"),
            value=_bytes_of(fields, "value"),
            headers=_headers_of(fields.get("headers") or ()),
            partition=partition,
            timestamp_ms=_timestamp_of(fields.get("timestamp")),
        )


def parse_header(text: str) -> tuple[str, bytes]:
    """Reads `name=value`. Raises InputError."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"{text!r} is not of the form name=value")
    return name, value.encode()


def _bytes_of(fields: dict[str, object], name: str) -> bytes | None:
    encoded = fields.get(f"{name}_base64")
    if encoded is not None:
        if fields.get(name) is not None:
            raise InputError(f"{name} and {name}_base64 are both there")
        try:
            return base64.b64decode(str(encoded), validate=True)
        except (binascii.Error, ValueError) as error:
            raise InputError(f"{name}_base64 is not base64: {error}") from error
    match fields.get(name):
        case None:
            return None
        case str() as text:
            return text.encode()
        case value:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _headers_of(value: object) -> Headers:
    match value:
        case dict():
            return tuple((str(name), _bytes_of(value, name)) for name in value)
        case list() | tuple():
            return tuple(_header_of(header) for header in value)
        case _:
            raise InputError(f"headers are an object, or a list of objects with key and value, not {value!r}")


def _header_of(header: object) -> tuple[str, bytes | None]:
    if not isinstance(header, dict) or not isinstance(header.get("key"), str):
        raise InputError(f"a header is an object with key and value, not {header!r}")
    return header["key"], _bytes_of(header, "value")


def _timestamp_of(value: object) -> int | None:
    match value:
        case None:
            return None
        case bool():
            pass
        case int() if value >= 0:
            return value
        case str():
            try:
                return timestamp_ms_of(value)
            except ValueError:
                pass
    raise InputError(f"timestamp {value!r} is neither milliseconds since 1970 nor ISO 8601")
