"""JSON objects one after the other, as a stream brings them: where each begins and ends."""

from __future__ import annotations

import re
from typing import Final

OBJECT_BYTES_MAX: Final = 4 * 1024 * 1024
"""A record in base64 is a third larger than itself; brokers take 1 MiB by default."""
_OUTSIDE: Final = re.compile(rb'["{}\[\]]')
_INSIDE: Final = re.compile(rb'["\\]')
_SPACE: Final = b" \t\r\n"


class NoJsonObjectError(Exception):
    """What comes is no object, or one that is too large; behind it no other can be found."""


class JsonObjects:
    """Finds the objects in chunks of bytes. Each byte is looked at once, however an object is cut up."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        # Up to where the object in the buffer has been looked at; 0 between two objects.
        self._looked = 0
        self._depth = 0
        self._is_in_string = False

    @property
    def is_between(self) -> bool:
        """Whether all that came was whole objects."""
        return not self._buffer.strip(_SPACE)

    def feed(self, chunk: bytes) -> None:
        self._buffer += chunk

    def next_object(self) -> bytes | None:
        """The next whole object; None until more comes. Its inside is not looked at. Raises NoJsonObjectError."""
        if not self._looked:
            start = len(self._buffer) - len(self._buffer.lstrip(_SPACE))
            del self._buffer[:start]
            if not self._buffer:
                return None
            if not self._buffer.startswith(b"{"):
                start_text = self._buffer[:20].decode(errors="replace")
                raise NoJsonObjectError(f"A record is a JSON object, but this begins with {start_text!r}.")
        end = self._end()
        if end is None:
            if len(self._buffer) > OBJECT_BYTES_MAX:
                raise NoJsonObjectError(f"a record takes at most {OBJECT_BYTES_MAX} bytes in JSON")
            return None
        found = bytes(self._buffer[:end])
        del self._buffer[:end]
        self._looked = 0
        return found

    def _end(self) -> int | None:
        position = self._looked
        buffer = self._buffer
        while True:
            found = (_INSIDE if self._is_in_string else _OUTSIDE).search(buffer, position)
            if found is None:
                self._looked = len(buffer)
                return None
            position = found.end()
            mark = found[0]
            if mark == b"\\":
                if position == len(buffer):
                    # What it escapes has not come yet.
                    self._looked = found.start()
                    return None
                position += 1
            elif mark == b'"':
                self._is_in_string = not self._is_in_string
            elif mark in b"{[":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth == 0:
                    return position
