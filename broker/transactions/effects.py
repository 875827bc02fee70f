"""Effects that only coordinators of transactions have, beside those of `coordination/effects.py`, and what comes back.

effect             comes back as an event, while this shard lives
AwaitCommit        `on_committed`
WriteMarkers       `on_markers_written`, `on_markers_fenced`
CancelMarkers      never
RequestProducerId  `on_producer_id`, unless the controller assigns no producer id
ScheduleTimer      `on_timer`, with one of the keys below
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from ..coordination.effects import Effect
from .markers import MarkerOrder


@dataclass(frozen=True, slots=True)
class LoadedRecords:
    """All records that the shard was made of."""


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """One change of a transactional id: the record at `offset`."""

    transactional_id: str
    offset: int


AwaitedRecords: TypeAlias = LoadedRecords | ChangeRecord


@dataclass(slots=True)
class AwaitCommit(Effect):
    """`on_committed` receives `records` when they and all others are committed that the coordinator has appended by
    then; never if they never are."""

    records: AwaitedRecords


@dataclass(slots=True)
class WriteMarkers(Effect):
    """Write markers into all partitions of the order, for as long as it takes, until it is cancelled or fenced."""

    order: MarkerOrder


@dataclass(slots=True)
class CancelMarkers(Effect):
    """Send nothing more of the order, and report nothing more. No effect for an order that has ended."""

    is_applied_when_unloaded: ClassVar[bool] = True
    order: MarkerOrder


@dataclass(slots=True)
class RequestProducerId(Effect):
    """`on_producer_id` receives the transactional id with a new producer id."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class TimeoutCheck:
    """Timer: transactions that take too long are aborted."""


@dataclass(frozen=True, slots=True)
class ExpirationCheck:
    """Timer: transactional ids that no producer uses are removed."""


@dataclass(frozen=True, slots=True)
class CompletionRetry:
    """Timer: the completion of a transaction is appended again."""

    transactional_id: str
