"""Where a node's HTTP administration listens: `admin.listeners` and what goes with it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...protocol.errors import ConfigError

ADMIN_LISTENERS: Final = "admin.listeners"
ADMIN_ADVERTISED_LISTENERS: Final = "admin.advertised.listeners"
ADMIN_ALLOWED_HOSTS: Final = "admin.allowed.hosts"
_URL = re.compile(r"(?P<scheme>[a-z]+)://(?P<bracket>\[)?(?P<host>[0-9A-Za-z\-._:]*)(?(bracket)\]):(?P<port>[0-9]+)/?")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminListener:
    """`host` is empty for every interface; `port` 0 is one that the system chooses."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def parse_admin_listeners(key: str, texts: Sequence[str]) -> tuple[AdminListener, ...]:
    """Reads `http://host:port,…`. Raises ConfigError."""
    listeners = []
    for text in texts:
        match = _URL.fullmatch(text.strip())
        if match is None or int(match["port"]) > 65535:
            raise ConfigError(f"{key} must hold addresses like http://127.0.0.1:8083, but one is {text!r}.")
        if match["scheme"] != "http":
            raise ConfigError(f"{key} must hold http:// addresses in this version, but one is {text!r}.")
        listeners.append(AdminListener(host=match["host"], port=int(match["port"])))
    return tuple(listeners)


def advertised_admin_listeners(
    told: Sequence[AdminListener], bound: Sequence[AdminListener], host_name: str
) -> tuple[AdminListener, ...]:
    """What others are told: as the node was told, else where it listens; every interface by the machine's name."""
    if told:
        return tuple(told)
    return tuple(
        AdminListener(host=host_name if one.host in ("", "0.0.0.0", "::") else one.host, port=one.port) for one in bound
    )
