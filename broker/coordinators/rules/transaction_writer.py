"""Who writes in a transaction, and what its client supports."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple, TypeAlias

Place: TypeAlias = tuple[str, int]
"""Topic and partition."""


class TransactionSupport(Enum):
    """What a transactional client supports, by the version of its request (KIP-890)."""

    OLD_ERRORS = auto()
    ABORTABLE_ERROR = auto()
    """TRANSACTION_ABORTABLE (KIP-890, first part)."""
    ADDS_PARTITIONS = auto()
    """A partition that is written to becomes part of the transaction (KIP-890, second part)."""

    @property
    def adds_partitions(self) -> bool:
        return self is TransactionSupport.ADDS_PARTITIONS


class TransactionWriter(NamedTuple):
    """Who writes."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    support: TransactionSupport
