"""SCRAM credentials that a new cluster begins with: what `kafka-storage format --add-scram` takes (KIP-900).

    SCRAM-SHA-256=[name=alice,password=alice-secret,iterations=8192]
    SCRAM-SHA-512=[name=bob,salt="MTIzNDU2Nzg5MGFiY2RlZg==",saltedpassword="…"]

Several stand beside each other, separated by blanks, line breaks, commas or semicolons. No error quotes any of it.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ...protocol.errors import ConfigError
from ...protocol.scram import BY_NAME, ITERATIONS_MAX, ITERATIONS_MIN

_SEPARATORS: Final = r"[\s,;]"
# A password may have brackets: a credential ends where another one begins, or nothing.
_CREDENTIAL = re.compile(
    rf"{_SEPARATORS}*(?P<mechanism>[\w-]+)=\[(?P<fields>.*?)\](?={_SEPARATORS}+[\w-]+=\[|{_SEPARATORS}*\Z)", re.DOTALL
)
_FIELDS: Final = ("name", "password", "salt", "saltedpassword", "iterations")


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialCredential:
    """Of one user and mechanism: either a password, or a salted password with its salt."""

    name: str
    mechanism: str
    password: str | None = field(repr=False)
    salt: bytes | None = field(repr=False)
    salted_password: bytes | None = field(repr=False)
    iterations: int = ITERATIONS_MIN


def parse_initial_credentials(key: str, text: str) -> tuple[InitialCredential, ...]:
    """Reads what the property `key` holds. Raises ConfigError."""
    credentials = tuple(_credentials(key, text.strip()))
    names = [(one.mechanism, one.name) for one in credentials]
    if len(set(names)) != len(names):
        raise ConfigError(f"{key} names a user twice for one mechanism.")
    return credentials


def _credentials(key: str, text: str) -> Iterator[InitialCredential]:
    position, number = 0, 0
    while position < len(text):
        number += 1
        what = f"Credential {number} of {key}"
        match = _CREDENTIAL.match(text, position)
        if match is None:
            raise ConfigError(f"{what} is not of the form SCRAM-SHA-256=[name=alice,password=…].")
        if match["mechanism"] not in BY_NAME:
            raise ConfigError(f"{what} is of another mechanism than {' and '.join(BY_NAME)}.")
        yield _credential(what, match["mechanism"], match["fields"])
        position = match.end()
        rest = re.match(rf"{_SEPARATORS}*\Z", text[position:])
        if rest is not None:
            return


def _credential(what: str, mechanism: str, text: str) -> InitialCredential:
    fields: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or name.strip() not in _FIELDS:
            raise ConfigError(
                f"{what} has a field that is not one of {', '.join(_FIELDS)}; a value cannot have a comma."
            )
        quoted = len(value) >= 2 and value.startswith('"') and value.endswith('"')
        fields[name.strip()] = value[1:-1] if quoted else value
    if not fields.get("name"):
        raise ConfigError(f"{what} must have a name.")
    has_password, has_salted = bool(fields.get("password")), bool(fields.get("saltedpassword"))
    if has_password is has_salted:
        raise ConfigError(f"{what} must have one of password and saltedpassword.")
    if has_salted and not fields.get("salt"):
        raise ConfigError(f"{what} has a saltedpassword, so it must have its salt.")
    return InitialCredential(
        name=fields["name"],
        mechanism=mechanism,
        password=fields.get("password") if has_password else None,
        salt=_bytes(what, fields, "salt"),
        salted_password=_bytes(what, fields, "saltedpassword"),
        iterations=_iterations(what, fields.get("iterations", str(ITERATIONS_MIN))),
    )


def _bytes(what: str, fields: dict[str, str], name: str) -> bytes | None:
    if not fields.get(name):
        return None
    try:
        return base64.b64decode(fields[name], validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(f"The {name} of {what[0].lower()}{what[1:]} must be base64.") from None


def _iterations(what: str, text: str) -> int:
    iterations = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise ConfigError(f"{what} must have {ITERATIONS_MIN} to {ITERATIONS_MAX} iterations.")
    return iterations
