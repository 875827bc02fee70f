"""The leader's state in one leader epoch: its followers, their progress and the ISR.

It starts without any follower's progress, because log end offsets of another epoch prove nothing about the present
ones; members of the ISR have a whole `replica.lag.time.max.ms` for their first fetch.
"""

from typing import Protocol

from ....protocol.batches import NO_OFFSET
from ....protocol.errors import ErrorCode
from ....protocol.ids import NO_BROKER_EPOCH, NO_LEADER_EPOCH, NO_PARTITION_EPOCH, BrokerEpoch, NodeId
from ....quorum.metadata.image import PartitionRegistration
from ....quorum.metadata.records import DIRECTORY_LOST
from .follower_progress import NEVER_MS, FollowerProgress
from .in_sync_replicas import InSyncReplicas, IsrProposal

AWAIT_METADATA = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
"""AlterPartition errors that a retry cannot cure: the metadata changed, perhaps by this very proposal, and arrive soon.
"""
NOT_DONE = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
"""AlterPartition errors by which the epochs were right and nothing changed. An earlier copy of the same proposal, lost
with its connection, may arrive after this response, when the replica is eligible again: until that copy is fenced, the
change may still be made."""


class Brokers(Protocol):
    """The leader's view of the brokers of the cluster."""

    def may_join(self, broker_id: NodeId, broker_epoch: BrokerEpoch) -> bool:
        """True if neither fenced nor shutting down, and the broker epoch is current (KIP-841, KIP-903).

        Kafka: `Partition.isReplicaIsrEligible`.
        """

    def is_stale(self, broker_id: NodeId, broker_epoch: BrokerEpoch) -> bool:
        """True if the broker has registered again with a higher broker epoch."""

    def is_alive(self, broker_id: NodeId) -> bool: ...


