"""Effects that the rules of a replica return and its shell carries out.

The shell keeps the order given, and carries out all of them before the replica's next event.
"""

from typing import TypeAlias

from msgspec import Struct

from ....protocol.ids import LeaderEpoch, NodeId
from .in_sync_replicas import IsrProposal


class StartEpoch(Struct, frozen=True, kw_only=True):
    """Assign `leader_epoch`, starting at `start_offset`, to the log before any append in it (KIP-101)."""

    leader_epoch: LeaderEpoch
    start_offset: int


class AdvanceHighWatermark(Struct, frozen=True, kw_only=True):
    """Records below `to` may be read and acknowledged: recheck the delayed operations that wait for them."""

    to: int


class ReleaseWaiting(Struct, frozen=True, kw_only=True):
    """The leader epoch ended: complete its delayed operations; the results of their appends are unknown here."""


class ProposeIsr(Struct, frozen=True, kw_only=True):
    """Send AlterPartition with this ISR to the controller, and retry until it answers (KIP-497)."""

    proposal: IsrProposal


class Follow(Struct, frozen=True, kw_only=True):
    """Fetch from `leader_id`, in its `leader_epoch`, from the log end offset."""

    leader_id: NodeId
    leader_epoch: LeaderEpoch


class StopFollowing(Struct, frozen=True, kw_only=True):
    """Stop fetching and discard in-flight responses."""


class NoteLogStart(Struct, frozen=True, kw_only=True):
    """A follower's log start offset changed: recheck the delayed DeleteRecords."""


Effect: TypeAlias = (
    StartEpoch | AdvanceHighWatermark | ReleaseWaiting | ProposeIsr | Follow | StopFollowing | NoteLogStart
)
