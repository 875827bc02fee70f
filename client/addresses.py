"""Bootstrap addresses: `host:port`, several with commas between."""

from typing import Final

from msgspec import Struct

DEFAULT_PORT: Final = 9092


class Address(Struct, frozen=True):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Reads a list of addresses, IPv6 in brackets; a missing port is 9092. Raises ValueError with a sentence."""
    addresses = tuple(_parse(part.strip()) for part in text.split(",") if part.strip())
    if not addresses:
        raise ValueError("an address is host:port, found an empty one")
    return addresses


def _parse(text: str) -> Address:
    # As Kafka's clients, a listener's name in front is let through: it is what brokers print.
    bare = text.partition("://")[2] or text
    host, colon, port = bare.rpartition(":")
    if not colon or bare.endswith("]"):
        host, port = bare, str(DEFAULT_PORT)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text!r} is not host:port; an IPv6 address stands in brackets")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is not host:port")
    return Address(host, int(port))
