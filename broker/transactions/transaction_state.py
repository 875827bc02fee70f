"""The states of a transactional id, with Apache Kafka's numbers and names, and what leads to each.

state              entered by                                        left by
Empty              InitProducerId                                    the first partition; an empty abort (version 2);
                                                                     expiration
Ongoing            the first partition that is added                 EndTxn; the timeout; InitProducerId, which fences
PrepareCommit      EndTxn, commit                                    the last marker being written
PrepareAbort       EndTxn, abort; a fence; the timeout               the last marker being written
CompleteCommit     all markers being written                         as Empty, and InitProducerId
CompleteAbort      all markers being written                         as Empty, and InitProducerId
Dead               expiration; it is only ever a tombstone           never
PrepareEpochFence  never: a fence and its abort are one record here  never
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final


class TransactionState(Enum):
    """The value is the name that clients see."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"

    @property
    def number(self) -> int:
        """As records have it."""
        return _NUMBERS[self]

    @property
    def is_prepared(self) -> bool:
        """What becomes of the transaction is decided, and markers are being written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_over(self) -> bool:
        """There is no transaction: the next one may begin, and the id may expire."""
        return self in (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


_NUMBERS: Final = {state: number for number, state in enumerate(TransactionState)}
STATES: Final = tuple(TransactionState)
"""By their numbers."""

_OVER: Final = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
PREVIOUS_STATES: Final[Mapping[TransactionState, frozenset[TransactionState]]] = MappingProxyType(
    {
        TransactionState.EMPTY: _OVER,
        TransactionState.ONGOING: _OVER | {TransactionState.ONGOING},
        TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
        TransactionState.PREPARE_ABORT: _OVER | {TransactionState.ONGOING},
        TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
        TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
        TransactionState.DEAD: _OVER,
        TransactionState.PREPARE_EPOCH_FENCE: frozenset(),
    }
)
"""From which each state may be entered."""
