"""A tier in memory: the second implementation of `storage/tiers/rules/tier_store.py`, with faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from penstock.protocol.batches import Buffer
from penstock.storage.tiers.rules.tier_store import MissingObjectError, TierError


class MemoryTier:
    """`fails` is asked before each call, with its name and the key: whether it fails."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.fails: Callable[[str, str], bool] = lambda _call, _key: False
        self.calls: list[tuple[str, str]] = []

    def put(self, key: str, parts: bytes | Iterable[Buffer]) -> None:
        self._begin("put", key)
        self.objects[key] = bytes(parts) if isinstance(parts, bytes) else b"".join(bytes(part) for part in parts)

    def get_range(self, key: str, start: int, size: int) -> bytes:
        self._begin("get", key)
        if key not in self.objects:
            raise MissingObjectError(f"{key} is not there")
        return self.objects[key][start : start + size]

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._begin("delete", key)
            self.objects.pop(key, None)

    def keys(self, prefix: str) -> Iterator[str]:
        self._begin("keys", prefix)
        return iter([key for key in self.objects if key.startswith(prefix)])

    def logs(self) -> list[int]:
        """The base offsets of the segments that are whole."""
        return sorted(
            int(key.rpartition("/")[2][:20])
            for key in self.objects
            if key.endswith(".log") and key.removesuffix(".log") + ".indexes" in self.objects
        )

    def _begin(self, call: str, key: str) -> None:
        self.calls.append((call, key))
        if self.fails(call, key):
            raise TierError(f"{call} of {key} fails, as the test wants it")
