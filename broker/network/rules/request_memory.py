"""How much memory unfinished requests may hold, over all connections (`queued.max.request.bytes`)."""

from __future__ import annotations

from typing import Protocol


class MemoryHolder(Protocol):
    def on_memory(self) -> None:
        """The bytes that were refused are charged now and the holder's to use."""


class RequestMemory:
    """A budget in bytes. A holder that is refused waits in line and is told when its bytes have been charged.

    One holder at a time is granted whatever it asks for until it gives everything back. So the budget can be overdrawn
    by one request, and connections that all hold half a request cannot deadlock.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._granted: MemoryHolder | None = None
        self._waiting: dict[MemoryHolder, int] = {}

    @property
    def is_spent(self) -> bool:
        return self.used_bytes >= self.limit_bytes

    def take(self, size_bytes: int) -> None:
        """Charges bytes that have already arrived and cannot be refused."""
        self.used_bytes += size_bytes

    def try_take(self, holder: MemoryHolder, size_bytes: int) -> bool:
        """Charges the bytes if there is room or the holder has the grant; else the holder waits in line."""
        if not self._may_take(holder, size_bytes):
            self._waiting[holder] = size_bytes
            return False
        self.used_bytes += size_bytes
        return True

    def give_back(self, holder: MemoryHolder, size_bytes: int) -> None:
        """Everything the holder has, because its request is finished or its connection is gone."""
        self.used_bytes -= size_bytes
        assert self.used_bytes >= 0, "request memory given back twice"
        if self._granted is holder:
            self._granted = None
        self._waiting.pop(holder, None)
        while self._waiting:
            # First come, first served: small requests cannot starve a large one.
            first, wanted_bytes = next(iter(self._waiting.items()))
            if not self._may_take(first, wanted_bytes):
                return
            del self._waiting[first]
            self.used_bytes += wanted_bytes
            first.on_memory()

    def _may_take(self, holder: MemoryHolder, size_bytes: int) -> bool:
        if self.used_bytes + size_bytes <= self.limit_bytes or self._granted is holder:
            return True
        if self._granted is None:
            self._granted = holder
            return True
        return False
