"""What the leader of a partition knows in one leader epoch: who follows it, how far, and who of them is in sync.

It begins without a word of the followers, because where they stood in another epoch says nothing of what they have now;
members of the ISR have a whole `replica.lag.time.max.ms` to be heard.
"""

from typing import Protocol

from ....protocol.errors import ErrorCode
from ....quorum.metadata.image import PartitionRegistration
from ....quorum.metadata.records import DIRECTORY_LOST
from .follower_progress import NEVER_MS, FollowerProgress
from .in_sync_replicas import UNKNOWN_BROKER_EPOCH, InSyncReplicas, IsrProposal

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
"""To ask again would be in vain: the metadata have changed, perhaps by this very proposal, and will be here soon."""
NOT_DONE = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
"""The epochs were right and nothing was changed. An earlier copy of the same proposal, given up with its connection,
may arrive behind this answer, when the replica has become eligible again: until it is sure to be refused, the change
may be made."""
NO_OFFSET = -1


class Brokers(Protocol):
    """What a leader knows of the brokers of its cluster."""

    def may_join(self, broker_id: int, broker_epoch: int) -> bool:
        """Neither fenced nor shutting down, and still the process that this epoch was given to (KIP-841, KIP-903)."""

    def is_stale(self, broker_id: int, broker_epoch: int) -> bool:
        """A later process has taken its place."""

    def is_alive(self, broker_id: int) -> bool: ...


class LeaderState:
    """`epoch_start_offset` is where the log ended when this epoch began."""

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
        node_id: int,
        brokers: Brokers,
        epoch_start_offset: int,
        lag_ms_max: int,
        min_insync_replicas: int,
    ) -> None:
        self._node_id = node_id
        self._brokers = brokers
        self._leader_epoch = -1
        self._partition_epoch = -1
        self._min_insync_replicas = min_insync_replicas
        self._replica_count = 0
        # Those whose log is gone or damaged, until they tell that they have one again.
        self._lost: frozenset[int] = frozenset()
        self.epoch_start_offset = epoch_start_offset
        self.lag_ms_max = lag_ms_max
        self.followers: dict[int, FollowerProgress] = {}
        self.isr = InSyncReplicas()
        # With acks=all nothing is taken in while this holds, and nothing is committed (KIP-966).
        self.is_under_min_isr = False

    def register(self, registration: PartitionRegistration, now_ms: int) -> None:
        """The metadata of this leader epoch, of a higher partition epoch each time."""
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
            # Who is not in sync holds up nothing until it is heard.
            or FollowerProgress(replica, last_caught_up_ms=now_ms if replica in registration.isr else NEVER_MS)
            for replica in registration.replicas
            if replica != self._node_id
        }
        self.isr.commit(registration.isr, registration.elr)
        self._note_isr_size()

    def set_min_insync_replicas(self, count: int) -> None:
        self._min_insync_replicas = count
        self._note_isr_size()

    def _note_isr_size(self) -> None:
        needed = min(self._min_insync_replicas, self._replica_count)
        self.is_under_min_isr = len(self.isr.committed) < needed

    # The high watermark.

    def committed_end_offset(self, log_end_offset: int, now_ms: int) -> int:
        """The least log end of this replica, which is `log_end_offset`, and of all others that count; NO_OFFSET while
        nothing may be committed."""
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
        # Without this one that has caught up would never be let in: the high watermark would run away from it.
        return follower.is_caught_up(log_end_offset, now_ms, self.lag_ms_max) and self._may_join(follower)

    def _may_join(self, follower: FollowerProgress) -> bool:
        return (
            follower.broker_epoch is not None
            and follower.broker_id not in self._lost
            and self._brokers.may_join(follower.broker_id, follower.broker_epoch)
        )

    def low_watermark(self, log_start_offset: int) -> int:
        """What is deleted on all replicas that are alive; `log_start_offset` is this one's (KIP-107)."""
        for follower in self.followers.values():
            if follower.log_start_offset < log_start_offset and self._brokers.is_alive(follower.broker_id):
                log_start_offset = follower.log_start_offset
        return log_start_offset

    # Followers.

    def check_follower(self, replica_id: int, *, has_epoch: bool, broker_epoch: int) -> ErrorCode:
        """Whether a replica may fetch as a follower; `has_epoch` tells that it named this leader epoch."""
        if replica_id not in self.followers:
            # It may know of a reassignment that this replica has not heard of: it is to ask again.
            return ErrorCode.UNKNOWN_LEADER_EPOCH if has_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self._brokers.is_stale(replica_id, broker_epoch):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE

    def proposal_to_join(self, follower: FollowerProgress, high_watermark: int) -> IsrProposal | None:
        """What to propose after a fetch of a replica that is not in sync, if anything.

        That it has all that is committed is not enough: between the high watermark and the start of this epoch there
        may be more that was committed, by an earlier leader, and its next leader must have that too.
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
        """What to propose when members have fallen behind."""
        isr = self.isr
        if isr.pending is not None:
            return None
        staying = tuple([replica for replica in isr.committed if not self._lags(replica, log_end_offset, now_ms)])
        return self._propose(staying) if len(staying) < len(isr.committed) else None

    def proposal_to_stay(self) -> IsrProposal:
        """In place of one that was refused: the ISR as it is, so that the partition epoch rises."""
        proposal = self._proposal(self.isr.committed)
        self.isr.propose_instead(proposal)
        return proposal

    def _lags(self, replica_id: int, log_end_offset: int, now_ms: int) -> bool:
        if replica_id == self._node_id:
            return False
        follower = self.followers.get(replica_id)
        return follower is None or not follower.is_caught_up(log_end_offset, now_ms, self.lag_ms_max)

    def _propose(self, replicas: tuple[int, ...]) -> IsrProposal:
        proposal = self._proposal(replicas)
        self.isr.propose(proposal)
        return proposal

    def _proposal(self, replicas: tuple[int, ...]) -> IsrProposal:
        return IsrProposal(
            leader_epoch=self._leader_epoch,
            partition_epoch=self._partition_epoch,
            members=tuple([(replica, self._broker_epoch_of(replica)) for replica in replicas]),
        )

    def _broker_epoch_of(self, replica_id: int) -> int:
        # A member that has not fetched yet may have been replaced by another process; then the controller has taken it
        # out already, and refuses this proposal for its partition epoch. Of the leader itself the request tells.
        follower = self.followers.get(replica_id)
        if follower is None or follower.broker_epoch is None:
            return UNKNOWN_BROKER_EPOCH
        return follower.broker_epoch
