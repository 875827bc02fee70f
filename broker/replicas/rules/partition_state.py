"""One replica's view of its partition's leadership and high watermark: rules only, no log and no file.

Kafka: `Partition.makeLeader`, `makeFollower`, `maybeShrinkIsr`, `maybeExpandIsr`.

The shell (`partition.py`) owns the log, reports its changes, and carries out the effects in the order given. A replica
is in one of these states:

    state      entered by                          left by
    idle       creation; `register` of no leader   `register` of a leader
    leader     `register` of itself                `register` of another leader, or of none; `leave`
    follower   `register` of another leader        `register` of itself, or of no leader; `leave`

and each leader epoch is a state of its own: a replica that stays leader or follower in a higher epoch starts anew. Only
committed metadata (`register`) change the leader and the ISR; a pending proposal only adds replicas that commits wait
for. Leader epoch and partition epoch never decrease; the high watermark does only when a log is truncated below it,
after an unclean election.
"""

from ....protocol.batches import NO_OFFSET
from ....protocol.errors import ErrorCode
from ....protocol.ids import NO_LEADER_EPOCH, NO_PARTITION_EPOCH, BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch
from ....quorum.metadata.image import PartitionRegistration
from ....quorum.metadata.records import NO_LEADER
from .effects import (
    AdvanceHighWatermark,
    Effect,
    Follow,
    NoteLogStart,
    ProposeIsr,
    ReleaseWaiting,
    StartEpoch,
    StopFollowing,
)
from .follower_progress import FollowerProgress
from .in_sync_replicas import IsrProposal
from .leader_state import AWAIT_METADATA, NOT_DONE, Brokers, LeaderState


