"""A produce request that waits in purgatory until each append is acknowledged or has failed. Kafka: `DelayedProduce`.

With acks=all an append is acknowledged when the high watermark has reached its end, else when the log end offset has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from ...protocol.errors import ErrorCode
from ...protocol.ids import LeaderEpoch, TopicId
from ...protocol.produce import PartitionProduceResponse
from ..timing.purgatory import DelayedOperation
from .partition import Partition

TopicAnswers: TypeAlias = tuple[str | None, TopicId | None, list[PartitionProduceResponse]]


class OpenAppend(NamedTuple):
    """An append that is not acknowledged yet. Its answer is stored at `answers[position]` as if it had succeeded."""

    partition: Partition
    end_offset: int
    """Exclusive; the offset that the high watermark or the log end offset must reach."""
    leader_epoch: LeaderEpoch
    answers: list[PartitionProduceResponse]
    position: int

    def settle(self, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            self.answers[self.position] = self.answers[self.position]._replace(error_code=error)


class DelayedProduce(DelayedOperation):
    """`respond` is called once, with the final answers of all partitions."""

    __slots__ = ("_acks", "_answers", "_is_answered", "_open", "_respond")

    def __init__(
        self,
        acks: int,
        answers: Sequence[TopicAnswers],
        opened: list[OpenAppend],
        respond: Callable[[Sequence[TopicAnswers]], None],
    ) -> None:
        super().__init__()
        self._acks = acks
        self._answers = answers
        self._open = opened
        self._respond = respond
        self._is_answered = False

    def try_complete(self) -> bool:
        still_open = []
        for append in self._open:
            error = append.partition.append_result(append.end_offset, append.leader_epoch, self._acks)
            if error is None:
                still_open.append(append)
            else:
                append.settle(error)
        self._open = still_open
        if still_open:
            return False
        self._answer()
        return True

    def on_expiration(self) -> None:
        self._settle_all(ErrorCode.REQUEST_TIMED_OUT)

    def on_failure(self, error: Exception) -> None:  # noqa: ARG002 - the purgatory has logged it
        self._settle_all(ErrorCode.UNKNOWN_SERVER_ERROR)

    def _settle_all(self, error: ErrorCode) -> None:
        for append in self._open:
            append.settle(error)
        self._open = []
        self._answer()

    def _answer(self) -> None:
        # The response may start requests that recheck this operation before the purgatory has removed it.
        if not self._is_answered:
            self._is_answered = True
            self._respond(self._answers)
