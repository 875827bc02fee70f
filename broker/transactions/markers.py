"""What is to be written into the partitions of a transaction whose end is decided."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from .transaction import Transaction, TransactionPartition
from .transaction_state import TransactionState


class MarkerOrder(Struct, frozen=True, eq=False):
    """The markers of one decision of one coordinator: an order equals only itself, whatever another one has."""

    transaction: Transaction
    coordinator_epoch: int

    @property
    def is_commit(self) -> bool:
        return self.transaction.state is TransactionState.PREPARE_COMMIT


Marks: TypeAlias = dict[MarkerOrder, set[TransactionPartition]]
"""What is to be written where."""
