"""The port to the tier: objects by key. Four calls, each of which may take seconds, for an executor's threads.

Objects are written once, whole, and never changed. A key has no prefix but what its store adds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias

from ....protocol.batches import Buffer


class TierError(Exception):
    """The tier did not do it, or did not say so: it may have been done. Another try may succeed."""


class MissingObjectError(TierError):
    """The tier has no object of this key."""


class TierStore(Protocol):
    """Raises TierError and nothing else; is used from several threads."""

    def put(self, key: str, parts: bytes | Iterable[Buffer]) -> None:
        """Make the object of these bytes, or of these parts one behind the other, in place of one that is there. Until
        this returns the key has nothing, or what it had."""

    def get_range(self, key: str, start: int, size: int) -> Buffer:
        """`size` bytes from `start` on; fewer only where the object ends. MissingObjectError."""

    def delete(self, keys: Sequence[str]) -> None:
        """Also of keys without an object."""

    def keys(self, prefix: str) -> Iterator[str]:
        """The keys that begin with `prefix`, which ends in a slash or is empty."""


OpenTier: TypeAlias = Callable[[str], TierStore]
"""Returns the store of a URL (`remote.log.storage.url`), or raises ConfigError, one sentence."""
