"""Requests and answers of the HTTP administration as bytes: what both clients share, without input and output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType, NoneType
from typing import Any, Final, TypeVar, cast
from urllib.parse import quote, urlencode

import msgspec

from ...protocol.rest.problem import MEDIA_TYPE, Problem, http_problem
from .admin_address import AdminAddress, parse_addresses
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

    def __iter__(self) -> Iterator[AdminAddress]:
        return iter(tuple(self._order))

    def try_last(self, address: AdminAddress) -> None:
        self._order.remove(address)
        self._order.append(address)


def unreachable(reasons: Mapping[AdminAddress, object]) -> AdminUnreachable:
    """`reasons` say why each address did not take the connection."""
    told = "; ".join(f"{address}: {reason}" for address, reason in reasons.items())
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
