"""Requests and answers of the HTTP administration as bytes: what both clients share, without input and output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType, NoneType
from typing import Any, Final, TypeVar, cast
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from ...protocol.rest.problem import MEDIA_TYPE, Problem, http_problem
from ..addresses import Address
from .errors import AdminProblem, AdminUnreachable

T = TypeVar("T")

JSON: Final = "application/json"
DEFAULT_TIMEOUT_S: Final = 30.0


NO_OTHERS: Final[Mapping[int, Any]] = MappingProxyType({})
"""Where every status that is no success is a problem; see `decoded`."""


class Addresses:
    """Where nodes listen, in the order in which they are tried: one that cannot be reached is tried last next time."""

    def __init__(self, urls: str | Sequence[str]) -> None:
        """Raises ValueError."""
        self._order = list(parse_addresses(urls))

    def __iter__(self) -> Iterator[Address]:
        return iter(tuple(self._order))

    def try_last(self, address: Address) -> None:
        self._order.remove(address)
        self._order.append(address)


def parse_addresses(urls: str | Sequence[str]) -> tuple[Address, ...]:
    """Reads `http://host:port,…`. Raises ValueError."""
    texts = urls.split(",") if isinstance(urls, str) else urls
    found = []
    for text in filter(None, (text.strip() for text in texts)):
        parts = urlsplit(text)
        if parts.scheme != "http" or not parts.hostname or parts.path not in ("", "/"):
            raise ValueError(f"{text!r} is no address like http://127.0.0.1:8083")
        found.append(Address(parts.hostname, parts.port or 80))
    if not found:
        raise ValueError("an address like http://127.0.0.1:8083 is needed")
    return tuple(found)


def url_of(address: Address) -> str:
    return f"http://{address}"


def unreachable(reasons: Mapping[Address, object]) -> AdminUnreachable:
    """`reasons` say why each address did not take the connection."""
    told = "; ".join(f"{url_of(address)}: {reason}" for address, reason in reasons.items())
    return AdminUnreachable(f"No node can be reached ({told}).")


def target(path: str, parameters: Mapping[str, object], query: Mapping[str, object]) -> str:
    """The path with its parameters quoted, and the query without what is None."""
    filled = path.format(**{name: quote(str(value), safe="") for name, value in parameters.items()})
    told = {name: _text(value) for name, value in query.items() if value is not None}
    return f"{filled}?{urlencode(told)}" if told else filled


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def encoded(body: object) -> bytes | None:
    return None if body is None else msgspec.json.encode(body)


def headers_of(method: str) -> dict[str, str]:
    """A write needs its content type, with a body or without."""
    headers = {"Accept": f"{JSON}, {MEDIA_TYPE}"}
    if method in ("POST", "PUT", "PATCH"):
        headers["Content-Type"] = JSON
    return headers


def decoded(status: int, content_type: str, content: bytes, answer: type[T], others: Mapping[int, Any]) -> T:
    """The answer's value; `others` are the classes of answers with a status that is no success, and no problem either.

    Raises AdminProblem.
    """
    if status in others:
        answer = others[status]
    elif not 200 <= status < 300:
        raise AdminProblem(_problem(status, content_type, content))
    if answer is NoneType or answer is bytes:
        return cast(T, None if answer is NoneType else content)
    return msgspec.json.decode(content, type=answer)


def _problem(status: int, content_type: str, content: bytes) -> Problem:
    if content_type.partition(";")[0].strip() == MEDIA_TYPE:
        return msgspec.json.decode(content, type=Problem)
    return http_problem(status, "Unexpected Answer", content[:200].decode(errors="replace"))
