"""A quorum of one: what is on this node's disk is agreed.

The term rises durably at each start, so that the leader epochs of two runs are never the same, and each start begins
with a no-op entry of its own term, as in every quorum. Proposals of one turn of the loop, and those that come while a
sync runs, share the next write and sync.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, TypeVar
from uuid import UUID

from ..storage.disk_errors import is_no_room
from ..storage.files import Files, Lock
from .consensus import (
    MAX_COMMAND_BYTES,
    CommitPosition,
    ConsensusFailed,
    ConsensusListener,
    NotLeader,
    OutcomeUnknown,
    QuorumStatus,
    VoterStatus,
)
from .journal import Entry, Journal, Term
from .snapshots import Snapshots, SnapshotWriter

logger = logging.getLogger(__name__)

# One write holds up the ones behind it; this many bytes go to a disk in some tens of milliseconds.
_MAX_WRITE_BYTES = 4 * 1024 * 1024

# Snapshot chunks are gathered up to this size before a write of them goes to the executor.
_SNAPSHOT_WRITE_BYTES = 256 * 1024

T = TypeVar("T")


class _Proposal(NamedTuple):
    entry: Entry
    outcome: "asyncio.Future[CommitPosition]"


class SingleVoter:
    """The engine (see `consensus.Consensus`). One folder of one disk belongs to it."""

    def __init__(
        self, files: Files, directory: str, *, node_id: int, directory_id: UUID, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._files = files
        self._directory = directory
        self._directory_id = directory_id
        self._loop = loop
        self._journal = Journal(files, directory)
        self._snapshots = Snapshots(files, directory)
        self._disk_turn = asyncio.Lock()
        self._listener: ConsensusListener | None = None
        self._lock: Lock | None = None
        self._failure: ConsensusFailed | None = None
        self._is_stopping = False
        self._waiting: deque[_Proposal] = deque()
        self._in_flight: deque[_Proposal] = deque()
        self._write_task: asyncio.Task[None] | None = None
        self._committed_end = 0
        self._next_offset = 0
        self.node_id = node_id
        self.epoch = 0
        self.leader_id: int | None = None
        self.bytes_since_snapshot = 0

    @property
    def next_offset(self) -> int:
        return self._next_offset

    async def start(self, listener: ConsensusListener) -> None:
        """Replay the disk, then lead a new term. Raises ConsensusFailed."""
        self._listener = listener
        try:
            self._files.make_directories(self._directory)
            self._lock = self._files.lock(f"{self._directory}/.lock")
        except BlockingIOError:
            raise ConsensusFailed(f"Another process uses the metadata journal in {self._directory}.") from None
        except OSError as error:
            raise ConsensusFailed(f"The metadata journal in {self._directory} cannot be opened: {error}.") from error
        try:
            self._refuse_kafka_s_log()
            self._replay(listener)
            term = self._journal.term.term + 1
            first = Entry(self._journal.end_offset, term, b"")
            await self._on_disk(lambda: self._journal.write([Term(term, self.node_id), first]))
            await self._on_disk(self._journal.keep_reserve)
            self.epoch, self.leader_id = term, self.node_id
            self._next_offset = first.offset + 1
            listener.on_leadership(self.node_id, term)
            self._commit(first)
        except Exception as error:
            self._lock.release()
            self._lock = None
            if isinstance(error, ConsensusFailed):
                raise
            raise ConsensusFailed(f"The metadata in {self._directory} cannot be loaded: {error}") from error

    def _refuse_kafka_s_log(self) -> None:
        # Apache Kafka keeps its metadata log in segments of record batches, with snapshots named as ours are.
        if any(name.endswith(".log") for name in self._files.list_directory(self._directory)):
            raise ConsensusFailed(
                f"{self._directory} holds the metadata log of another system, Apache Kafka perhaps; this node cannot "
                "go on from it and needs a metadata log directory of its own."
            )

    def _replay(self, listener: ConsensusListener) -> None:
        self._snapshots.remove_unfinished()
        snapshot = self._snapshots.latest()
        if snapshot is not None:
            listener.on_snapshot(snapshot)
            self._committed_end = snapshot.end_offset
        for entry in self._journal.recover():
            if entry.offset >= self._committed_end:
                if entry.offset > self._committed_end:
                    break
                self.bytes_since_snapshot += len(entry.command)
                self._commit(entry)
        if self._journal.start_offset > self._committed_end or self._journal.end_offset < self._committed_end:
            raise ConsensusFailed(
                f"The metadata journal in {self._directory} does not fit its snapshot: the snapshot ends at offset "
                f"{self._committed_end}, the journal has {self._journal.start_offset} to {self._journal.end_offset}."
            )

    async def stop(self) -> None:
        """Write what was proposed, then let go of the disk. A snapshot in the making is given up."""
        self._is_stopping = True
        if self._write_task is not None:
            await asyncio.wait([self._write_task])
        self.leader_id = None
        async with self._disk_turn:
            self._journal.close()
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def propose(self, command: bytes, *, epoch: int) -> asyncio.Future[CommitPosition]:
        assert 0 < len(command) <= MAX_COMMAND_BYTES, (
            f"a command has 1 to {MAX_COMMAND_BYTES} bytes, not {len(command)}"
        )
        if self.leader_id != self.node_id or epoch != self.epoch or self._is_stopping:
            raise NotLeader(None if self._is_stopping else self.leader_id, self.epoch)
        proposal = _Proposal(Entry(self._next_offset, epoch, command), self._loop.create_future())
        self._waiting.append(proposal)
        self._next_offset += 1
        if self._write_task is None:
            self._write_task = self._loop.create_task(self._write_waiting())
        return proposal.outcome

    async def read_barrier(self) -> CommitPosition:
        """One voter has heard of everything that it committed."""
        if self.leader_id != self.node_id:
            raise NotLeader(self.leader_id, self.epoch)
        return CommitPosition(self._committed_end - 1, self._journal.last_epoch)

    async def save_snapshot(self, *, end_offset: int, epoch: int, chunks: Iterator[bytes]) -> None:
        assert end_offset <= self._committed_end, "a snapshot holds committed entries only"
        self.bytes_since_snapshot = 0
        try:
            # Entries from here on go to a new segment, so that the ones before can be removed.
            await self._on_disk(self._journal.roll)
            writer = await self._in_executor(
                lambda: SnapshotWriter(self._files, self._directory, end_offset=end_offset, epoch=epoch)
            )
            await self._write_chunks(writer, chunks)
            if self._is_stopping:
                return
            await self._in_executor(writer.finish)
            if not self._is_stopping:
                await self._on_disk(lambda: self._journal.trim_to(end_offset))
                await self._in_executor(lambda: self._snapshots.remove_below(end_offset))
        except OSError as error:
            if is_no_room(error):
                # Nothing depends on it: the journal has it all, and the next one is tried when that has grown as much.
                logger.error("metadata snapshot given up: directory=%s error=%s", self._directory, error)
                await self._in_executor(self._snapshots.remove_unfinished)
            else:
                self._fail(ConsensusFailed(f"The metadata snapshot in {self._directory} cannot be written: {error}."))
        except ConsensusFailed as error:
            self._fail(error)

    def status(self) -> QuorumStatus:
        voter = VoterStatus(
            replica_id=self.node_id,
            directory_id=self._directory_id,
            log_end_offset=self._committed_end,
            last_fetch_timestamp_ms=-1,
            last_caught_up_timestamp_ms=-1,
        )
        return QuorumStatus(
            leader_id=self.leader_id, epoch=self.epoch, high_watermark=self._committed_end, voters=(voter,)
        )

    async def _write_chunks(self, writer: SnapshotWriter, chunks: Iterator[bytes]) -> None:
        gathered: list[bytes] = []
        size_bytes = 0
        for chunk in chunks:
            gathered.append(chunk)
            size_bytes += len(chunk)
            if size_bytes >= _SNAPSHOT_WRITE_BYTES:
                await self._in_executor(partial(writer.append, gathered))
                gathered, size_bytes = [], 0
            else:
                await asyncio.sleep(0)
            if self._is_stopping:
                return
        await self._in_executor(partial(writer.append, gathered))

    async def _write_waiting(self) -> None:
        try:
            while self._waiting and self._failure is None:
                entries = self._take_group()
                self.bytes_since_snapshot += await self._on_disk(partial(self._journal.write, entries))
                while self._in_flight:
                    self._commit(self._in_flight[0].entry)
                    entry, outcome = self._in_flight.popleft()
                    if not outcome.done():
                        outcome.set_result(CommitPosition(entry.offset, entry.epoch))
        except ConsensusFailed as error:
            self._fail(error)
        except Exception as error:
            # What was committed cannot be taken in: this software does not understand its own log.
            message = f"The metadata entry at offset {self._committed_end - 1} cannot be applied: {error}"
            self._fail(ConsensusFailed(message))
        finally:
            self._write_task = None

    def _take_group(self) -> list[Entry]:
        """Move the proposals of the next write from those that wait to those in flight."""
        size_bytes = 0
        while self._waiting:
            size_bytes += len(self._waiting[0].entry.command)
            if self._in_flight and size_bytes > _MAX_WRITE_BYTES:
                break
            self._in_flight.append(self._waiting.popleft())
        return [proposal.entry for proposal in self._in_flight]

    def _commit(self, entry: Entry) -> None:
        assert self._listener is not None
        self._committed_end = entry.offset + 1
        self._listener.on_commit(entry.offset, entry.epoch, entry.command)

    def _fail(self, failure: ConsensusFailed) -> None:
        if self._failure is not None:
            return
        self._failure = failure
        self.leader_id = None
        for proposal in (*self._in_flight, *self._waiting):
            if not proposal.outcome.done():
                proposal.outcome.set_exception(OutcomeUnknown(str(failure)))
        self._in_flight.clear()
        self._waiting.clear()
        assert self._listener is not None
        self._listener.on_failure(failure)

    async def _on_disk(self, call: Callable[[], T]) -> T:
        """Run a call on the journal: one at a time, and none after a failure."""
        async with self._disk_turn:
            if self._failure is not None:
                raise self._failure
            return await self._in_executor(call)

    async def _in_executor(self, call: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(None, call)
