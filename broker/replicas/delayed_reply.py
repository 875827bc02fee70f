"""A coordinator's response, delayed in purgatory until the records that it depends on are committed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...protocol.errors import ErrorCode
from ...protocol.ids import LeaderEpoch
from ..timing.purgatory import DelayedOperation
from .partition import ALL, Partition

WRITTEN_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_RECORD: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.CORRUPT_MESSAGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Error of a failed append to the coordinator's partition → error for its clients; other errors stay as they are."""


class DelayedReply(DelayedOperation):
    """`settle` is called once, with the result for the records appended below `end_offset`."""

    __slots__ = ("_end_offset", "_hosted", "_leader_epoch", "_settle")

    def __init__(
        self, partition: Partition, end_offset: int, leader_epoch: LeaderEpoch, settle: Callable[[ErrorCode], None]
    ) -> None:
        super().__init__()
        self._hosted = partition
        self._end_offset = end_offset
        self._leader_epoch = leader_epoch
        self._settle = settle

    def try_complete(self) -> bool:
        outcome = self._hosted.append_result(self._end_offset, self._leader_epoch, ALL)
        if outcome is None:
            return False
        if outcome is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
            # The record is committed, so every later coordinator will replay it.
            outcome = ErrorCode.NONE
        self._settle(WRITTEN_ERRORS.get(outcome, outcome))
        return True

    def on_expiration(self) -> None:
        self._settle(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def on_failure(self, error: Exception) -> None:  # noqa: ARG002 - the purgatory has logged it
        self._settle(ErrorCode.UNKNOWN_SERVER_ERROR)


class DelayedCommit(DelayedReply):
    """A follow-up of a commit that may come after the deadline: there `on_expired` is called in place of `settle`."""

    __slots__ = ("_on_expired",)

    def __init__(
        self,
        partition: Partition,
        end_offset: int,
        leader_epoch: LeaderEpoch,
        settle: Callable[[ErrorCode], None],
        on_expired: Callable[[], None],
    ) -> None:
        super().__init__(partition, end_offset, leader_epoch, settle)
        self._on_expired = on_expired

    def on_expiration(self) -> None:
        self._on_expired()
