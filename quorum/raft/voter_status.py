"""The quorum as its leader sees it (KIP-595, DescribeQuorum)."""

from collections.abc import Mapping
from uuid import UUID

from ...protocol.ids import ControllerEpoch, NodeId
from .consensus import QuorumStatus, VoterStatus
from .peer_contact import PeerContact
from .progress import NEVER_MS, Progress

_UNKNOWN_DIRECTORY = UUID(int=0)


def quorum_status(
    *,
    node_id: NodeId,
    voter_ids: tuple[NodeId, ...],
    directory_ids: Mapping[NodeId, UUID],
    leader_id: NodeId | None,
    epoch: ControllerEpoch,
    high_watermark: int,
    log_end_offset: int,
    progress: Mapping[NodeId, Progress],
    contact: PeerContact,
    now_ms: int,
    wall_ms: int,
) -> QuorumStatus:
    """DescribeQuorum state. Unless this node leads, other voters' offsets are -1, and their last fetch is the last
    message that came from them. Times are wall-clock ms, -1 when unknown.
    """

    def wall_time_ms(time_ms: int) -> int:
        return -1 if time_ms == NEVER_MS else wall_ms - (now_ms - time_ms)

    voters = []
    for voter_id in voter_ids:
        peer = progress.get(voter_id)
        is_self = voter_id == node_id
        heard_ms = contact.heard_ms(voter_id)
        fetched_ms = (NEVER_MS if heard_ms is None else heard_ms) if peer is None else peer.last_ack_ms
        voters.append(
            VoterStatus(
                replica_id=voter_id,
                directory_id=directory_ids.get(voter_id, _UNKNOWN_DIRECTORY),
                log_end_offset=log_end_offset if is_self else -1 if peer is None else peer.match_end,
                last_fetch_timestamp_ms=wall_time_ms(fetched_ms),
                last_caught_up_timestamp_ms=-1 if peer is None else wall_time_ms(peer.last_caught_up_ms),
            )
        )
    return QuorumStatus(
        leader_id=leader_id,
        epoch=epoch,
        high_watermark=high_watermark,
        voters=tuple(voters),
        unreached_ids=contact.unreached_ids(now_ms),
    )
