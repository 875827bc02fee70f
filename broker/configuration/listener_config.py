"""The listeners of a node as its properties name them: `NAME://host:port`."""

import ipaddress
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ...protocol.errors import ConfigError
from ...protocol.security_protocols import SecurityProtocol

_LISTENER = re.compile(
    r"(?P<name>[^:/]+)://(?P<bracket>\[)?(?P<host>[0-9A-Za-z\-%._:]*)(?(bracket)\]):(?P<port>-?[0-9]+)"
)


class ListenerConfig(Struct, frozen=True, kw_only=True):
    """One listener, to bind to or to advertise.

    `host` is empty when the property names none: bind to every interface; advertise the machine's own name. `port` 0 is
    one that the system chooses.
    """

    name: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"

    @property
    def is_loopback(self) -> bool:
        if self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.partition("%")[0]).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"{self.name}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def parse_listeners(key: str, texts: Sequence[str], protocols: Mapping[str, str]) -> tuple[ListenerConfig, ...]:
    """The listeners that the property `key` names. Raises ConfigError."""
    listeners: list[ListenerConfig] = []
    for text in texts:
        match = _LISTENER.fullmatch(text.strip())
        if match is None:
            raise ConfigError(f"{key} must hold listeners like PLAINTEXT://host:9092, but one is {text!r}.")
        name, port = match["name"].upper(), int(match["port"])
        if not 0 <= port <= 65535:
            raise ConfigError(f"{key} holds {text}, whose port is not between 0 and 65535.")
        if name not in protocols:
            raise ConfigError(
                f"Listener {name} of {key} has no security protocol: add it to listener.security.protocol.map."
            )
        listeners.append(ListenerConfig(name=name, host=match["host"], port=port, security_protocol=protocols[name]))
    if len({listener.name for listener in listeners}) != len(listeners):
        raise ConfigError(f"Each listener of {key} must have a different name, but it is {','.join(texts)}.")
    return tuple(listeners)


def parse_protocol_map(text: str) -> dict[str, str]:
    """Reads `NAME:PROTOCOL,…`. Raises ConfigError."""
    protocols = {}
    for entry in filter(None, (entry.strip() for entry in text.split(","))):
        name, colon, protocol = entry.rpartition(":")
        if not colon or protocol.strip().upper() not in SecurityProtocol.__members__:
            known = ", ".join(SecurityProtocol.__members__)
            raise ConfigError(
                f"listener.security.protocol.map holds NAME:PROTOCOL with one of {known}, but one entry is {entry!r}."
            )
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def check_distinct_ports(key: str, listeners: Sequence[ListenerConfig]) -> None:
    """Two listeners may share a port only on two addresses, one of IPv4 and one of IPv6. Raises ConfigError."""
    seen: dict[int, ListenerConfig] = {}
    for listener in listeners:
        if listener.port == 0:
            continue
        other = seen.setdefault(listener.port, listener)
        if other is not listener and (":" in other.host) == (":" in listener.host):
            raise ConfigError(
                f"Each listener of {key} must have a different port, but {other} and {listener} share one."
            )
