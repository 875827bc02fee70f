"""What the node asks of a coordinator's state machine, whatever it coordinates. Kafka: `CoordinatorShard`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from .effects import Effects


class CoordinatorShard(Protocol):
    """Is made when its partition's leadership comes to this node, and dropped when that goes."""

    @property
    def effects(self) -> Effects:
        """Where its rules collect what their shell is to do after each event."""

    def is_superseded(self, key: bytes) -> bool:
        """Whether a value of this key, written outside transactions, need not be replayed when a later one follows."""

    def replay(self, offset: int, key: bytes | None, value: bytes | None, producer_id: int) -> None:
        """One record, in their order. Raises CorruptData."""

    def replay_end_transaction(self, producer_id: int, *, is_commit: bool) -> None: ...

    def on_loaded(self) -> None:
        """All was replayed; from here on it is asked."""

    def on_timer(self, key: Hashable) -> None:
        """A timer that was scheduled under this key has expired."""

    def on_unloaded(self) -> None:
        """The coordinator is gone: answers the waiting requests."""
