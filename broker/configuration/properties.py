"""Where a node's properties come from: a Java properties file, the environment, the command line."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ...protocol.errors import ConfigError

ENVIRONMENT_PREFIX: Final = "PENSTOCK_"
_OF_THE_TERMINAL: Final = frozenset({"PENSTOCK_ADMIN"})
"""Commands find the HTTP administration by it; no property of a node."""
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[\s\S]|$)")
_KEY = re.compile(r"(?:[^\\=: \t\f]|\\[\s\S])*")
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_BLANKS: Final = " \t\f"
# As the environment of Kafka's container image: PENSTOCK_LOG_DIRS is log.dirs; two underscores are one, three a dash.
_UNDERSCORES: Final = {1: ".", 2: "_", 3: "-"}


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


def properties_of_assignments(assignments: Sequence[str]) -> dict[str, str]:
    """Reads `key=value` texts of the command line. Raises ConfigError for one without a key or `=`."""
    properties = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set takes key=value, but got {assignment!r}.")
        properties[key.strip()] = value
    return properties


def properties_of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The properties that `PENSTOCK_…` variables give: PENSTOCK_NUM_PARTITIONS is num.partitions."""
    return {
        re.sub("_{1,3}", lambda run: _UNDERSCORES[len(run[0])], name.removeprefix(ENVIRONMENT_PREFIX).lower()): value
        for name, value in environment.items()
        if name.startswith(ENVIRONMENT_PREFIX) and name not in _OF_THE_TERMINAL
    }


def merge_properties(
    *, file_text: str | None = None, environment: Mapping[str, str], assignments: Sequence[str] = ()
) -> dict[str, str]:
    """All that was set, the command line over the environment over the file. Raises ConfigError."""
    return {
        **({} if file_text is None else properties_of(file_text)),
        **properties_of_environment(environment),
        **properties_of_assignments(assignments),
    }


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
