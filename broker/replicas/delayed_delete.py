"""DeleteRecords that waits in purgatory until all live replicas have deleted (KIP-107). Kafka: `DelayedDeleteRecords`.

It also completes when the leadership is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...protocol.errors import ErrorCode
from ...protocol.ids import LeaderEpoch
from ..timing.purgatory import DelayedOperation
from .partition import Partition

UNKNOWN_LOW_WATERMARK = -1


class DeleteOutcome(NamedTuple):
    error: ErrorCode
    low_watermark: int


class OpenDelete(NamedTuple):
    """The leader of `leader_epoch` has deleted the records below `offset`; followers may still have them."""

    partition: Partition
    offset: int
    leader_epoch: LeaderEpoch

    def outcome(self) -> DeleteOutcome | None:
        """Returns None while a live replica has yet to delete."""
        error = self.partition.error
        if error is not ErrorCode.NONE:
            return DeleteOutcome(error, UNKNOWN_LOW_WATERMARK)
        state = self.partition.state
        if not state.is_leader or state.leader_epoch != self.leader_epoch:
            return DeleteOutcome(ErrorCode.NOT_LEADER_OR_FOLLOWER, UNKNOWN_LOW_WATERMARK)
        low_watermark = state.low_watermark(self.partition.log.log_start_offset)
        return DeleteOutcome(ErrorCode.NONE, low_watermark) if low_watermark >= self.offset else None


class DelayedDelete(DelayedOperation):
    """`respond` is called once, with one outcome for each delete, in their order."""

    __slots__ = ("_is_answered", "_opened", "_outcomes", "_respond")

    def __init__(self, opened: list[OpenDelete], respond: Callable[[list[DeleteOutcome]], None]) -> None:
        super().__init__()
        self._opened = opened
        self._outcomes: dict[int, DeleteOutcome] = {}
        self._respond = respond
        self._is_answered = False

    def try_complete(self) -> bool:
        for number, delete in enumerate(self._opened):
            if number not in self._outcomes:
                outcome = delete.outcome()
                if outcome is not None:
                    self._outcomes[number] = outcome
        if len(self._outcomes) < len(self._opened):
            return False
        self._answer()
        return True

    def on_expiration(self) -> None:
        self._settle_all(ErrorCode.REQUEST_TIMED_OUT)

    def on_failure(self, error: Exception) -> None:  # noqa: ARG002 - the purgatory has logged it
        self._settle_all(ErrorCode.UNKNOWN_SERVER_ERROR)

    def _settle_all(self, error: ErrorCode) -> None:
        for number, delete in enumerate(self._opened):
            low_watermark = delete.partition.state.low_watermark(delete.partition.log.log_start_offset)
            self._outcomes.setdefault(number, DeleteOutcome(error, low_watermark))
        self._answer()

    def _answer(self) -> None:
        if not self._is_answered:
            self._is_answered = True
            self._respond([self._outcomes[number] for number in range(len(self._opened))])
