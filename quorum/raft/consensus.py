"""The port between the metadata and whatever makes several nodes agree on one log.

An engine keeps one log of commands. Every entry has an offset and an epoch (the term of the leader that proposed it);
no offset is left out. The engine is `voter/voter.py`, alone or with other voters.

What every engine promises:

- A future of `propose` gives its position only after the entry is committed, so: on the disks of a majority, synced.
- Commits are heard in offset order, each once, first the ones kept from earlier runs. `on_commit` of an entry returns
  before the entry's future is done. An empty command is the engine's own no-op entry: the first of each
  epoch is one, and others may follow.
- `on_leadership` for an epoch is heard before any commit of that epoch.
- A command is bytes to the engine; it never looks inside.
- After an error of its disk the engine does nothing more: it calls `on_failure` once and fails all futures.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import UUID

from msgspec import Struct

from ...protocol.ids import ControllerEpoch, NodeId

if TYPE_CHECKING:
    import asyncio

# A larger change is split at transaction records (KIP-868). The bound keeps one entry from holding up heartbeats
# between voters.
MAX_COMMAND_BYTES = 1024 * 1024


class CommitPosition(NamedTuple):
    """Where a committed entry stands."""

    offset: int
    epoch: ControllerEpoch


class NotLeader(Exception):  # noqa: N818 - it is an answer, not a fault
    """This node does not lead the quorum in the epoch the proposal was made for. Nothing was proposed."""

    def __init__(self, leader_id: NodeId | None, epoch: ControllerEpoch) -> None:
        super().__init__(f"the leader of epoch {epoch} is {leader_id}")
        self.leader_id = leader_id
        self.epoch = epoch


class OutcomeUnknown(Exception):  # noqa: N818 - it is an answer, not a fault
    """The proposal may or may not be committed some day: leadership was lost or the engine stopped while it waited."""


class TransferFailed(Exception):  # noqa: N818 - it is an answer, not a fault
    """Leadership was not transferred, or it is not known to whom. The message is one sentence."""


class ConsensusFailed(Exception):  # noqa: N818 - the name says it
    """The engine's disk is damaged or failed. The message is one sentence for the operator; the node must stop."""


def as_failure(error: BaseException) -> ConsensusFailed:
    """Return an error of an engine as the sentence with which the node stops."""
    if isinstance(error, ConsensusFailed):
        return error
    return ConsensusFailed(f"The quorum of this node met a defect of this software and stopped: {error!r}")


class Snapshot(Struct, frozen=True, kw_only=True):
    """The state made by all entries below `end_offset`, as its owner wrote it."""

    end_offset: int
    epoch: ControllerEpoch
    """Epoch of the entry before `end_offset`."""
    chunks: Iterable[bytes]


class VoterStatus(Struct, frozen=True, kw_only=True):
    """What the leader knows about a replica of the log (KIP-595, DescribeQuorum)."""

    replica_id: NodeId
    directory_id: UUID
    log_end_offset: int
    last_fetch_timestamp_ms: int
    last_caught_up_timestamp_ms: int


class QuorumStatus(Struct, frozen=True, kw_only=True):
    """The quorum as this node sees it. `high_watermark` is the end of the committed entries, exclusive."""

    leader_id: NodeId | None
    epoch: ControllerEpoch
    high_watermark: int
    voters: tuple[VoterStatus, ...]
    unreached_ids: frozenset[NodeId] = frozenset()
    """Voters that do not answer this one."""


class ConsensusListener(Protocol):
    """Receives the committed log. Called on the loop, one call at a time; an exception of a call stops the engine."""

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """Replace all state by this one. Commits go on at its end offset."""

    def on_commit(self, offset: int, epoch: ControllerEpoch, command: bytes) -> None:
        """Take in one committed entry; an empty command is a no-op."""

    def on_leadership(self, leader_id: NodeId | None, epoch: ControllerEpoch) -> None:
        """Receive the leader of an epoch; None while it is unknown."""

    def on_failure(self, error: ConsensusFailed) -> None:
        """Learn that this node must stop."""


class Consensus(Protocol):
    """One node's part in the quorum."""

    @property
    def node_id(self) -> NodeId: ...

    @property
    def leader_id(self) -> NodeId | None: ...

    @property
    def epoch(self) -> ControllerEpoch: ...

    @property
    def has_fresh_quorum(self) -> bool:
        """True if this node leads and has processed messages of a majority of voters, itself included, that were sent
        within the time for which they grant no other vote. After a pause of this process that may be long ago: safety
        must not rest on it."""

    @property
    def next_offset(self) -> int:
        """The offset that the next proposal takes if this node leads and goes on leading."""

    @property
    def bytes_since_snapshot(self) -> int:
        """How much a start would have to replay besides the last snapshot."""

    async def start(self, listener: ConsensusListener) -> None:
        """Hear everything committed before, then take part. Raises ConsensusFailed when the disk is damaged."""

    async def stop(self) -> None:
        """Sync what was proposed, fail what cannot be, and let go of the files."""

    def propose(self, command: bytes, *, epoch: ControllerEpoch) -> "asyncio.Future[CommitPosition]":
        """Append a command to the log of the epoch that this node leads.

        Takes 1 to MAX_COMMAND_BYTES bytes. Raises NotLeader; the future raises OutcomeUnknown or ConsensusFailed.
        """

    async def read_barrier(self) -> CommitPosition:
        """Return once everything committed anywhere before the call is heard here. Raises NotLeader, OutcomeUnknown."""

    async def transfer_leadership(self, node_id: NodeId | None) -> NodeId:
        """Let another voter lead, the one that is furthest along when none is named; return who leads now.

        Proposals wait meanwhile, a second or two at most, and are made here after all when it fails. Raises NotLeader,
        TransferFailed, ConsensusFailed.
        """

    async def save_snapshot(self, *, end_offset: int, epoch: ControllerEpoch, chunks: Iterator[bytes]) -> bool:
        """Keep a snapshot durably, then drop the entries below it. Takes one chunk of the iterator per loop turn.

        False: it was given up, because the disk is full or the engine stopped.
        """

    def status(self) -> QuorumStatus: ...
