"""Ids of processes that are brokers, one after the other, in an order that needs no clock.

The first 48 bits are the number of the start on its log directories, the others are random. So of two processes with a
log directory in common the controller can tell the later one, and that the earlier one is gone. An id without a number
in it, as other programs draw it, says nothing: its first bits are as good as any.
"""

from typing import Final
from uuid import UUID

_RANDOM_BITS: Final = 80


def incarnation_id_of(start: int, drawn: int) -> UUID:
    """`start` is above 0 and below 2**48, `drawn` a random number of any size."""
    return UUID(int=start << _RANDOM_BITS | drawn % (1 << _RANDOM_BITS))


def is_later_start(incarnation_id: UUID, other: UUID) -> bool:
    """Whether a process began to hold a log directory after another one that had it."""
    return incarnation_id.int >> _RANDOM_BITS > other.int >> _RANDOM_BITS
