"""The syntax of java.util.Properties, in which nodes and clients of Kafka are configured."""

import re
from collections.abc import Iterator
from typing import Final

from .errors import ConfigError

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[\s\S]|$)")
_KEY = re.compile(r"(?:[^\\=: \t\f]|\\[\s\S])*")
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_BLANKS: Final = " \t\f"


def properties_of(text: str) -> dict[str, str]:
    """Reads the syntax of java.util.Properties: comments, continued lines, escapes; `=`, `:` or a blank after the key.

    The last of two equal keys wins, as in Java. Raises ConfigError for an escape that names no character.
    """
    properties = {}
    for number, line in _logical_lines(text):
        key_end = _match_end(_KEY, line, 0)
        value_start = _match_end(_SEPARATOR, line, key_end)
        properties[_unescape(line[:key_end], number)] = _unescape(line[value_start:], number)
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with continuations joined, without comments and blank lines; each with the number of its first line."""
    start, joined = 0, ""
    for number, natural in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = natural.lstrip(_BLANKS)
        if not joined:
            start = number
            if not line or line[0] in "#!":
                continue
        # A backslash at the end continues the line, unless it is itself escaped. Only then can `joined` be non-empty,
        # so it keeps the last backslash until the next line is known: "a\" and nothing after it is "a".
        backslashes = len(line) - len(line.rstrip("\\"))
        joined = joined[:-1] + line
        if backslashes % 2 == 0:
            yield start, joined
            joined = ""
    if joined:
        yield start, joined[:-1]


def _match_end(pattern: re.Pattern[str], line: str, start: int) -> int:
    match = pattern.match(line, start)
    return start if match is None else match.end()


def _unescape(text: str, line_number: int) -> str:
    def character(match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) == 5:
            return chr(int(escape[1:], 16))
        if escape == "u":
            raise ConfigError(f"Line {line_number}: \\u must be followed by four hexadecimal digits.")
        return _ESCAPES.get(escape, escape)

    return _ESCAPE.sub(character, text) if "\\" in text else text
