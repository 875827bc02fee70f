"""How many connections the node accepts, in all and from one address. Kafka: `ConnectionQuotas`."""

from __future__ import annotations

from collections.abc import Mapping


class ConnectionLimits:
    """Counts connections (`max.connections`, `max.connections.per.ip` and its overrides)."""

    def __init__(self, *, total: int, per_host: int, per_host_overrides: Mapping[str, int]) -> None:
        self._total = total
        self._per_host = per_host
        self._per_host_overrides = per_host_overrides
        self._count = 0
        self._counts: dict[str, int] = {}

    @property
    def count(self) -> int:
        return self._count

    def set_limits(self, *, total: int, per_host: int, per_host_overrides: Mapping[str, int]) -> None:
        """From now on; connections that are open stay open."""
        self._total = total
        self._per_host = per_host
        self._per_host_overrides = per_host_overrides

    def admit(self, host: str) -> str | None:
        """Counts a connection from `host`; a sentence when it is one too many. Either way `release` follows."""
        self._count += 1
        count = self._counts[host] = self._counts.get(host, 0) + 1
        per_host = self._per_host_overrides.get(host, self._per_host)
        if count > per_host:
            return f"{host} has {count - 1} connections, max.connections.per.ip allows {per_host}"
        if self._count > self._total:
            return f"there are {self._count - 1} connections, max.connections allows {self._total}"
        return None

    def release(self, host: str) -> None:
        self._count -= 1
        count = self._counts[host] - 1
        if count:
            self._counts[host] = count
        else:
            del self._counts[host]
