"""JAAS configuration in a property: `LoginModule required option="value" …;` (KIP-85). Kafka: `JaasConfig`.

Kafka splits it with Java's StreamTokenizer, whose rules hold here, too:

- a word is of letters, digits, `.`, `-`, `_`, `$` and all beyond ASCII, and does not begin with a digit, `.` or `-`;
- a text is between `"` or `'`, ends at the end of its line at the latest, and has C's escapes (`\\n`, `\\"`, `\\101`);
- `//` and a single `/` make the rest of the line a comment, `/*` all up to `*/`.

No error quotes what it found: a misplaced quotation mark makes a password look like anything else.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from .errors import ConfigError

_CONTROL_FLAGS: Final = frozenset({"REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL"})
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NUMBER_STARTS: Final = frozenset("0123456789.-")
_OCTAL: Final = frozenset("01234567")


@dataclass(frozen=True, slots=True, kw_only=True)
class JaasEntry:
    """One login module. Its options have secrets, and are not shown."""

    login_module: str
    options: Mapping[str, str] = field(repr=False)


class _Token(NamedTuple):
    """`text` is None for what is neither a word nor a text: a number, or the one character `kind`."""

    kind: str
    text: str | None
    position: int


def parse_jaas(key: str, value: str) -> JaasEntry:
    """The one login module of the property `key`. Raises ConfigError."""
    entries = []
    tokens = _tokens(value)
    for token in tokens:
        entries.append(_entry(key, token, tokens))
    if len(entries) != 1:
        raise ConfigError(f"{key} must hold one login module that ends with a semicolon, but holds {len(entries)}.")
    return entries[0]


def _entry(key: str, first: _Token, tokens: Iterator[_Token]) -> JaasEntry:
    if first.text is None:
        raise ConfigError(f"{key} must begin with the class of a login module.")
    flag = next(tokens, None)
    if flag is None or (flag.text or "").upper() not in _CONTROL_FLAGS:
        raise ConfigError(
            f"{key} must have one of required, requisite, sufficient and optional behind the class of its login module."
        )
    options: dict[str, str] = {}
    for token in tokens:
        if token.kind == ";":
            return JaasEntry(login_module=first.text, options=options)
        equals, text = next(tokens, None), next(tokens, None)
        if token.text is None or equals is None or equals.kind != "=" or text is None or text.text is None:
            raise ConfigError(
                f'{key} must hold options like name="value", but character {token.position + 1} begins none; a value '
                "with anything but letters, or that begins with a digit, stands between quotation marks."
            )
        options[token.text] = text.text
    raise ConfigError(f"{key} must end with a semicolon.")


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        character = text[position]
        if character <= " ":
            position += 1
        elif character == "/":
            position = _comment_end(text, position)
        elif character in "\"'":
            content, end = _quoted(text, position + 1, character)
            yield _Token(character, content, position)
            position = end
        elif character in _NUMBER_STARTS:
            end = _number_end(text, position)
            yield _Token("number" if end > position + 1 or character != "-" else "-", None, position)
            position = end
        elif _is_word(character):
            end = position + 1
            while end < len(text) and (_is_word(text[end]) or text[end] in _NUMBER_STARTS):
                end += 1
            yield _Token("word", text[position:end], position)
            position = end
        else:
            yield _Token(character, None, position)
            position += 1


def _is_word(character: str) -> bool:
    # Java's table ends at 255, where its words have a gap below the no-break space.
    return (character.isascii() and character.isalpha()) or character in "_$" or character >= "\xa0"


def _comment_end(text: str, start: int) -> int:
    if text.startswith("/*", start):
        end = text.find("*/", start + 2)
        return len(text) if end < 0 else end + 2
    # Java has read the letter behind a single slash already, and does not look whether it ends the line.
    ends = [end for end in (text.find("\n", start + 2), text.find("\r", start + 2)) if end >= 0]
    return min(ends, default=len(text))


def _number_end(text: str, start: int) -> int:
    end = start + (text[start] == "-")
    has_point = False
    while end < len(text) and (text[end] in "0123456789" or (text[end] == "." and not has_point)):
        has_point = has_point or text[end] == "."
        end += 1
    return end


def _quoted(text: str, start: int, quote: str) -> tuple[str, int]:
    """What stands between the quotation marks, and where what follows them begins."""
    characters: list[str] = []
    position = start
    while position < len(text):
        character = text[position]
        if character == quote:
            return "".join(characters), position + 1
        if character in "\n\r":
            break
        position += 1
        if character == "\\" and position < len(text):
            character, position = _escaped(text, position)
        characters.append(character)
    return "".join(characters), position


def _escaped(text: str, position: int) -> tuple[str, int]:
    first = text[position]
    if first not in _OCTAL:
        return _ESCAPES.get(first, first), position + 1
    end = position + 1
    # Up to 0377, what a byte holds.
    while end < len(text) and text[end] in _OCTAL and end - position < (3 if first <= "3" else 2):
        end += 1
    return chr(int(text[position:end], 8)), end
