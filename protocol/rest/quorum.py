"""Bodies of `/v1/quorum`."""

from msgspec import Struct

from .resources import Id


class QuorumReplica(Struct, kw_only=True):
    """A replica of the metadata log. What the leader does not know of it is null.

    Ages are milliseconds before the answer: since its last fetch, and since it had all that the leader had.
    """

    node_id: int
    log_end_offset: int | None
    lag: int | None
    last_fetch_age_ms: int | None
    last_caught_up_age_ms: int | None
    is_leader: bool = False


class Quorum(Struct, kw_only=True):
    """The quorum by its leader's own word; `is_known_by_leader` is false where no leader answered.

    Then `reason` says why, and everything else is what the asked node knows itself: of a voter, that it exists.
    """

    is_known_by_leader: bool
    reason: str | None
    leader_id: int | None
    epoch: int
    high_watermark: int | None
    voters: list[QuorumReplica]
    observers: list[QuorumReplica]


class SnapshotFile(Struct, kw_only=True):
    """A snapshot of the metadata on the disk of a voter: all entries below `end_offset`."""

    node_id: int
    file: str
    end_offset: int
    epoch: int
    size_bytes: int | None


class Unanswered(Struct, kw_only=True):
    """A node that did not do what it was asked."""

    node_id: int
    reason: str

    def sentence(self) -> str:
        """The reason, which names the node in front where it does not itself."""
        node = f"Node {self.node_id}"
        return self.reason if self.reason.startswith(node) else f"{node}: {self.reason}"


class SnapshotList(Struct, kw_only=True):
    snapshots: list[SnapshotFile]
    unanswered: list[Unanswered]


class SnapshotRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which voters write one; null: all."""

    node_ids: list[Id] | None = None


class TransferRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """`to` is a voter; null: the one that is furthest along."""

    to: Id | None = None


class Transferred(Struct, kw_only=True):
    leader_id: int
