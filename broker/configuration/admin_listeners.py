"""Where a node's HTTP administration listens: `admin.listeners` and what goes with it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ...protocol.errors import ConfigError
from ...protocol.structs import replace

ADMIN_LISTENERS: Final = "admin.listeners"
ADMIN_ADVERTISED_LISTENERS: Final = "admin.advertised.listeners"
ADMIN_ALLOWED_HOSTS: Final = "admin.allowed.hosts"
_URL = re.compile(r"(?P<scheme>[a-z]+)://(?P<bracket>\[)?(?P<host>[0-9A-Za-z\-._:]*)(?(bracket)\]):(?P<port>[0-9]+)/?")


ADMIN: Final = "ADMIN"
"""By this name, as of a listener of Kafka, keys of TLS and SASL are of the HTTP administration:
`listener.name.admin.ssl.…`, `listener.name.admin.sasl.enabled.mechanisms`."""
ADMIN_MECHANISMS: Final = "listener.name.admin.sasl.enabled.mechanisms"
"""PLAIN and SCRAM are for passwords (Basic), OAUTHBEARER for tokens (Bearer)."""
HTTPS: Final = "https"


class AdminListener(Struct, frozen=True, kw_only=True):
    """`host` is empty for every interface; `port` 0 is one that the system chooses."""

    host: str
    port: int
    scheme: str = "http"

    def __str__(self) -> str:
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def parse_admin_listeners(key: str, texts: Sequence[str]) -> tuple[AdminListener, ...]:
    """Reads `http://host:port,https://…`. Raises ConfigError."""
    listeners = []
    for text in texts:
        match = _URL.fullmatch(text.strip())
        if match is None or int(match["port"]) > 65535:
            raise ConfigError(f"{key} must hold addresses like http://127.0.0.1:8083, but one is {text!r}.")
        if match["scheme"] not in ("http", HTTPS):
            raise ConfigError(f"{key} must hold http:// and https:// addresses, but one is {text!r}.")
        listeners.append(AdminListener(host=match["host"], port=int(match["port"]), scheme=match["scheme"]))
    return tuple(listeners)


def advertised_admin_listeners(
    told: Sequence[AdminListener], bound: Sequence[AdminListener], host_name: str
) -> tuple[AdminListener, ...]:
    """What others are told: as the node was told, else where it listens; every interface by the machine's name."""
    if told:
        return tuple(told)
    return tuple(replace(one, host=host_name) if one.host in ("", "0.0.0.0", "::") else one for one in bound)
