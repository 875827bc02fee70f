"""Effects that the rules of a replica return and its shell carries out.

The shell keeps the order given, and carries out all of them before the replica's next event.
"""

from dataclasses import dataclass
from typing import TypeAlias

from ....protocol.ids import LeaderEpoch, NodeId
from .in_sync_replicas import IsrProposal


@dataclass(frozen=True, slots=True, kw_only=True)
class StartEpoch:
    """Assign `leader_epoch`, starting at `start_offset`, to the log before any append in it (KIP-101)."""

    leader_epoch: LeaderEpoch
    start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvanceHighWatermark:
    """Records below `to` may be read and acknowledged: recheck the delayed operations that wait for them."""

    to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseWaiting:
    """The leader epoch ended: complete its delayed operations; the results of their appends are unknown here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeIsr:
    """Send AlterPartition with this ISR to the controller, and retry until it answers (KIP-497)."""

    proposal: IsrProposal


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """Fetch from `leader_id`, in its `leader_epoch`, from the log end offset."""

    leader_id: NodeId
    leader_epoch: LeaderEpoch


@dataclass(frozen=True, slots=True, kw_only=True)
class StopFollowing:
    """Stop fetching and discard in-flight responses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteLogStart:
    """A follower's log start offset changed: recheck the delayed DeleteRecords."""


Effect: TypeAlias = (
    StartEpoch | AdvanceHighWatermark | ReleaseWaiting | ProposeIsr | Follow | StopFollowing | NoteLogStart
)
