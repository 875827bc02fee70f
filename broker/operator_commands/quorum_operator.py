"""Operations on the controllers of a cluster, over the HTTP administration of any node or as a node asks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ...protocol.rest.quorum import SnapshotRequest, TransferRequest

if TYPE_CHECKING:
    from ...client.admin import Admin


class Snapshot(NamedTuple):
    """A snapshot of the metadata on the disk of a controller: all entries below `end_offset`."""

    node_id: int
    file: str
    end_offset: int
    epoch: int


class QuorumOperator(Protocol):
    """Who asks the controllers. Both methods raise ClickException, with one sentence."""

    def transfer(self, target_id: int | None) -> int:
        """The new leader. `target_id` None: the controller that is furthest along."""
        ...

    def take_snapshots(self, node_ids: Sequence[int]) -> tuple[list[Snapshot], list[str]]:
        """The snapshots of these controllers, or of all where none is named, and a sentence for each that failed."""
        ...


class HttpOperator:
    """Asks through the HTTP administration; the caller turns its errors into sentences."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def transfer(self, target_id: int | None) -> int:
        return self._admin.transfer_quorum(TransferRequest(to=target_id)).leader_id

    def take_snapshots(self, node_ids: Sequence[int]) -> tuple[list[Snapshot], list[str]]:
        answer = self._admin.take_quorum_snapshots(SnapshotRequest(node_ids=list(node_ids) or None))
        taken = [Snapshot(one.node_id, one.file, one.end_offset, one.epoch) for one in answer.snapshots]
        return taken, [one.sentence() for one in answer.unanswered]
