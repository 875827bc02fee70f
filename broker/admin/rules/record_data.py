"""Keys and values of records as JSON, and back."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from typing import Final

import msgspec

from ....protocol.rest.records import RecordData

_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class UnusableDataError(Exception):
    """Data that is not of its type."""


def encoded(of: RecordData | None) -> bytes | None:
    """What is written for a key or value. Raises UnusableDataError."""
    if of is None or of.data is None:
        return None
    if of.type == "JSON":
        return msgspec.json.encode(of.data)
    if not isinstance(of.data, str):
        raise UnusableDataError(f"data of type {of.type} is a string, but this is {type(of.data).__name__}")
    return of.data.encode() if of.type == "STRING" else decoded_base64(of.data)


def decoded_base64(text: str) -> bytes:
    """Raises UnusableDataError."""
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UnusableDataError(f"what is BINARY is base64, but this is not: {error}") from None


def shown(data: bytes | None) -> RecordData | None:
    """What is read of a key, a value or the value of a header."""
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _binary(data)
    if _CONTROL.search(text):
        return _binary(data)
    if text.lstrip()[:1] in ("{", "["):
        try:
            msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError):
            return RecordData(type="STRING", data=text)
        # As it was written: a number may have more digits than a float.
        return RecordData(type="JSON", data=msgspec.Raw(data))
    return RecordData(type="STRING", data=text)


def _binary(data: bytes) -> RecordData:
    return RecordData(type="BINARY", data=b64encode(data).decode())
