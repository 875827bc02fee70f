"""Addresses of hosts, which can be written in several ways: as Java does (`0:0:0:0:0:0:0:1`), or short (`::1`)."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address


@lru_cache(maxsize=1024)
def usual_address(address: str) -> str:
    """Returns the address as RFC 5952 has it; one of IPv4 that is mapped to IPv6 is that of IPv4.

    What is no address is returned as it is.
    """
    try:
        found = ip_address(address)
    except ValueError:
        return address
    return str((found.ipv4_mapped if isinstance(found, IPv6Address) else None) or found)


def is_address(text: str) -> bool:
    """Whether it is one of IPv4 or IPv6."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
