"""An append of this node's own whose outcome is open: parked until it is committed, or is known to have failed."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.errors import ErrorCode
from ..timing.purgatory import DelayedOperation
from .hosted_partition import ALL, HostedPartition


class DelayedAppend(DelayedOperation):
    """`settle` is called once, with what became of the append that ended at `end_offset`."""

    __slots__ = ("_end_offset", "_hosted", "_leader_epoch", "_settle")

    def __init__(self, hosted: HostedPartition, end_offset: int, settle: Callable[[ErrorCode], None]) -> None:
        """Of the present leadership of `hosted`."""
        super().__init__()
        self._hosted = hosted
        self._end_offset = end_offset
        self._leader_epoch = hosted.partition.leader_epoch
        self._settle = settle

    def try_complete(self) -> bool:
        outcome = self._hosted.outcome(self._end_offset, self._leader_epoch, ALL)
        if outcome is None:
            return False
        self._settle(outcome)
        return True

    def on_expiration(self) -> None:
        self._settle(ErrorCode.REQUEST_TIMED_OUT)

    def on_failure(self, error: Exception) -> None:  # noqa: ARG002 - the purgatory has logged it
        self._settle(ErrorCode.UNKNOWN_SERVER_ERROR)
