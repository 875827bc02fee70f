"""Which HTTP requests are answered at all: against DNS rebinding, and against pages of other sites.

A page of another site can make a browser send requests to a loopback address. What it cannot choose is the Host and the
Origin that the browser states, nor a JSON content type without the asking that CORS demands, which is never granted.
Browsers also say by Sec-Fetch-Site from where a request comes: from elsewhere only a person who follows a link to a
page is served, so that other sites cannot make a node work either. Another port of the same host is elsewhere.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from msgspec import Struct

from ....protocol.host_addresses import is_address

READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITE: Final = frozenset({"same-origin", "none"})
"""What Sec-Fetch-Site says of this node's own pages, and of what a person typed."""
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


class Refusal(Struct, frozen=True, kw_only=True):
    """An HTTP status, and why."""

    status: int
    title: str
    sentence: str


def refusal_of(
    method: str,
    *,
    host: str | None,
    origin: str | None,
    content_type: str | None,
    known_hosts: Set[str],
    fetch_site: str | None = None,
    fetch_mode: str | None = None,
) -> Refusal | None:
    """Return why a request is not answered; None: it is. `known_hosts` are names in lower case, without ports.

    An address is taken for what it is: only names can be made to point elsewhere.
    """
    name = _host_name(host or "")
    if name is None or not (is_address(name) or name in known_hosts):
        return Refusal(
            status=421,
            title="Misdirected Request",
            sentence=f"The Host {host!r} is no name of this node; admin.allowed.hosts can add it.",
        )
    if origin is not None and origin != f"http://{host}" and origin != f"https://{host}":
        return Refusal(
            status=403, title="Forbidden", sentence=f"Pages of {origin!r} may not send requests to this node."
        )
    if fetch_site is not None and fetch_site not in _OWN_SITE and not (method in READING and fetch_mode == "navigate"):
        return Refusal(
            status=403, title="Forbidden", sentence=f"Requests from another site ({fetch_site!r}) are not answered."
        )
    if method in _WITH_BODY and not _is_json(content_type):
        return Refusal(
            status=415,
            title="Unsupported Media Type",
            sentence=f"{method} needs the header Content-Type: application/json, but it is {content_type!r}.",
        )
    return None


def _host_name(host: str) -> str | None:
    """The name in a Host header, without port and brackets; None where the header is not well formed."""
    if host.startswith("["):
        name, bracket, port = host[1:].partition("]")
        return name if bracket and (not port or (port[0] == ":" and _is_port(port[1:]))) else None
    name, colon, port = host.partition(":")
    if colon and not _is_port(port):
        return None
    return name.lower().rstrip(".") or None


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _is_json(content_type: str | None) -> bool:
    media_type = (content_type or "").partition(";")[0].strip().lower()
    return media_type == "application/json"
