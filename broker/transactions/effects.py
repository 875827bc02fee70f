"""Effects that only coordinators of transactions have, beside those of `coordination/effects.py`, and what comes back.

effect             comes back as an event, while this shard lives
AwaitCommit        `on_committed`
WriteMarkers       `on_markers_written`, `on_markers_fenced`
CancelMarkers      never
RequestProducerId  `on_producer_id`, unless the controller assigns no producer id
ScheduleTimer      `on_timer`, with one of the keys below
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from msgspec import Struct

from ..coordination.effects import Effect
from .markers import MarkerOrder


class LoadedRecords(Struct, frozen=True):
    """All records that the shard was made of."""


class ChangeRecord(Struct, frozen=True):
    """One change of a transactional id: the record at `offset`."""

    transactional_id: str
    offset: int


AwaitedRecords: TypeAlias = LoadedRecords | ChangeRecord


class AwaitCommit(Effect, frozen=True):
    """`on_committed` receives `records` when they and all others are committed that the coordinator has appended by
    then; never if they never are."""

    records: AwaitedRecords


class WriteMarkers(Effect, frozen=True):
    """Write markers into all partitions of the order, for as long as it takes, until it is cancelled or fenced."""

    order: MarkerOrder


class CancelMarkers(Effect, frozen=True):
    """Send nothing more of the order, and report nothing more. No effect for an order that has ended."""

    is_applied_when_unloaded: ClassVar[bool] = True
    order: MarkerOrder


class RequestProducerId(Effect, frozen=True):
    """`on_producer_id` receives the transactional id with a new producer id."""

    transactional_id: str


class TimeoutCheck(Struct, frozen=True):
    """Timer: transactions that take too long are aborted."""


class ExpirationCheck(Struct, frozen=True):
    """Timer: transactional ids that no producer uses are removed."""


class CompletionRetry(Struct, frozen=True):
    """Timer: the completion of a transaction is appended again."""

    transactional_id: str
