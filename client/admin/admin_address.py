"""Where a node's HTTP administration is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

_PORTS: Final = {"http": 80, "https": 443}


class AdminAddress(Struct, frozen=True):
    """Its text is a URL without a path."""

    host: str
    port: int
    is_encrypted: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_encrypted else 'http'}://{host}:{self.port}"


def parse_addresses(urls: str | Sequence[str]) -> tuple[AdminAddress, ...]:
    """Reads `http://host:port,https://…`. Raises ValueError."""
    texts = urls.split(",") if isinstance(urls, str) else urls
    found = []
    for text in filter(None, (text.strip() for text in texts)):
        parts = urlsplit(text)
        if parts.scheme not in _PORTS or not parts.hostname or parts.path not in ("", "/"):
            raise ValueError(f"{text!r} is no address like http://127.0.0.1:8083")
        port = parts.port or _PORTS[parts.scheme]
        found.append(AdminAddress(parts.hostname, port, is_encrypted=parts.scheme == "https"))
    if not found:
        raise ValueError("an address like http://127.0.0.1:8083 is needed")
    return tuple(found)
