"""Applies what is committed: entries to the listener, in order, and with them the barriers that wait for an offset.

Raft's `lastApplied` follows `commitIndex` (dissertation §3.5), a slice a turn of the loop, so that catching up does not
hold heartbeats up.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from ...protocol.ids import ControllerEpoch
from ..raft.consensus import CommitPosition, ConsensusFailed, ConsensusListener, Snapshot, as_failure
from ..raft.journal_items import LogEntry
from ..raft.log import RaftLog

# Replaying takes some tens of microseconds for an entry, and as much again for each record of 100 bytes.
_COMMITS_PER_TURN: Final = 32
_COMMIT_BYTES_PER_TURN: Final = 8 * 1024


class CommitApplier:
    def __init__(
        self,
        log: RaftLog,
        listener: ConsensusListener,
        loop: asyncio.AbstractEventLoop,
        *,
        on_applied: Callable[[LogEntry], None],
        on_failure: Callable[[ConsensusFailed], None],
    ) -> None:
        """`on_failure` takes what an entry raises that is applied in a later turn."""
        self.applied_end = 0
        """End of the entries that the listener has heard, exclusive."""
        self._log = log
        self._listener = listener
        self._loop = loop
        self._on_applied = on_applied
        self._on_failure = on_failure
        self._commit_end = 0
        self._barriers: deque[tuple[int, asyncio.Future[CommitPosition]]] = deque()
        self._later: asyncio.Handle | None = None
        self._is_stopped = False

    @property
    def is_behind(self) -> bool:
        return self.applied_end < self._commit_end

    def load(self, snapshot: Snapshot) -> None:
        """Instead of all entries below its end."""
        self._listener.on_snapshot(snapshot)
        self.applied_end = snapshot.end_offset

    def advance(self, commit_end: int) -> None:
        self._commit_end = max(self._commit_end, commit_end)

    def add_barriers(self, barriers: Iterable[tuple[int, "asyncio.Future[CommitPosition]"]]) -> None:
        """Each is done once the entries below its offset are applied; offsets do not fall."""
        self._barriers += barriers

    def apply_all(self) -> None:
        """At the start of the voter. ConsensusFailed."""
        while self.is_behind:
            self._apply_one()

    def apply_some(self) -> None:
        """A slice now, the rest in later turns. ConsensusFailed."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        applied_bytes = 0
        for _ in range(_COMMITS_PER_TURN):
            if not self.is_behind or applied_bytes >= _COMMIT_BYTES_PER_TURN:
                break
            applied_bytes += self._apply_one()
        while self._barriers and self._barriers[0][0] <= self.applied_end:
            end_offset, done = self._barriers.popleft()
            if not done.done():
                epoch = ControllerEpoch(self._log.epoch_at(end_offset - 1) or 0)
                done.set_result(CommitPosition(end_offset - 1, epoch))
        if self.is_behind and not self._is_stopped:
            self._later = self._loop.call_soon(self._apply_later)

    def stop(self) -> None:
        """Nothing is applied in later turns, and barriers are dropped as they are."""
        self._is_stopped = True
        self._barriers.clear()
        if self._later is not None:
            self._later.cancel()
            self._later = None

    def _apply_later(self) -> None:
        self._later = None
        try:
            self.apply_some()
        except Exception as error:
            self._on_failure(as_failure(error))

    def _apply_one(self) -> int:
        """How many bytes its command has."""
        entry = self._log.entry(self.applied_end)
        self.applied_end += 1
        try:
            self._listener.on_commit(entry.offset, ControllerEpoch(entry.epoch), entry.command)
        except Exception as error:
            # What was committed cannot be taken in: this software does not understand its own log.
            raise ConsensusFailed(f"The metadata entry at offset {entry.offset} cannot be applied: {error}") from error
        self._on_applied(entry)
        return len(entry.command)
