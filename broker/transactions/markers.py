"""What is to be written into the partitions of a transaction whose end is decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .transaction import Transaction, TransactionPartition
from .transaction_state import TransactionState


@dataclass(frozen=True, slots=True, eq=False)
class MarkerOrder:
    """The markers of one decision of one coordinator: an order equals only itself, whatever another one has."""

    transaction: Transaction
    coordinator_epoch: int

    @property
    def is_commit(self) -> bool:
        return self.transaction.state is TransactionState.PREPARE_COMMIT


Marks: TypeAlias = dict[MarkerOrder, set[TransactionPartition]]
"""What is to be written where."""
