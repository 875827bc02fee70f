"""A produce request whose outcome is open: parked until every partition's append counts, or is known to have failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias
from uuid import UUID

from ...protocol.errors import ErrorCode
from ...protocol.produce import PartitionProduceResponse
from ..timing.purgatory import DelayedOperation
from .partition import Partition

TopicAnswers: TypeAlias = tuple[str | None, UUID | None, list[PartitionProduceResponse]]


class OpenAppend(NamedTuple):
    """An append that does not count yet. Its answer stands at `answers[position]` as if all went well."""

    hosted: Partition
    end_offset: int
    """The append ends here, exclusive: this much has to count."""
    leader_epoch: int
    answers: list[PartitionProduceResponse]
    position: int

    def settle(self, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            self.answers[self.position] = self.answers[self.position]._replace(error_code=error)


class DelayedProduce(DelayedOperation):
    """`respond` is called once, with every answer settled."""

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
            error = append.hosted.append_result(append.end_offset, append.leader_epoch, self._acks)
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
        # An answer may begin requests that look at this operation again before the purgatory has forgotten it.
        if not self._is_answered:
            self._is_answered = True
            self._respond(self._answers)