class LeaderState:
    """`epoch_start_offset` is the log end offset at the start of this leader epoch."""

    __slots__ = (
        "_brokers",
        "_leader_epoch",
        "_lost",
        "_min_insync_replicas",
        "_node_id",
        "_partition_epoch",
        "_replica_count",
        "epoch_start_offset",
        "followers",
        "is_under_min_isr",
        "isr",
        "lag_ms_max",
    )

    def __init__(
        self,
        *,
        node_id: NodeId,
        brokers: Brokers,
        epoch_start_offset: int,
        lag_ms_max: int,
        min_insync_replicas: int,
    ) -> None:
        self._node_id = node_id
        self._brokers = brokers
        self._leader_epoch = NO_LEADER_EPOCH
        self._partition_epoch = NO_PARTITION_EPOCH
        self._min_insync_replicas = min_insync_replicas
        self._replica_count = 0
        # Replicas whose log is lost or damaged, until their broker assigns them to a directory again.
        self._lost: frozenset[int] = frozenset()
        self.epoch_start_offset = epoch_start_offset
        self.lag_ms_max = lag_ms_max
        self.followers: dict[NodeId, FollowerProgress] = {}
        self.isr = InSyncReplicas()
        # While True, appends with acks=all are refused and the high watermark does not advance (KIP-966).
        self.is_under_min_isr = False

    def register(self, registration: PartitionRegistration, now_ms: int) -> None:
        """Applies a registration of this leader epoch, with a higher partition epoch each time."""
        self._leader_epoch = registration.leader_epoch
        self._partition_epoch = registration.partition_epoch
        self._replica_count = len(registration.replicas)
        self._lost = frozenset(
            replica
            for replica, directory in zip(registration.replicas, registration.directories, strict=True)
            if directory == DIRECTORY_LOST
        )
        known = self.followers
        self.followers = {
            replica: known.get(replica)
            # A replica outside the ISR does not hold back the high watermark before its first fetch.
            or FollowerProgress(replica, last_caught_up_ms=now_ms if replica in registration.isr else NEVER_MS)
            for replica in registration.replicas
            if replica != self._node_id
        }
        self.isr.commit(registration.isr, registration.elr)
        self._note_isr_size()

    def set_min_insync_replicas(self, count: int) -> None:
        self._min_insync_replicas = count
        self._note_isr_size()

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr.committed) < self._replica_count

    @property
    def is_at_min_isr(self) -> bool:
        return len(self.isr.committed) == min(self._min_insync_replicas, self._replica_count)

    @property
    def replica_count(self) -> int:
        return self._replica_count

    def _note_isr_size(self) -> None:
        needed = min(self._min_insync_replicas, self._replica_count)
        self.is_under_min_isr = len(self.isr.committed) < needed

    # The high watermark.

    def committed_end_offset(self, log_end_offset: int, now_ms: int) -> int:
        """Returns the least log end offset of this replica (`log_end_offset`) and of all followers that count.

        NO_OFFSET while the ISR is below min.insync.replicas. Kafka: `Partition.maybeIncrementLeaderHW`.
        """
        if self.is_under_min_isr:
            return NO_OFFSET
        end_offset = log_end_offset
        for follower in self.followers.values():
            if follower.log_end_offset < end_offset and self._counts(follower, log_end_offset, now_ms):
                end_offset = follower.log_end_offset
        return end_offset

    def _counts(self, follower: FollowerProgress, log_end_offset: int, now_ms: int) -> bool:
        if follower.broker_id in self.isr.maximal:
            return True
        # A caught-up follower holds back the high watermark, or it could never reach it and join the ISR.
        return follower.is_caught_up(log_end_offset, now_ms, self.lag_ms_max) and self._may_join(follower)

    def _may_join(self, follower: FollowerProgress) -> bool:
        return (
            follower.broker_epoch is not None
            and follower.broker_id not in self._lost
            and self._brokers.may_join(follower.broker_id, follower.broker_epoch)
        )

    def low_watermark(self, log_start_offset: int) -> int:
        """Returns the least log start offset of the live replicas; `log_start_offset` is this one's (KIP-107).

        Kafka: `Partition.lowWatermarkIfLeader`.
        """
        for follower in self.followers.values():
            if follower.log_start_offset < log_start_offset and self._brokers.is_alive(follower.broker_id):
                log_start_offset = follower.log_start_offset
        return log_start_offset

    # Followers.

    def check_follower(self, replica_id: NodeId, *, has_epoch: bool, broker_epoch: BrokerEpoch) -> ErrorCode:
        """Checks if a replica may fetch as a follower; `has_epoch` is True if its request has this leader epoch."""
        if replica_id not in self.followers:
            # It may know a reassignment that has not reached this replica's metadata: it must retry.
            return ErrorCode.UNKNOWN_LEADER_EPOCH if has_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self._brokers.is_stale(replica_id, broker_epoch):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE

    def proposal_to_join(self, follower: FollowerProgress, high_watermark: int) -> IsrProposal | None:
        """Returns the ISR expansion to propose after a fetch of a replica outside the ISR, or None.

        A log end offset at the high watermark is not enough: records between the high watermark and the start of this
        epoch may have been committed by an earlier leader, and the next leader must have them too.
        Kafka: `Partition.maybeExpandIsr`.
        """
        isr = self.isr
        if (
            isr.pending is not None
            or follower.log_end_offset < high_watermark
            or follower.log_end_offset < self.epoch_start_offset
            or not self._may_join(follower)
        ):
            return None
        return self._propose((*isr.committed, follower.broker_id))

    def proposal_without_lagging(self, log_end_offset: int, now_ms: int) -> IsrProposal | None:
        """Returns the ISR shrink to propose if members lag, or None. Kafka: `Partition.maybeShrinkIsr`."""
        isr = self.isr
        if isr.pending is not None:
            return None
        staying = tuple([replica for replica in isr.committed if not self._lags(replica, log_end_offset, now_ms)])
        return self._propose(staying) if len(staying) < len(isr.committed) else None

    def proposal_to_stay(self) -> IsrProposal:
        """Replaces a refused proposal by the unchanged ISR, so that the partition epoch rises."""
        proposal = self._proposal(self.isr.committed)
        self.isr.propose_instead(proposal)
        return proposal

    def _lags(self, replica_id: NodeId, log_end_offset: int, now_ms: int) -> bool:
        if replica_id == self._node_id:
            return False
        follower = self.followers.get(replica_id)
        return follower is None or not follower.is_caught_up(log_end_offset, now_ms, self.lag_ms_max)

    def _propose(self, replicas: tuple[NodeId, ...]) -> IsrProposal:
        proposal = self._proposal(replicas)
        self.isr.propose(proposal)
        return proposal

    def _proposal(self, replicas: tuple[NodeId, ...]) -> IsrProposal:
        return IsrProposal(
            leader_epoch=self._leader_epoch,
            partition_epoch=self._partition_epoch,
            members=tuple([(replica, self._broker_epoch_of(replica)) for replica in replicas]),
            size_change=len(replicas) - len(self.isr.committed),
        )

    def _broker_epoch_of(self, replica_id: NodeId) -> BrokerEpoch:
        # A member that has not fetched yet may be another process by now; then the controller has removed it from the
        # ISR already and refuses this proposal for its partition epoch. The request carries the leader's own epoch.
        follower = self.followers.get(replica_id)
        if follower is None or follower.broker_epoch is None:
            return NO_BROKER_EPOCH
        return follower.broker_epoch
