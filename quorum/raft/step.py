"""What follows from a step of `raft/core.py`."""

from collections.abc import Sequence

from msgspec import Struct, field

from ...protocol.ids import NodeId
from .barriers import BarrierResult
from .journal_items import JournalItem, LogEntry
from .messages import RaftMessage
from .snapshot_transfer import FinishSnapshot, SnapshotWork

Addressed = tuple[NodeId, RaftMessage]


class Step(Struct, kw_only=True):
    """The effects of a step, in order (etcd: `Ready`): send `early` (even while the disk works), do `snapshot_work` and
    write `items`, send `messages`, then report `leadership`, commits, barriers."""

    early: list[Addressed] = field(default_factory=list)
    snapshot_work: list[SnapshotWork] = field(default_factory=list)
    items: list[JournalItem] = field(default_factory=list)
    messages: list[Addressed] = field(default_factory=list)
    proposed: Sequence[LogEntry] | None = None
    """The entries made of the step's proposals, as many; None when this voter did not lead any more."""
    leader_id: NodeId | None = None
    epoch: int = 0
    installed: FinishSnapshot | None = None
    """The state is this snapshot's now."""
    commit_end: int = 0
    barriers: Sequence[BarrierResult] = ()
    dropped_barriers: Sequence[object] = ()
    wants_entry: bool = False
    """An empty command should be proposed soon."""
    wants_snapshot: bool = False
    """A peer needs this node's newest snapshot: `offer_snapshot`."""
