"""What one replica knows of its partition's leadership and high watermark: rules only, no log and no file.

The shell (`hosted_partition.py`) owns the log, reports what happened to it, and carries out the effects in the order
given. A replica is in one of these states:

    state     entered by        left by
    idle      creation          become_leader
    leader    become_leader     resign (another leader, none, or the partition is leaving this node)
    idle      resign            become_leader

The in-sync set is this replica alone: the high watermark is its own log end, as far as that counts (`on_log_end`).
"""

from dataclasses import dataclass
from typing import TypeAlias

from ...protocol.errors import ErrorCode

NO_LEADER = -1
NO_EPOCH = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class StartEpoch:
    """The log must note that `leader_epoch` starts at `start_offset`, before anything is appended (KIP-101)."""

    leader_epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvanceHighWatermark:
    """Records below `to` may be read and acknowledged: whoever waits for them is looked at again."""

    to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseWaiting:
    """Requests that wait on this leadership end now; the outcome of their appends is not known here any more."""


Effect: TypeAlias = StartEpoch | AdvanceHighWatermark | ReleaseWaiting


class Partition:
    """Leadership, epochs and high watermark of one replica.

    Leader epoch, partition epoch and high watermark never fall.
    """

    __slots__ = (
        "high_watermark",
        "is_leader",
        "leader_epoch",
        "leader_epoch_start_offset",
        "leader_id",
        "log_end_offset",
        "partition_epoch",
    )

    def __init__(self, *, high_watermark: int) -> None:
        self.is_leader = False
        self.leader_id = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.leader_epoch_start_offset = 0
        # End of the log as far as it counts: with `flush.messages` only what is synced (see `on_log_end`).
        self.log_end_offset = high_watermark
        self.high_watermark = high_watermark

    def become_leader(
        self, *, leader_id: int, leader_epoch: int, partition_epoch: int, log_end_offset: int
    ) -> tuple[Effect, ...]:
        """This replica leads from `leader_epoch` on; `log_end_offset` is where its log ends now, synced or not.

        A registration older than the one known changes nothing, the same one again neither.
        """
        if partition_epoch < self.partition_epoch or leader_epoch < self.leader_epoch:
            return ()
        effects: list[Effect] = []
        if leader_epoch > self.leader_epoch:
            if self.is_leader:
                effects.append(ReleaseWaiting())
            effects.append(StartEpoch(leader_epoch=leader_epoch, start_offset=log_end_offset))
            self.leader_epoch_start_offset = log_end_offset
        self.is_leader = True
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        # What was appended in an earlier epoch of this leader may still wait for its sync.
        if self.on_log_end(self.log_end_offset):
            effects.append(AdvanceHighWatermark(to=self.high_watermark))
        return tuple(effects)

    def resign(self, *, leader_id: int, leader_epoch: int, partition_epoch: int) -> tuple[Effect, ...]:
        """Another replica leads, or none (`NO_LEADER`)."""
        if partition_epoch < self.partition_epoch or leader_epoch < self.leader_epoch:
            return ()
        was_leader = self.is_leader
        self.is_leader = False
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        return (ReleaseWaiting(),) if was_leader else ()

    def on_log_end(self, log_end_offset: int) -> bool:
        """The log now counts up to `log_end_offset` (exclusive); True when the high watermark moved.

        Without `flush.messages` an append counts at once, with it only when it is synced, so that nothing is shown or
        acknowledged that a power loss could take back. Reports may come late and out of order.
        """
        if log_end_offset > self.log_end_offset:
            self.log_end_offset = log_end_offset
        if self.is_leader and self.log_end_offset > self.high_watermark:
            self.high_watermark = self.log_end_offset
            return True
        return False

    def compare_epoch(self, current_leader_epoch: int) -> ErrorCode:
        """What a client is told that believes in `current_leader_epoch` (KIP-320); `NO_EPOCH` believes in nothing."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return ErrorCode.NONE
        if current_leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def check_leader(self, current_leader_epoch: int) -> ErrorCode:
        """`compare_epoch`, and then whether this replica leads at all."""
        error = self.compare_epoch(current_leader_epoch)
        if error is ErrorCode.NONE and not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return error

    @property
    def is_latest_offset_known(self) -> bool:
        """False while the high watermark lags behind the start of this leader's epoch: a client that asked for the
        latest offset could be told one that goes back (KIP-207)."""
        return self.high_watermark >= self.leader_epoch_start_offset
