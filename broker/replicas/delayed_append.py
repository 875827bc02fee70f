"""An internal append (acks=all) that waits in purgatory until it is committed or has failed."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.errors import ErrorCode
from ..timing.purgatory import DelayedOperation
from .partition import ALL, Partition


class DelayedAppend(DelayedOperation):
    """`settle` is called once, with the result of the append that ended at `end_offset` (exclusive)."""

    __slots__ = ("_end_offset", "_hosted", "_leader_epoch", "_settle")

    def __init__(self, partition: Partition, end_offset: int, settle: Callable[[ErrorCode], None]) -> None:
        """The append belongs to the partition's current leader epoch."""
        super().__init__()
        self._hosted = partition
        self._end_offset = end_offset
        self._leader_epoch = partition.state.leader_epoch
        self._settle = settle

    def try_complete(self) -> bool:
        outcome = self._hosted.append_result(self._end_offset, self._leader_epoch, ALL)
        if outcome is None:
            return False
        self._settle(outcome)
        return True

    def on_expiration(self) -> None:
        self._settle(ErrorCode.REQUEST_TIMED_OUT)

    def on_failure(self, error: Exception) -> None:  # noqa: ARG002 - the purgatory has logged it
        self._settle(ErrorCode.UNKNOWN_SERVER_ERROR)
