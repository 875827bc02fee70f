"""What is to be written into the partitions of a transaction whose end is decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from .transaction import Transaction, TransactionPartition
from .transaction_state import TransactionState


class MarkerOrder:
    """The markers of one transaction. `is_cancelled` once this node has no business with it any more."""

    __slots__ = ("coordinator_epoch", "is_cancelled", "on_fenced", "on_written", "transaction")

    def __init__(
        self,
        transaction: Transaction,
        coordinator_epoch: int,
        on_written: Callable[[Iterable[TransactionPartition]], None],
        on_fenced: Callable[[], None],
    ) -> None:
        """`on_written` receives partitions that need no more marker, each once; `on_fenced` reports a partition that
        knows a later producer or coordinator epoch."""
        self.transaction = transaction
        self.coordinator_epoch = coordinator_epoch
        self.on_written = on_written
        self.on_fenced = on_fenced
        self.is_cancelled = False

    @property
    def is_commit(self) -> bool:
        return self.transaction.state is TransactionState.PREPARE_COMMIT


class MarkerWriter(Protocol):
    def write(self, order: MarkerOrder) -> None:
        """Has markers written into all of its partitions, however long that takes, until it is cancelled."""