class PartitionState:
    __slots__ = (
        "_brokers",
        "_lag_ms_max",
        "_leader_high_watermark",
        "_leader_log_start_offset",
        "_leadership",
        "_min_insync_replicas",
        "_node_id",
        "high_watermark",
        "is_leader",
        "is_replicated",
        "leader_epoch",
        "leader_id",
        "log_end_offset",
        "partition_epoch",
    )

    def __init__(
        self,
        *,
        node_id: NodeId,
        brokers: Brokers,
        high_watermark: int,
        lag_ms_max: int,
        min_insync_replicas: int = 1,
    ) -> None:
        """`lag_ms_max` is `replica.lag.time.max.ms`, `min_insync_replicas` the topic's."""
        self._node_id = node_id
        self._brokers = brokers
        self._lag_ms_max = lag_ms_max
        self._min_insync_replicas = min_insync_replicas
        self._leadership: LeaderState | None = None
        self.is_leader = False
        # True if it leads and has followers: only then `now_ms` of a report matters.
        self.is_replicated = False
        self.leader_id = NO_LEADER
        self.leader_epoch = NO_LEADER_EPOCH
        self.partition_epoch = NO_PARTITION_EPOCH
        # With `flush.messages` only the synced part of the log (see `on_log_end`).
        self.log_end_offset = high_watermark
        self.high_watermark = high_watermark
        # The leader's offsets in this epoch; they may be ahead of this replica's log.
        self._leader_high_watermark = NO_OFFSET
        self._leader_log_start_offset = NO_OFFSET

    @property
    def is_following(self) -> bool:
        return self.leader_id not in (NO_LEADER, self._node_id)

    @property
    def is_under_min_isr(self) -> bool:
        """While True, appends with acks=all are refused and the high watermark does not advance (KIP-966)."""
        return self._leadership is not None and self._leadership.is_under_min_isr

    @property
    def leadership(self) -> LeaderState | None:
        """What it knows of its followers; None if this replica does not lead."""
        return self._leadership

    @property
    def follower_lag(self) -> int:
        """Committed records that this follower lacks, as far as the leader's last response says."""
        return max(0, self._leader_high_watermark - self.log_end_offset)

    @property
    def pending_isr(self) -> IsrProposal | None:
        return None if self._leadership is None else self._leadership.isr.pending

    @property
    def maximal_isr(self) -> frozenset[NodeId]:
        """The maximal ISR, see `in_sync_replicas.py`; empty if this replica does not lead."""
        return frozenset() if self._leadership is None else self._leadership.isr.maximal

    # Events of the metadata.

    def register(self, registration: PartitionRegistration, *, log_end_offset: int, now_ms: int) -> tuple[Effect, ...]:
        """Applies a registration; `log_end_offset` is the end of the log now, synced or not.

        A registration that is not newer changes nothing. Kafka: `Partition.makeLeader`, `Partition.makeFollower`.
        """
        if registration.partition_epoch <= self.partition_epoch or registration.leader_epoch < self.leader_epoch:
            return ()
        is_new_epoch = registration.leader_epoch > self.leader_epoch
        was_following = self.is_following
        effects: list[Effect] = []
        if is_new_epoch and self.leader_epoch != NO_LEADER_EPOCH:
            effects.append(ReleaseWaiting())
        if is_new_epoch:
            self._forget_leaders_offsets()
        self.leader_epoch = registration.leader_epoch
        self.partition_epoch = registration.partition_epoch
        self.leader_id = registration.leader
        if was_following and not self.is_following:
            effects.append(StopFollowing())
        if registration.leader == self._node_id:
            leadership = self._leadership
            if is_new_epoch or leadership is None:
                effects.append(StartEpoch(leader_epoch=self.leader_epoch, start_offset=log_end_offset))
                leadership = self._leadership = LeaderState(
                    node_id=self._node_id,
                    brokers=self._brokers,
                    epoch_start_offset=log_end_offset,
                    lag_ms_max=self._lag_ms_max,
                    min_insync_replicas=self._min_insync_replicas,
                )
            leadership.register(registration, now_ms)
            self.is_leader = True
            self.is_replicated = bool(leadership.followers)
            # Records appended in an earlier epoch of this leader may still wait for their sync.
            effects += self._advanced(now_ms)
        else:
            self._resign()
            if is_new_epoch and self.is_following:
                effects.append(Follow(leader_id=self.leader_id, leader_epoch=self.leader_epoch))
        return tuple(effects)

    def set_min_insync_replicas(self, count: int, now_ms: int) -> tuple[Effect, ...]:
        """Sets the topic's `min.insync.replicas`: a smaller value may let the high watermark advance."""
        self._min_insync_replicas = count
        if self._leadership is None:
            return ()
        self._leadership.set_min_insync_replicas(count)
        return self._advanced(now_ms)

    def leave(self) -> None:
        """The partition leaves this node or goes offline."""
        self.leader_id = NO_LEADER
        self._resign()

    def _resign(self) -> None:
        self._leadership = None
        self.is_leader = self.is_replicated = False

    # Events of the log.

    def on_log_end(self, log_end_offset: int, now_ms: int = 0) -> bool:
        """Advances the log end offset to `log_end_offset`; returns True if the high watermark advanced.

        Without `flush.messages` an append is reported at once, with it only after its sync, so that no record is read
        or acknowledged that a power loss could destroy. Reports may come late and out of order. `now_ms` matters only
        while `is_replicated`.
        """
        if log_end_offset > self.log_end_offset:
            self.log_end_offset = log_end_offset
        return self._advance(now_ms)

    def on_truncated(self, *, log_start_offset: int, log_end_offset: int) -> None:
        """A follower's log was truncated or restarted: sets its new offsets."""
        self.log_end_offset = log_end_offset
        self.high_watermark = max(min(self.high_watermark, log_end_offset), log_start_offset)
        # They belonged to the truncated records.
        self._forget_leaders_offsets()

    # Fetch responses of the leader.

    def on_leader_offsets(self, high_watermark: int, log_start_offset: int) -> bool:
        """Applies the leader's offsets; True if the high watermark advanced, so that consumers read more (KIP-392).

        The high watermark advances at most to the log end offset. The rest is remembered for `on_log_end`: the leader
        sends it only once.
        """
        if self.is_leader:
            return False
        self._leader_high_watermark = high_watermark
        self._leader_log_start_offset = log_start_offset
        return self._advance(0)

    @property
    def deleted_end_offset(self) -> int:
        """The offset below which a follower may delete: deleted on the leader and committed; NO_OFFSET if unknown."""
        return min(self._leader_log_start_offset, self.high_watermark)

    def _forget_leaders_offsets(self) -> None:
        self._leader_high_watermark = self._leader_log_start_offset = NO_OFFSET

    # Fetch requests of followers.

    def check_follower(
        self, replica_id: NodeId, current_leader_epoch: LeaderEpoch, broker_epoch: BrokerEpoch
    ) -> ErrorCode:
        """Checks if a replica may fetch as a follower; returns NONE or the error."""
        error = self.compare_epoch(current_leader_epoch)
        if error is not ErrorCode.NONE:
            return error
        if self._leadership is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        has_epoch = current_leader_epoch != NO_LEADER_EPOCH
        return self._leadership.check_follower(replica_id, has_epoch=has_epoch, broker_epoch=broker_epoch)

    def on_follower_fetch(
        self,
        replica_id: NodeId,
        *,
        fetch_offset: int,
        log_start_offset: int,
        leader_end_offset: int,
        broker_epoch: BrokerEpoch,
        now_ms: int,
    ) -> tuple[Effect, ...]:
        """A follower that passed `check_follower`, and whose log does not diverge, fetches from `fetch_offset`.

        `log_start_offset` is the follower's; `leader_end_offset` is this replica's log end offset before the read.
        Kafka: `Partition.updateFollowerFetchState`.
        """
        leadership = self._leadership
        assert leadership is not None, "followers fetch from leaders"
        follower = leadership.followers[replica_id]
        has_deleted = log_start_offset != follower.log_start_offset
        has_moved = follower.on_fetch(
            fetch_offset=fetch_offset,
            log_start_offset=log_start_offset,
            leader_end_offset=leader_end_offset,
            broker_epoch=broker_epoch,
            now_ms=now_ms,
        )
        effects: tuple[Effect, ...] = (NoteLogStart(),) if has_deleted else ()
        if replica_id not in leadership.isr.committed:
            proposal = leadership.proposal_to_join(follower, self.high_watermark)
            if proposal is not None:
                effects += (ProposeIsr(proposal=proposal),)
        return effects + self._advanced(now_ms) if has_moved else effects

    def on_follower_heard(self, replica_id: NodeId, heard_ms: int) -> None:
        """A follower whose session had the partition idle fetched at `heard_ms`: it was caught up at that time."""
        leadership = self._leadership
        follower = None if leadership is None else leadership.followers.get(replica_id)
        if follower is not None:
            follower.on_heard(heard_ms)

    def is_in_sync(self, replica_id: NodeId) -> bool:
        """True if this replica leads and the committed ISR contains `replica_id`."""
        return self._leadership is not None and replica_id in self._leadership.isr.committed

    def on_follower_sent(self, replica_id: NodeId, offset: int) -> bool:
        """Records from `offset` on are sent to a follower; returns True if their CRC should be checked."""
        follower = None if self._leadership is None else self._leadership.followers.get(replica_id)
        return follower is not None and follower.on_sent(offset)

    def in_sync_followers(self) -> list[FollowerProgress]:
        """Returns the followers in the committed ISR; empty if this replica does not lead."""
        leadership = self._leadership
        if leadership is None:
            return []
        return [leadership.followers[one] for one in leadership.isr.committed if one in leadership.followers]

    def on_time(self, now_ms: int) -> tuple[Effect, ...]:
        """Shrinks the ISR by lagging members; called a few times in each `replica.lag.time.max.ms`.

        Kafka: `Partition.maybeShrinkIsr`.
        """
        leadership = self._leadership
        if leadership is None or not leadership.followers:
            return ()
        proposal = leadership.proposal_without_lagging(self.log_end_offset, now_ms)
        proposed = () if proposal is None else (ProposeIsr(proposal=proposal),)
        # A follower that was about to join the ISR and now lags stops holding back the high watermark.
        return (*proposed, *self._advanced(now_ms))

    def low_watermark(self, log_start_offset: int) -> int:
        """Returns the least log start offset of the live replicas; `log_start_offset` is this one's (KIP-107)."""
        return log_start_offset if self._leadership is None else self._leadership.low_watermark(log_start_offset)

    # AlterPartition responses of the controller.

    def on_isr_changed(self, proposal: IsrProposal, partition_epoch: PartitionEpoch) -> None:
        """The controller changed the ISR, and the metadata will follow; or the ISR was the proposed one already."""
        leadership = self._leadership
        is_unchanged = partition_epoch == proposal.partition_epoch
        if leadership is not None and proposal is leadership.isr.pending and is_unchanged:
            leadership.isr.take_back()

    def on_isr_refused(self, proposal: IsrProposal, error: ErrorCode | None) -> IsrProposal | None:
        """The controller answered with an error, or its answer is unknown (None). Returns the proposal to send next.

        That is the same one, unless only newer metadata help (AWAIT_METADATA); after NOT_DONE it is the unchanged ISR.
        """
        leadership = self._leadership
        if leadership is None or proposal is not leadership.isr.pending or error in AWAIT_METADATA:
            return None
        return leadership.proposal_to_stay() if error in NOT_DONE else proposal

    # The high watermark.

    def _advance(self, now_ms: int) -> bool:
        leadership = self._leadership
        end_offset = self.log_end_offset
        if leadership is None:
            end_offset = min(self._leader_high_watermark, end_offset)
        elif self.is_replicated:
            end_offset = leadership.committed_end_offset(end_offset, now_ms)
        if end_offset <= self.high_watermark:
            return False
        self.high_watermark = end_offset
        return True

    def _advanced(self, now_ms: int) -> tuple[AdvanceHighWatermark, ...]:
        return (AdvanceHighWatermark(to=self.high_watermark),) if self._advance(now_ms) else ()

    # Checks for requests.

    def compare_epoch(self, current_leader_epoch: LeaderEpoch) -> ErrorCode:
        """Fences a client by its `current_leader_epoch` (KIP-320); `NO_LEADER_EPOCH` passes.

        Kafka: `Partition.checkCurrentLeaderEpoch`.
        """
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return ErrorCode.NONE
        if current_leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def check_leader(self, current_leader_epoch: LeaderEpoch) -> ErrorCode:
        """`compare_epoch`, then NOT_LEADER_OR_FOLLOWER if this replica does not lead."""
        error = self.compare_epoch(current_leader_epoch)
        if error is ErrorCode.NONE and not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return error

    @property
    def is_latest_offset_known(self) -> bool:
        """False while the high watermark is below the start offset of this leader epoch: ListOffsets could return a
        latest offset lower than an earlier one (KIP-207)."""
        return self._leadership is None or self.high_watermark >= self._leadership.epoch_start_offset
