"""A voter of the quorum, one of several or the only one: the shell around `raft/core.py` and what the node talks to.

Kafka: `KafkaRaftClient`.

One step at a time: what came is delivered, proposals are appended, what must last is written and synced in the
executor, then messages leave and what is committed is applied. Proposals and messages that come while a sync runs share
the next one.

The end, in this order: no step begins any more; what the executor still does to the disk is waited for; the links stop;
the journal is closed; the lock is given up.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple
from uuid import UUID

from ...protocol.ids import NO_CONTROLLER_EPOCH, ControllerEpoch, NodeId
from ...protocol.no_quorum import no_quorum
from ...storage.disk.files import Files
from ...storage.disk.shielded_call import run_unbroken
from ..links.rules.peer_links import NoLinks, PeerLinks
from ..raft.bootstrap_notice import BootstrapNotice
from ..raft.consensus import (
    MAX_COMMAND_BYTES,
    CommitPosition,
    ConsensusFailed,
    ConsensusListener,
    NotLeader,
    OutcomeUnknown,
    QuorumStatus,
    Snapshot,
    as_failure,
)
from ..raft.core import RaftCore
from ..raft.elections import RaftTiming
from ..raft.inbox import Inbox
from ..raft.log import RaftLog
from ..raft.messages import encode_message
from ..raft.peer_contact import PeerContact
from ..raft.quorum_notice import QuorumNotice
from ..raft.recent_times import RecentTimes
from ..raft.snapshot_transfer import FinishSnapshot, OutgoingSnapshot
from ..raft.step import Addressed, Step
from ..raft.voter_status import quorum_status
from . import disk_jobs
from .commit_applier import CommitApplier
from .disk_jobs import DiskJob, DiskJobs
from .journal import RESERVE_BYTES
from .proposals import Proposal, Proposals, give_up, set_exception
from .snapshot_reader import SnapshotReader
from .snapshot_saver import SnapshotSaver
from .voter_disk import RecoveredState, VoterDisk, WriteResult

if TYPE_CHECKING:
    from random import Random

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class RaftVoter:
    """The engine (see `consensus.Consensus`). One folder of one disk belongs to it."""

    def __init__(
        self,
        files: Files,
        directory: str,
        *,
        node_id: NodeId,
        directory_id: UUID,
        random: "Random",
        loop: asyncio.AbstractEventLoop,
        wall_clock_ms: Callable[[], int],
        voter_ids: tuple[NodeId, ...] | None = None,
        links: PeerLinks | None = None,
        timing: RaftTiming | None = None,
        reserve_bytes: int = RESERVE_BYTES,
    ) -> None:
        """Without `voter_ids` this is the only voter; else `voter_ids` names all of them and `links` leads to them."""
        self._disk = VoterDisk(files, directory, reserve_bytes=reserve_bytes)
        self._directory_ids = {node_id: directory_id}
        self._random = random
        self._loop = loop
        self._wall_clock_ms = wall_clock_ms
        self._voter_ids = (node_id,) if voter_ids is None else voter_ids
        self._links: PeerLinks = NoLinks() if links is None else links
        self._timing = timing or RaftTiming()
        self._listener: ConsensusListener | None = None
        self._log: RaftLog | None = None
        self._applier: CommitApplier | None = None
        self._core: RaftCore | None = None
        self._failure: ConsensusFailed | None = None
        self._is_stopping = False
        # No step begins any more.
        self._has_ended = False
        # What the executor does to the disk, and snapshots in the making.
        self._disk_work: set[asyncio.Future[Any]] = set()
        self._inbox = Inbox()
        self._proposals = Proposals()
        # All that wait, in the core or for their offset to be applied.
        self._begun_barriers: set[asyncio.Future[CommitPosition]] = set()
        self._disk_jobs = DiskJobs(loop)
        self._is_stepping = False
        self._idle: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._wake_handle: asyncio.Handle | None = None
        self._founding = BootstrapNotice(self._now_ms())
        self._notice = QuorumNotice()
        self._contact = PeerContact((one for one in self._voter_ids if one != node_id), self._now_ms())
        self._arrived: Snapshot | None = None
        self._snapshot_reader = SnapshotReader(
            loop,
            lambda: self._in_executor(self._disk.snapshots.latest),
            on_read=self._offer_snapshot,
            on_failure=self._fail,
        )
        self._saver = SnapshotSaver(
            self._disk,
            in_journal_s_turn=self._on_disk,
            in_executor=partial(run_unbroken, loop),
            is_stopping=lambda: self._is_stopping,
        )
        self.node_id = node_id
        self.epoch = NO_CONTROLLER_EPOCH
        self.leader_id: NodeId | None = None
        self.bytes_since_snapshot = 0
        self.election_times = RecentTimes()
        """How long no leader was known."""
        self._leaderless_since_ms: int | None = self._now_ms()
        self._linked: set[NodeId] = set()

    @property
    def unlinked_count(self) -> int:
        """Other voters that there is no connection to."""
        return len(self._voter_ids) - 1 - len(self._linked)

    @property
    def log_end_offset(self) -> int:
        return 0 if self._log is None else self._log.end_offset

    @property
    def log_end_epoch(self) -> int:
        """Of the last entry of the log, 0 without one."""
        return 0 if self._log is None else self._log.last_epoch

    @property
    def voted_for(self) -> int | None:
        """The voter that has this one's vote in the current epoch."""
        return None if self._log is None else self._log.term.voted_for

    @property
    def next_offset(self) -> int:
        return 0 if self._log is None else self._log.end_offset + self._proposals.waiting_count

    @property
    def has_fresh_quorum(self) -> bool:
        return self.leader_id == self.node_id and self._core is not None and self._core.has_fresh_quorum

    @property
    def is_member(self) -> bool:
        """Whether this voter's disk counts (see `eligibility.py`)."""
        return self._core is not None and self._core.is_member

    @property
    def high_watermark(self) -> int:
        """End of the entries that the listener has heard, exclusive."""
        return 0 if self._applier is None else self._applier.applied_end

    # Start and stop.

    async def start(self, listener: ConsensusListener) -> None:
        """Replay what is known to be committed, then take part. Alone, lead before this returns.

        Raises ConsensusFailed.
        """
        self._listener = listener
        self._disk.open()
        try:
            recovered = await run_unbroken(self._loop, self._recover)
            self._log = log = recovered.log
            self._applier = self._replay(recovered, listener)
            self._core = RaftCore(
                log,
                node_id=self.node_id,
                voter_ids=self._voter_ids,
                commit_end=self._applier.applied_end,
                timing=self._timing,
                random=self._random,
                now_ms=self._now_ms,
            )
            self._links.start(self)
            await self._on_disk(self._disk.journal.keep_reserve)
            if len(self._voter_ids) == 1:
                while self.leader_id is None and self._failure is None:
                    await self._until_idle()
                if self._failure is not None:
                    raise self._failure
        except Exception as error:
            await self._end("This node could not start.")
            if isinstance(error, ConsensusFailed):
                raise
            raise ConsensusFailed(f"The metadata of this node cannot be loaded: {error}") from error

    def _recover(self) -> RecoveredState:
        """In the executor."""
        recovered = self._disk.recover()
        self._disk.keep_voters(self._voter_ids)
        return recovered

    def _replay(self, recovered: RecoveredState, listener: ConsensusListener) -> CommitApplier:
        log = recovered.log
        if not log.is_member and log.end_offset and len(self._voter_ids) == 1:
            raise ConsensusFailed(
                "The metadata of this node was being copied from other voters when those left "
                "controller.quorum.voters; it may lack changes that were made."
            )
        applier = CommitApplier(log, listener, self._loop, on_applied=self._proposals.on_commit, on_failure=self._fail)
        if recovered.snapshot is not None:
            applier.load(recovered.snapshot)
        for offset in range(applier.applied_end, log.end_offset):
            self.bytes_since_snapshot += len(log.entry(offset).command)
        applier.advance(recovered.commit_end)
        applier.apply_all()
        return applier

    async def stop(self) -> None:
        """Write what was proposed, then let go of the disk. A snapshot in the making is given up."""
        self._is_stopping = True
        while (
            self._core is not None
            and self._failure is None
            and not self._has_ended
            and (self._proposals.waiting_count or self._disk_jobs.waiting_count or self._is_stepping)
        ):
            self._wake()
            await self._until_idle()
        while self._applier is not None and self._applier.is_behind and self._failure is None and not self._has_ended:
            self._applier.apply_some()
        await self._end("This node stopped.")

    async def _end(self, reason: str) -> None:
        """Begin nothing more, wait for what the executor does, and let go of the disk."""
        self._is_stopping = self._has_ended = True
        for handle in (self._timer, self._wake_handle):
            if handle is not None:
                handle.cancel()
        self._give_up_all(reason)
        self._disk_jobs.fail_waiting(ConsensusFailed(reason))
        self.leader_id = None
        self._become_idle()
        while self._disk_work:
            await asyncio.wait(self._disk_work)
        await self._links.stop()
        self._disk.close()

    # What the node asks for.

    def propose(self, command: bytes, *, epoch: ControllerEpoch) -> "asyncio.Future[CommitPosition]":
        assert 0 < len(command) <= MAX_COMMAND_BYTES, f"a command of {len(command)} bytes"
        if self.leader_id != self.node_id or epoch != self.epoch or self._is_stopping:
            raise NotLeader(None if self._is_stopping else self.leader_id, self.epoch)
        outcome: asyncio.Future[CommitPosition] = self._loop.create_future()
        self._proposals.add(Proposal(command, epoch, outcome))
        self._wake()
        return outcome

    async def read_barrier(self) -> CommitPosition:
        if self.leader_id != self.node_id or self._core is None or self._has_ended:
            raise NotLeader(None if self._has_ended else self.leader_id, self.epoch)
        done: asyncio.Future[CommitPosition] = self._loop.create_future()
        self._begun_barriers.add(done)
        done.add_done_callback(self._begun_barriers.discard)
        self._core.begin_barrier(done)
        self._wake()
        return await done

    async def transfer_leadership(self, node_id: NodeId | None) -> NodeId:
        core = self._core
        if self.leader_id != self.node_id or core is None or self._is_stopping:
            raise NotLeader(self.leader_id, self.epoch)
        if node_id == self.node_id:
            return node_id
        transfer = core.begin_transfer(node_id)
        self._wake()
        while not transfer.is_done and self._failure is None and not self._has_ended:
            await self._until_idle()
        if self._failure is not None:
            raise self._failure
        if not transfer.is_done:
            raise NotLeader(None, self.epoch)
        return transfer.leader_id

    async def save_snapshot(self, *, end_offset: int, epoch: ControllerEpoch, chunks: Iterator[bytes]) -> bool:
        assert end_offset <= self.high_watermark, "a snapshot holds committed entries only"
        if self._is_stopping:
            return False
        self.bytes_since_snapshot = 0
        saving: asyncio.Future[None] = self._loop.create_future()
        self._disk_work.add(saving)
        try:
            return await self._saver.save(end_offset=end_offset, epoch=epoch, chunks=chunks)
        except ConsensusFailed as error:
            self._fail(error)
            return False
        finally:
            self._disk_work.remove(saving)
            saving.set_result(None)

    def status(self) -> QuorumStatus:
        return quorum_status(
            node_id=self.node_id,
            voter_ids=self._voter_ids,
            directory_ids=self._directory_ids,
            leader_id=self.leader_id,
            epoch=self.epoch,
            high_watermark=self.high_watermark,
            log_end_offset=0 if self._log is None else self._log.end_offset,
            progress={} if self._core is None else self._core.progress,
            contact=self._contact,
            now_ms=self._now_ms(),
            wall_ms=self._wall_clock_ms(),
        )

    # What the links tell.

    def on_message(self, peer_id: NodeId, data: bytes) -> None:
        assert self._core is not None
        if self._failure is None:
            self._contact.on_message(peer_id, self._now_ms())
            self._inbox.add(peer_id, data, term=self._core.term)
            self._wake()

    def on_link_up(self, peer_id: NodeId, directory_id: UUID) -> None:
        assert self._core is not None
        self._directory_ids[peer_id] = directory_id
        self._linked.add(peer_id)
        self._core.set_link(peer_id, is_up=True)
        self._contact.on_link(peer_id, is_up=True)
        self._wake()

    def on_link_down(self, peer_id: NodeId) -> None:
        assert self._core is not None
        self._linked.discard(peer_id)
        self._core.set_link(peer_id, is_up=False)
        self._contact.on_link(peer_id, is_up=False)

    def on_peer_gone(self, peer_id: NodeId) -> None:
        if self._failure is None:
            self._inbox.add_gone(peer_id)
            self._wake()

    # Steps.

    def _wake(self) -> None:
        if self._wake_handle is None and not self._is_stepping and self._core is not None and not self._has_ended:
            self._wake_handle = self._loop.call_soon(self._run_step)

    def _run_step(self) -> None:
        self._wake_handle = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._failure is not None:
            self._become_idle()
            return
        assert self._core is not None
        self._is_stepping = True
        proposals = self._take_proposals()
        try:
            step = self._core.step(self._inbox.take(), [proposal.command for proposal in proposals])
        except Exception as error:
            give_up(proposals, str(error))
            self._fail(as_failure(error))
            return
        if step.proposed is None:
            give_up(proposals, "Leadership was lost before the proposal was made.")
        else:
            self._proposals.on_appended(step.proposed, proposals)
        self._send(step.early)
        jobs = self._disk_jobs.take()
        if step.items or step.snapshot_work or jobs:
            calls = [job.call for job in jobs]
            future = self._in_executor(self._disk.write, step.snapshot_work, calls, step.items)
            future.add_done_callback(partial(self._after_disk, step, jobs))
        else:
            self._finish_step(step, None)

    def _take_proposals(self) -> list[Proposal]:
        assert self._core is not None
        if self._core.holds_proposals:
            return []
        taken = self._proposals.take_group()
        if taken and (not self._core.is_leader or self._core.term != taken[0].epoch):
            give_up(taken, "Leadership was lost before the proposal was made.")
            taken.clear()
        return taken

    def _after_disk(self, step: Step, jobs: Sequence[DiskJob], future: "asyncio.Future[WriteResult]") -> None:
        try:
            result = future.result()
        except (Exception, asyncio.CancelledError) as error:
            failure = as_failure(error)
            disk_jobs.fail(jobs, failure)
            self._fail(failure)
            return
        disk_jobs.finish(jobs)
        self.bytes_since_snapshot += result.byte_count
        if result.is_snapshot_given_up and self._core is not None:
            self._core.on_snapshot_given_up(step)
        self._finish_step(step, result.snapshot)

    def _in_executor(self, call: Callable[[*Ts], T], *args: *Ts) -> "asyncio.Future[T]":
        future = self._loop.run_in_executor(None, call, *args)
        self._disk_work.add(future)
        future.add_done_callback(self._disk_work.discard)
        return future

    def _finish_step(self, step: Step, arrived: Snapshot | None) -> None:
        if self._failure is not None or self._has_ended:
            # That came while this step was on the disk: nothing is told or sent any more.
            self._become_idle()
            return
        try:
            self._apply_step(step, arrived)
        except Exception as error:
            self._fail(as_failure(error))
            return
        self._become_idle()
        assert self._core is not None
        has_proposals = self._proposals.waiting_count and not self._core.holds_proposals
        is_due = not self._inbox.is_empty or has_proposals or self._disk_jobs.waiting_count or arrived is not None
        if is_due or self._core.has_new_barriers:
            self._wake()
        elif self._wake_handle is None:
            self._timer = self._loop.call_at(self._core.next_step_at_ms() / 1000, self._wake)

    def _now_ms(self) -> int:
        # A timer may fire a little early: it is due by this clock all the same.
        return round(self._loop.time() * 1000)

    def _apply_step(self, step: Step, arrived: Snapshot | None) -> None:
        assert self._core is not None
        assert self._applier is not None
        self._send(step.messages)
        self._note_leadership(step)
        unheard_ids = self._core.unheard_ids
        self._founding.note(unheard_ids, self._now_ms())
        # What a new cluster waits for has been said then.
        self._notice.note(None if self.leader_id is not None or unheard_ids else self._no_leader(), self._now_ms())
        for token in step.dropped_barriers:
            set_exception(_as_future(token), OutcomeUnknown("Leadership was lost."))
        if step.installed is not None:
            self._on_installed(step.installed)
        if arrived is not None:
            self._arrived = arrived
            self._core.on_snapshot_finished(FinishSnapshot(arrived.end_offset, arrived.epoch))
        self._applier.advance(step.commit_end)
        self._applier.add_barriers((end_offset, _as_future(token)) for token, end_offset in step.barriers)
        self._core.trim_to(min(self._saver.memory_start, self._applier.applied_end))
        if step.wants_entry and not self._proposals.has_own:
            # Behind those that wait, whose offsets may have been foretold.
            self._proposals.add(Proposal(b"", self.epoch, None))
        if step.wants_snapshot:
            self._snapshot_reader.ask()
        self._applier.apply_some()

    def _no_leader(self) -> str:
        problem = no_quorum(self._voter_ids, self._contact.unreached_ids(self._now_ms()))
        return problem or "a majority of the voters answers, but has no leader yet"

    def _become_idle(self) -> None:
        self._is_stepping = False
        idle, self._idle = self._idle, []
        for waiter in idle:
            if not waiter.done():
                waiter.set_result(None)

    async def _until_idle(self) -> None:
        """Wait for the end of a step."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._idle.append(waiter)
        await waiter

    def _send(self, messages: Sequence[Addressed]) -> None:
        for peer_id, message in messages:
            self._links.send(peer_id, encode_message(message))

    def _note_leadership(self, step: Step) -> None:
        if (step.leader_id, step.epoch) == (self.leader_id, self.epoch):
            return
        was_leader = self.leader_id == self.node_id
        self._contact.on_leadership(step.leader_id, self._now_ms())
        self.leader_id, self.epoch = step.leader_id, ControllerEpoch(step.epoch)
        self._time_election()
        if was_leader:
            self._proposals.give_up_appended("Leadership was lost.")
        assert self._listener is not None
        self._listener.on_leadership(self.leader_id, self.epoch)

    def _time_election(self) -> None:
        since_ms, now_ms = self._leaderless_since_ms, self._now_ms()
        if self.leader_id is None:
            self._leaderless_since_ms = now_ms if since_ms is None else since_ms
        else:
            self._leaderless_since_ms = None
            if since_ms is not None:
                self.election_times.note(now_ms - since_ms, now_ms)

    def _on_installed(self, installed: FinishSnapshot) -> None:
        snapshot, self._arrived = self._arrived, None
        assert snapshot is not None
        assert snapshot.end_offset == installed.end_offset
        assert self._applier is not None
        self._applier.load(snapshot)
        self.bytes_since_snapshot = 0
        self._proposals.give_up_appended("The entry was replaced by a snapshot.")

    def _offer_snapshot(self, snapshot: Snapshot) -> None:
        """Give the newest snapshot to the peers that need it."""
        if self._core is not None:
            self._core.offer_snapshot(OutgoingSnapshot(snapshot.end_offset, snapshot.epoch, tuple(snapshot.chunks)))

    # The end.

    def _give_up_all(self, reason: str) -> None:
        self._proposals.give_up_all(reason)
        # A step that failed may have had them in hand.
        for done in list(self._begun_barriers):
            set_exception(done, OutcomeUnknown(reason))
        if self._applier is not None:
            self._applier.stop()

    def _fail(self, failure: ConsensusFailed) -> None:
        if self._failure is None:
            self._failure = failure
            self.leader_id = None
            self._give_up_all(str(failure))
            self._disk_jobs.fail_waiting(failure)
            assert self._listener is not None
            self._listener.on_failure(failure)
        self._become_idle()

    async def _on_disk(self, call: Callable[[], object]) -> None:
        """Run a call on the journal in the turn of the disk, and none after a failure."""
        if self._failure is not None:
            raise self._failure
        if self._has_ended:
            raise ConsensusFailed("This node stopped.")
        done = self._disk_jobs.add(call)
        self._wake()
        await done


def _as_future(token: object) -> "asyncio.Future[CommitPosition]":
    assert isinstance(token, asyncio.Future)
    return token
