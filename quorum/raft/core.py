"""One voter without input and output: messages and proposals in, journal items and messages out.

`step` takes what has come and returns a `Step`: what must be on the disk first, what may be sent before that, what
after, and what is committed. The voter that drives it writes, sends and calls back in that order, and makes no step in
between. So nothing leaves that depends on something not synced. A leader's entries do not: they depend on its term
alone, which was synced before, so they go out beside its own write (Raft thesis §10.2.1).

Elections, log matching and the commit rule are the library's (`pysyncobj_engine.py`); who may be heard, and when, is
decided here: every message counts in the sender's term only, each voter's vote once, a copy on a new disk not at all.

checkQuorum: a leader that no majority of voters answered for `election_max_ms` steps down (Raft thesis §6.2; etcd:
`CheckQuorum`, Kafka: `LeaderState.timeUntilCheckQuorumTimerExpires`). The library does that in `tick`.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, assert_never

from ...protocol.ids import NodeId
from .barriers import Barriers
from .consensus import ConsensusFailed, TransferFailed
from .elections import Elections, RaftTiming
from .eligibility import EmptyLogProbe, Rejoins
from .inbox import Heard, PeerGone
from .journal_items import LogEntry, Term
from .leadership_transfer import LeadershipTransfer
from .log import RaftLog
from .messages import (
    Admission,
    Append,
    AppendAck,
    BarrierAck,
    BarrierProbe,
    CensusReply,
    CensusRequest,
    PreVote,
    PreVoteRequest,
    RaftMessage,
    SnapshotAck,
    SnapshotPart,
    TermNotice,
    TimeoutNow,
    Vote,
    VoteRequest,
)
from .progress import Progress
from .pysyncobj_engine import AckIntent, Intent, RaftRules, SendIntent, TimeoutNowIntent, VoteIntent, VoteRequestIntent
from .replicator import Replicator
from .snapshot_transfer import FinishSnapshot, OutgoingSnapshot, SnapshotReceive
from .step import Step

if TYPE_CHECKING:
    from random import Random


class RaftCore:
    """One voter. `now_ms` is the clock of the loop."""

    def __init__(
        self,
        log: RaftLog,
        *,
        node_id: NodeId,
        voter_ids: tuple[NodeId, ...],
        commit_end: int,
        timing: RaftTiming,
        random: "Random",
        now_ms: Callable[[], int],
    ) -> None:
        """`voter_ids` has all voters, this one too. Raises ConsensusFailed when the library cannot be used."""
        self._log = log
        self._node_id = node_id
        self._voter_count = len(voter_ids)
        self._peer_ids = tuple(voter_id for voter_id in voter_ids if voter_id != node_id)
        self._timing = timing
        self._now_ms = now_ms
        self._elections = Elections(
            voter_id=node_id, voter_count=len(voter_ids), timing=timing, random=random, now_ms=now_ms()
        )
        self._disk_incarnation = random.getrandbits(62)
        self._census = EmptyLogProbe(self._disk_incarnation, self._peer_ids)
        self._census_at_ms = now_ms()
        self._admissions = Rejoins()
        self._barriers = Barriers(len(voter_ids))
        self._replicator = Replicator(log, self._peer_ids)
        self._snapshot_receive = SnapshotReceive()
        self._finished_snapshot: FinishSnapshot | None = None
        self._transfer: LeadershipTransfer | None = None
        self._is_transfer = False
        self._step = Step()
        self._next_step_at_ms = now_ms()
        self._rules = RaftRules(
            log,
            node_id=node_id,
            voter_ids=voter_ids,
            commit_end=commit_end,
            listener=self,
            now_ms=now_ms,
            heartbeat_ms=timing.heartbeat_ms,
            check_quorum_ms=timing.election_max_ms,
        )

    # Views.

    @property
    def term(self) -> int:
        return self._rules.term

    @property
    def is_leader(self) -> bool:
        return self._rules.is_leader

    @property
    def is_member(self) -> bool:
        """Whether this voter's disk counts."""
        return self._log.is_member

    @property
    def unheard_ids(self) -> frozenset[NodeId]:
        """The voters that this one, whose disk is empty, waits for before it takes part in a new cluster."""
        return frozenset() if self._log.is_member or self._log.end_offset else self._census.unheard_ids

    @property
    def leader_id(self) -> NodeId | None:
        if self.is_leader:
            return self._node_id
        return None if self._elections.has_lost_leader else self._rules.leader_id

    @property
    def has_fresh_quorum(self) -> bool:
        """Whether this voter leads, and a majority was heard within the time in which voters are sticky."""
        since_ms = self._now_ms() - self._timing.election_min_ms
        fresh_count = sum(peer.is_member and peer.last_ack_ms > since_ms for peer in self._replicator.progress.values())
        return self.is_leader and (fresh_count + 1) * 2 > self._voter_count

    @property
    def holds_proposals(self) -> bool:
        """A leadership transfer is under way (Raft thesis §3.10), so the log must not grow."""
        return self._transfer is not None and self.is_leader

    @property
    def progress(self) -> dict[NodeId, Progress]:
        """What the leader knows of each peer; empty elsewhere."""
        return self._replicator.progress

    def next_step_at_ms(self) -> int:
        """Return when a step is due although nothing came."""
        now_ms = self._now_ms()
        if self.is_leader:
            due_ms = now_ms + self._timing.heartbeat_ms // 2 if self._peer_ids else now_ms + 3_600_000
        elif self.is_member:
            due_ms = self._elections.campaign_at_ms
        else:
            due_ms = self._census_at_ms
        self._next_step_at_ms = due_ms
        return due_ms

    # Inputs.

    def set_link(self, peer_id: NodeId, *, is_up: bool) -> None:
        """Learn that messages to a peer can get through, or cannot any more; what was on the way may be lost."""
        self._replicator.set_link(peer_id, is_up=is_up)
        self._rules.set_links(self._replicator.linked)
        if is_up and not self._log.is_member:
            self._census_at_ms = self._now_ms()

    def begin_barrier(self, token: object) -> None:
        self._barriers.begin(token)

    @property
    def has_new_barriers(self) -> bool:
        """Whether the next step can begin a round for some that came behind the last one."""
        return self._barriers.is_round_due and self._has_committed_own_term

    def begin_transfer(self, peer_id: NodeId | None) -> LeadershipTransfer:
        """Leadership transfer to a peer, or to the one that has the most. Raises TransferFailed if one is under way."""
        if self._transfer is not None:
            raise TransferFailed("A leadership transfer is under way already.")
        self._transfer = LeadershipTransfer(peer_id, now_ms=self._now_ms(), ask_again_ms=self._timing.heartbeat_ms)
        return self._transfer

    def offer_snapshot(self, snapshot: OutgoingSnapshot) -> None:
        """Give what `Step.wants_snapshot` asked for."""
        self._replicator.offer_snapshot(snapshot)

    def on_snapshot_finished(self, finished: FinishSnapshot) -> None:
        """Learn that a snapshot which came from the leader is whole and durable."""
        self._finished_snapshot = finished

    def on_snapshot_given_up(self, step: Step) -> None:
        """Learn that what the step wanted to keep of a snapshot is not on the disk: it has to come anew."""
        self._snapshot_receive = SnapshotReceive()
        step.messages = [addressed for addressed in step.messages if not isinstance(addressed[1], SnapshotAck)]

    def trim_to(self, offset: int) -> None:
        """Forget entries that a durable snapshot has."""
        self._log.trim_to(offset)

    # The step.

    def step(self, inbox: Sequence[tuple[NodeId, Heard]], commands: Sequence[bytes]) -> Step:
        """Take in messages, then proposals, then the time. Raises ConsensusFailed, and then there is no next step."""
        now_ms = self._now_ms()
        step = self._step
        if now_ms - self._next_step_at_ms > self._timing.heartbeat_ms:
            self._elections.on_stall(now_ms)
        for peer_id, message in inbox:
            self._deliver(peer_id, message, now_ms)
        self._install_finished()
        if commands and self.is_leader:
            step.proposed = self._rules.propose(list(commands))
            self._admissions.on_proposed(step.proposed[-1].offset)
        self._take_census(now_ms)
        self._rules.tick()
        self._campaign_if_due(now_ms)
        self._proceed_with_transfer(now_ms)
        self._serve_peers(now_ms)
        self._probe_barriers()
        step.wants_entry = self.is_leader and self._admissions.wants_entry
        step.wants_snapshot = self._replicator.wants_snapshot
        step.barriers = self._barriers.finished()
        step.leader_id, step.epoch = self.leader_id, self.term
        step.commit_end = self._rules.commit_end
        step.items = self._log.take_items()
        if any(isinstance(item, Term) for item in step.items):
            # Even a leader's entries depend on its term.
            step.messages, step.early = step.early + step.messages, []
        self._step = Step()
        return step

    def _send(self, peer_id: NodeId, message: RaftMessage) -> None:
        self._step.messages.append((peer_id, message))

    def _send_to_all(self, message: RaftMessage) -> None:
        for peer_id in self._peer_ids:
            self._send(peer_id, message)

    def _deliver(self, peer_id: NodeId, message: Heard, now_ms: int) -> None:
        match message:
            case PeerGone():
                if not self.is_leader and peer_id == self._rules.leader_id:
                    self._elections.on_leader_gone(now_ms)
            case Append():
                self._on_append(peer_id, message, now_ms)
            case AppendAck():
                self._on_append_ack(peer_id, message, now_ms)
            case VoteRequest():
                if self._log.is_member and (message.is_transfer or not self._elections.is_sticky(now_ms)):
                    self._rules.on_vote_request(
                        peer_id, term=message.term, last_offset=message.last_offset, last_epoch=message.last_epoch
                    )
            case Vote():
                if message.term == self.term and self._elections.on_vote(peer_id):
                    self._rules.on_vote(peer_id)
            case PreVoteRequest():
                self._on_pre_vote_request(peer_id, message, now_ms)
            case PreVote():
                if message.candidate_term == self.term + 1 and self._elections.on_pre_vote(peer_id):
                    self._campaign(now_ms)
            case TermNotice():
                self._observe_term(peer_id, message.term)
            case TimeoutNow():
                if message.term == self.term and peer_id == self._rules.leader_id and self._log.is_member:
                    self._is_transfer = True
                    self._campaign(now_ms)
                    self._is_transfer = False
            case BarrierProbe():
                if message.term == self.term and peer_id == self._rules.leader_id and self._log.is_member:
                    self._send(peer_id, BarrierAck(self.term, message.sequence))
            case BarrierAck():
                if message.term == self.term and self.is_leader:
                    self._barriers.on_ack(peer_id, message.sequence)
            case CensusRequest():
                has_data = self._log.end_offset > 0
                self._send(peer_id, CensusReply(self.term, message.disk_incarnation, has_data))
            case CensusReply():
                self._census.on_reply(peer_id, message)
            case Admission():
                if (
                    message.term == self.term
                    and peer_id == self._rules.leader_id
                    and message.disk_incarnation == self._disk_incarnation
                    and not self._log.is_member
                ):
                    self._log.set_member()
            case SnapshotPart():
                self._on_snapshot_part(peer_id, message, now_ms)
            case SnapshotAck():
                self._on_snapshot_ack(peer_id, message, now_ms)
            case _:
                assert_never(message)

    def _observe_term(self, peer_id: NodeId, term: int) -> None:
        if term > self.term:
            self._rules.on_higher_term(peer_id, term)

    def _is_from_leader(self, peer_id: NodeId, message: Append | SnapshotPart, now_ms: int) -> bool:
        """Hear the leader of this or a later term; one of an earlier term learns of ours instead."""
        if message.term < self.term:
            self._send(peer_id, TermNotice(self.term))
            return False
        if message.term == self.term and self.is_leader:
            raise ConsensusFailed(
                f"Node {peer_id} says that it leads term {message.term} of the quorum as this node does."
            )
        self._elections.on_leader_heard(now_ms)
        return True

    def _on_append(self, peer_id: NodeId, message: Append, now_ms: int) -> None:
        epochs = [message.previous_epoch, *(entry.epoch for entry in message.entries)]
        if epochs != sorted(epochs) or epochs[-1] > message.term or not self._is_from_leader(peer_id, message, now_ms):
            return
        if message.entries or message.previous_offset >= 0:
            self._census.on_data()
        first_offset = message.previous_offset + 1
        entries = [LogEntry(first_offset + number, *body) for number, body in enumerate(message.entries)]
        commit_end = self._rules.commit_end
        if first_offset < commit_end:
            # What is committed here is in every later leader's log, so the message can be taken to begin behind it.
            entries = entries[commit_end - first_offset :]
            first_offset = commit_end
            previous_epoch = self._log.epoch_at(commit_end - 1)
            assert previous_epoch is not None
        else:
            previous_epoch = message.previous_epoch
        self._rules.on_append(
            peer_id,
            term=message.term,
            previous_offset=first_offset - 1,
            previous_epoch=previous_epoch,
            commit_end=message.commit_end,
            entries=entries,
        )

    def _on_append_ack(self, peer_id: NodeId, message: AppendAck, now_ms: int) -> None:
        self._observe_term(peer_id, message.term)
        if message.term != self.term or not self.is_leader:
            return
        next_offset = self._replicator.on_ack(peer_id, message, now_ms)
        if message.is_member:
            self._admissions.on_member(peer_id)
            self._rules.on_ack(peer_id, next_offset=next_offset, is_match=message.is_match)
        else:
            self._admissions.on_ack(peer_id, message.disk_incarnation)
            match_end = self._replicator.progress[peer_id].match_end
            if self._admissions.ready(peer_id, match_end=match_end, commit_end=self._rules.commit_end):
                self._send(peer_id, Admission(self.term, message.disk_incarnation))

    def _on_pre_vote_request(self, peer_id: NodeId, message: PreVoteRequest, now_ms: int) -> None:
        own = (self._log.last_epoch, self._log.end_offset - 1)
        if (
            self._log.is_member
            and message.candidate_term > self.term
            and not self.is_leader
            and not self._elections.is_sticky(now_ms)
            and (message.last_epoch, message.last_offset) >= own
        ):
            self._elections.on_support(now_ms)
            self._send(peer_id, PreVote(self.term, message.candidate_term))
        elif message.term < self.term:
            self._send(peer_id, TermNotice(self.term))

    def _take_census(self, now_ms: int) -> None:
        if self._log.is_member:
            return
        if self._log.end_offset == 0 and self._census.is_new_cluster:
            self._log.set_member()
        elif now_ms >= self._census_at_ms:
            self._census_at_ms = now_ms + self._timing.heartbeat_ms
            if self._log.end_offset == 0:
                self._send_to_all(CensusRequest(self.term, self._disk_incarnation))

    def _campaign_if_due(self, now_ms: int) -> None:
        if self.is_leader or now_ms < self._elections.campaign_at_ms:
            return
        if not self._log.is_member:
            self._elections.on_silence()
        elif self._elections.begin_pre_vote(now_ms):
            self._campaign(now_ms)
        else:
            last_offset, last_epoch = self._log.end_offset - 1, self._log.last_epoch
            self._send_to_all(PreVoteRequest(self.term, self.term + 1, last_offset, last_epoch))

    def _campaign(self, now_ms: int) -> None:
        self._elections.on_campaign(now_ms)
        self._rules.campaign()
        if self.is_leader:
            # A single voter: no answer of another voter commits the first entry.
            self._rules.tick()

    def _proceed_with_transfer(self, now_ms: int) -> None:
        if self._transfer is None:
            return
        if not self.is_leader:
            self._transfer.note_leader(self.leader_id, now_ms)
        else:
            target_id = self._transfer.proceed(
                self.progress,
                self._replicator.linked,
                log_end=self._log.end_offset,
                commit_end=self._rules.commit_end,
                now_ms=now_ms,
            )
            if target_id is not None:
                self._rules.transfer_leadership(target_id)
        if self._transfer.is_done:
            self._transfer = None

    @property
    def _has_committed_own_term(self) -> bool:
        return self._log.epoch_at(self._rules.commit_end - 1) == self.term

    def _probe_barriers(self) -> None:
        if not self.is_leader:
            if not self._barriers.is_idle:
                self._step.dropped_barriers = [*self._step.dropped_barriers, *self._barriers.drop()]
        elif self._has_committed_own_term:
            sequence = self._barriers.start_round(self._rules.commit_end)
            if sequence is not None:
                self._step.early += [(peer_id, BarrierProbe(self.term, sequence)) for peer_id in self._peer_ids]

    def _serve_peers(self, now_ms: int) -> None:
        if not self.is_leader:
            return
        served = self._replicator.serve(term=self.term, commit_end=self._rules.commit_end, now_ms=now_ms)
        self._step.early += served
        sequence = self._barriers.open_sequence
        if sequence is not None:
            # The probe may have been lost.
            self._step.early += [
                (peer_id, BarrierProbe(self.term, sequence)) for peer_id in sorted({to for to, _ in served})
            ]

    def _on_snapshot_ack(self, peer_id: NodeId, message: SnapshotAck, now_ms: int) -> None:
        self._observe_term(peer_id, message.term)
        if message.term == self.term and self.is_leader:
            self._replicator.on_snapshot_ack(peer_id, message, now_ms)

    # What a follower takes.

    def _on_snapshot_part(self, peer_id: NodeId, message: SnapshotPart, now_ms: int) -> None:
        if not self._is_from_leader(peer_id, message, now_ms):
            return
        self._census.on_data()
        self._rules.on_snapshot_notice(peer_id, term=message.term)
        if message.end_offset <= self._rules.commit_end:
            self._send(peer_id, SnapshotAck(self.term, message.end_offset, 0, True))
            self._send(peer_id, self._append_ack(self._rules.commit_end, is_match=True))
            return
        self._step.snapshot_work += self._snapshot_receive.on_part(message)
        self._send(peer_id, self._snapshot_receive.ack(self.term, message.end_offset))

    def _install_finished(self) -> None:
        finished, self._finished_snapshot = self._finished_snapshot, None
        leader_id = self._rules.leader_id
        if finished is None or finished.end_offset <= self._rules.commit_end:
            return
        if self.is_leader or leader_id is None:
            # It stays on the disk, and the next start takes it.
            return
        self._step.installed = finished
        self._rules.on_snapshot_installed(
            leader_id, term=self.term, end_offset=finished.end_offset, epoch=finished.epoch
        )

    def _append_ack(self, next_offset: int, *, is_match: bool) -> AppendAck:
        return AppendAck(self.term, next_offset, is_match, self._log.is_member, self._disk_incarnation)

    # What the library decided.

    def on_intent(self, peer_id: NodeId, intent: Intent) -> None:
        match intent:
            case SendIntent():
                self._replicator.note_due(peer_id)
            case AckIntent():
                next_offset = intent.next_offset
                if intent.is_match and self._step.installed is not None:
                    # What may follow the snapshot in the log was not compared with anyone's.
                    next_offset = min(next_offset, self._step.installed.end_offset)
                if not intent.is_match and next_offset < self._log.end_offset:
                    # A whole epoch back at once: its entries came from one leader, and one of them is wrong.
                    next_offset = max(self._log.epoch_start(next_offset), self._rules.commit_end)
                self._send(peer_id, self._append_ack(next_offset, is_match=intent.is_match))
            case VoteRequestIntent():
                request = VoteRequest(self.term, intent.last_offset, intent.last_epoch, self._is_transfer)
                self._send(peer_id, request)
            case VoteIntent():
                self._elections.on_support(self._now_ms())
                self._send(peer_id, Vote(self.term))
            case TimeoutNowIntent():
                self._send(peer_id, TimeoutNow(self.term))
            case _:
                assert_never(intent)

    def on_role_change(self, *, is_leader: bool) -> None:
        self._admissions.clear()
        if is_leader:
            self._replicator.begin()
        else:
            self._replicator.end()
            self._step.dropped_barriers = [*self._step.dropped_barriers, *self._barriers.drop()]
            self._elections.on_step_down(self._now_ms())
