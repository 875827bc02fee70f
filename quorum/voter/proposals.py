"""Commands on their way into the log, and the futures that wait for each (Kafka: `BatchAccumulator`)."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from ...protocol.ids import ControllerEpoch
from ..raft.consensus import CommitPosition, OutcomeUnknown
from ..raft.journal_items import LogEntry

# One write holds up the ones behind it; this many bytes go to a disk in some tens of milliseconds.
_MAX_GROUP_BYTES = 4 * 1024 * 1024

T = TypeVar("T")


class Proposal(NamedTuple):
    """A command for one epoch; the engine's own have no waiting future."""

    command: bytes
    epoch: ControllerEpoch
    outcome: "asyncio.Future[CommitPosition] | None"


class Proposals:
    """First they wait for a step, then for the commit of their entry."""

    def __init__(self) -> None:
        self._waiting: deque[Proposal] = deque()
        self._appended: dict[int, Proposal] = {}

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    @property
    def has_own(self) -> bool:
        """One of the engine's own is waiting."""
        return any(proposal.outcome is None for proposal in self._waiting)

    def add(self, proposal: Proposal) -> None:
        self._waiting.append(proposal)

    def take_group(self) -> list[Proposal]:
        """Return what the next step proposes."""
        taken: list[Proposal] = []
        size_bytes = 0
        while self._waiting:
            size_bytes += len(self._waiting[0].command)
            if taken and size_bytes > _MAX_GROUP_BYTES:
                break
            taken.append(self._waiting.popleft())
        return taken

    def on_appended(self, entries: Sequence[LogEntry], proposals: Sequence[Proposal]) -> None:
        for entry, proposal in zip(entries, proposals, strict=True):
            if proposal.outcome is not None:
                self._appended[entry.offset] = proposal

    def on_commit(self, entry: LogEntry) -> None:
        proposal = self._appended.pop(entry.offset, None)
        if proposal is not None and proposal.outcome is not None and not proposal.outcome.done():
            proposal.outcome.set_result(CommitPosition(entry.offset, ControllerEpoch(entry.epoch)))

    def give_up_appended(self, reason: str) -> None:
        """Tell those whose entries may or may not be committed some day."""
        give_up(self._appended.values(), reason)
        self._appended.clear()

    def give_up_all(self, reason: str) -> None:
        self.give_up_appended(reason)
        give_up(self._waiting, reason)
        self._waiting.clear()


def give_up(proposals: Iterable[Proposal], reason: str) -> None:
    for proposal in proposals:
        if proposal.outcome is not None:
            set_exception(proposal.outcome, OutcomeUnknown(reason))


def set_exception(future: "asyncio.Future[T]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
