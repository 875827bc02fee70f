"""Records as text for people, and as lines of JSON for programs."""

import base64
import json
import string
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from msgspec import Struct

from .record_input import Headers
from .units import format_timestamp


class ReceivedRecord(Struct, frozen=True, kw_only=True):
    topic: str
    partition: int
    offset: int
    # None when the record's format has none.
    timestamp_ms: int | None
    # Kafka's message.timestamp.type.
    timestamp_type: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class RecordFormat(Protocol):
    def format(self, record: ReceivedRecord) -> bytes:
        """One record with what ends it."""


class FormatError(ValueError):
    """A template that cannot be read; the message says where."""


class JsonFormat(RecordFormat):
    """One object on a line. Bytes that are not UTF-8 are in `key_base64`, `value_base64`."""

    def format(self, record: ReceivedRecord) -> bytes:
        fields: dict[str, object] = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp_ms,
            "timestamp_type": record.timestamp_type,
            **_json_bytes("key", record.key),
            **_json_bytes("value", record.value),
            "headers": [{"key": name, **_json_bytes("value", value)} for name, value in record.headers],
        }
        return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


ENCODINGS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "raw": bytes,
    "hex": lambda data: data.hex().encode(),
    "base64": base64.b64encode,
}


class TemplateFormat(RecordFormat):
    """A text with fields in braces, `{offset} {key}`; each record ends its line."""

    FIELDS: Final = ("topic", "partition", "offset", "timestamp", "time", "key", "value", "headers")

    def __init__(self, template: str, *, encoding: str = "raw", null: bytes = b"null") -> None:
        """`encoding` is for keys, values and header values; `null` stands for a missing one. Raises FormatError."""
        self._parts = tuple(_parts_of(template))
        self._encode = ENCODINGS[encoding]
        self._null = null

    def format(self, record: ReceivedRecord) -> bytes:
        rendered = [part if isinstance(part, bytes) else self._render(part, record) for part in self._parts]
        return b"".join(rendered) + b"\n"

    def _render(self, field: str, record: ReceivedRecord) -> bytes:
        match field:
            case "key":
                return self._bytes(record.key)
            case "value":
                return self._bytes(record.value)
            case "headers":
                return b",".join(name.encode() + b"=" + self._bytes(value) for name, value in record.headers)
            case "time":
                return b"-" if record.timestamp_ms is None else format_timestamp(record.timestamp_ms).encode()
            case "timestamp":
                return b"-" if record.timestamp_ms is None else str(record.timestamp_ms).encode()
            case _:
                return str(getattr(record, field)).encode()

    def _bytes(self, data: bytes | None) -> bytes:
        return self._null if data is None else self._encode(data)


def template_of_fields(fields: tuple[str, ...]) -> str:
    """The template that shows these fields with tabs between them. Raises FormatError for one that does not exist."""
    for field in fields:
        _check_field(field)
    return r"\t".join(f"{{{field}}}" for field in fields)


def _parts_of(template: str) -> list[bytes | str]:
    """Literal text as bytes, fields as names."""
    parts: list[bytes | str] = []
    try:
        for literal, field, specification, conversion in string.Formatter().parse(template):
            if literal:
                parts.append(_unescape(literal).encode())
            if field is not None:
                if conversion or specification:
                    raise FormatError(f"field {field!r} takes neither `!` nor `:`")
                _check_field(field)
                parts.append(field)
    except FormatError:
        raise
    except ValueError as error:
        raise FormatError(f"the format {template!r} cannot be read: {error}") from error
    return parts


def _check_field(field: str) -> None:
    if field not in TemplateFormat.FIELDS:
        raise FormatError(f"there is no field {field!r}; fields are {', '.join(TemplateFormat.FIELDS)}")


def _unescape(text: str) -> str:
    for escape, character in ((r"\t", "\t"), (r"\n", "\n"), (r"\0", "\0")):
        text = text.replace(escape, character)
    return text


def _json_bytes(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}
