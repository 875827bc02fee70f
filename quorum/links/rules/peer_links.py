"""The port between a voter and the network: messages to and from the other voters.

Each link is ordered and delivers at most once; what was sent before it went down may be lost. The far side of a link
was authenticated: it has the cluster's id and proved that it belongs there, as the node that the link is named by.
Forms: `stream_links.py` for real streams, `chaos/simulation` for a network in memory.
"""

from typing import Protocol
from uuid import UUID

from ....protocol.ids import NodeId


class LinkListener(Protocol):
    """Receives the messages of the links; called on the loop."""

    def on_link_up(self, peer_id: NodeId, directory_id: UUID) -> None:
        """Messages to the peer can get through from now on; its journal is in that directory."""

    def on_link_down(self, peer_id: NodeId) -> None:
        """Messages to the peer cannot get through any more; those on the way may be lost."""

    def on_peer_gone(self, peer_id: NodeId) -> None:
        """The peer closed its links and its address has refused every connection since: the process is gone."""

    def on_message(self, peer_id: NodeId, data: bytes) -> None:
        """Take one message. Raises CorruptData: then the link it came by is closed."""


class PeerLinks(Protocol):
    """All links of one voter."""

    def start(self, listener: LinkListener) -> None:
        """Begin to dial, and to let peers in."""

    def send(self, peer_id: NodeId, data: bytes) -> None:
        """Send a message, or drop it when the link is down."""

    async def stop(self) -> None:
        """Close all links."""


class NoLinks:
    """Of the only voter there is."""

    def start(self, _: LinkListener) -> None:
        """A single-voter quorum has no peers."""

    def send(self, peer_id: NodeId, _: bytes) -> None:
        raise AssertionError(f"there is no node {peer_id}")

    async def stop(self) -> None:
        """There is nothing to close."""
