"""What the rules of a replica ask its shell to do: carried out in the order given, before anything else happens to
it."""

from dataclasses import dataclass
from typing import TypeAlias

from .in_sync_replicas import IsrProposal


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeIsr:
    """The controller is to be told who is in sync, again and again until it answers (KIP-497)."""

    proposal: IsrProposal


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """Records are to be fetched from `leader_id`, in its `leader_epoch`, from where the log ends."""

    leader_id: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopFollowing:
    """Nothing is to be fetched any more; what arrives yet must not be appended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteLogStart:
    """A follower has deleted records: whoever waits for that is looked at again."""


Effect: TypeAlias = (
    StartEpoch | AdvanceHighWatermark | ReleaseWaiting | ProposeIsr | Follow | StopFollowing | NoteLogStart
)
