"""`ssl.principal.mapping.rules`: from the subject of a client's certificate to the name of a principal (KIP-371).

Kafka: `SslPrincipalMapper`. Rules are tried in order, the first whose pattern matches the whole name decides:

    RULE:pattern/replacement/    groups of the pattern are $1, $2, …; a slash in either is \\/
    RULE:pattern/replacement/L   the same in small letters; U in capitals
    DEFAULT                      the name as it is

Patterns are RE2's, which take linear time whatever name a certificate brings; what Java has beyond that (references to
groups in a pattern, lookaround, possessive quantifiers) is refused at start.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct

from ...protocol.errors import ConfigError

_RULE: Final = (
    r"(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?).*?|.*?"
)
_SPLIT = re.compile(rf"\s*(?P<rule>{_RULE})\s*(?:,\s*|\Z)", re.ASCII)
_PARSE = re.compile(_RULE)
_DIGITS: Final = frozenset("0123456789")
_CASES: Final[dict[str, Callable[[str], str]]] = {"": str, "L": str.lower, "U": str.upper}


class _Rule(Struct, frozen=True, kw_only=True):
    # A pattern of RE2, which has no types; None: every name, as it is.
    pattern: Any
    # Texts, and numbers of groups.
    replacement: tuple[str | int, ...]
    change_case: Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalMapping:
    """The rules of one listener."""

    text: str
    # They follow from the text, and compiled patterns of one text are not equal.
    rules: tuple[_Rule, ...] = field(compare=False, repr=False)

    def name_of(self, distinguished_name: str) -> str | None:
        """The name of the principal; None when no rule applies: then the connection is refused."""
        for rule in self.rules:
            if rule.pattern is None:
                return distinguished_name
            if rule.pattern.fullmatch(distinguished_name) is not None:
                return rule.change_case(_replaced(rule, distinguished_name))
        return None


def parse_principal_mapping(key: str, text: str) -> PrincipalMapping:
    """Raises ConfigError, naming `key`. Empty rules between commas are ignored."""
    rules = []
    for split in _SPLIT.finditer(text.strip()):
        match = _PARSE.match(split["rule"])
        if match is None or match.end() != len(split["rule"]):
            raise ConfigError(
                f"{key} must hold DEFAULT and RULE:pattern/replacement/[LU] with commas between them, but one rule is "
                f"{split['rule']!r}."
            )
        if match["default"] is not None:
            rules.append(_Rule(pattern=None, replacement=(), change_case=str))
        elif match["pattern"] is not None:
            rules.append(_rule(key, match["pattern"], match["replacement"], match["case"]))
    return PrincipalMapping(text=text, rules=tuple(rules))


def _rule(key: str, pattern: str, replacement: str, case: str) -> _Rule:
    # Only those who have rules need it, and it takes a while to load.
    import re2

    options = re2.Options()
    # The error is told; RE2 would also write it to standard error.
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error
        raise ConfigError(
            f"{key} has the pattern {pattern!r}, which RE2 does not take: {reason}. It has no references to groups, "
            "lookaround or possessive quantifiers."
        ) from None
    return _Rule(
        pattern=compiled,
        replacement=_parsed_replacement(key, replacement, compiled.groups),
        change_case=_CASES[case],
    )


def _parsed_replacement(key: str, text: str, group_count: int) -> tuple[str | int, ...]:
    """As Java's `Matcher.appendReplacement` reads it after Kafka has escaped what names no group."""
    parts: list[str | int] = []
    literal, position = "", 0
    while position < len(text):
        one = text[position]
        if one == "\\":
            # The syntax of rules lets no backslash stand at the end.
            literal += text[position + 1]
            position += 2
            continue
        if one != "$":
            literal += one
            position += 1
            continue
        digits = _group_digits(text, position + 1, group_count)
        if not digits:
            if text[position + 1 : position + 2] not in _DIGITS or group_count == 0:
                raise ConfigError(
                    f"{key} has the replacement {text!r}, whose $ at {position} names no group of its pattern; a "
                    "dollar sign is \\$."
                )
            literal += one
            position += 1
            continue
        parts += [literal, int(digits)]
        literal, position = "", position + 1 + len(digits)
    return tuple(part for part in (*parts, literal) if part != "")


def _group_digits(text: str, start: int, group_count: int) -> str:
    """The longest number from `start` on that names a group: of $12 it is 1 where there are fewer than 12."""
    digits = ""
    while text[start + len(digits) : start + len(digits) + 1] in _DIGITS:
        longer = text[start : start + len(digits) + 1]
        if int(longer) > group_count:
            break
        digits = longer
    return digits


def _replaced(rule: _Rule, name: str) -> str:
    """Every match in the name, as Java's `replaceAll`: `.*` matches the whole name and then nothing at its end."""
    result, copied, position = [], 0, 0
    while position <= len(name):
        match = rule.pattern.search(name, position)
        if match is None:
            break
        result.append(name[copied : match.start()])
        result += [part if isinstance(part, str) else match.group(part) or "" for part in rule.replacement]
        copied = match.end()
        position = copied if copied > match.start() else copied + 1
    return "".join((*result, name[copied:]))
