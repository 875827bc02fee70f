"""Pending Raft messages: decoded, checked and bounded."""

from typing import TypeAlias

from msgspec import Struct

from ...protocol.errors import CorruptData
from ...protocol.ids import NodeId
from .messages import RaftMessage, decode_message

# More bytes arrive only while a sync takes so long that the disk is broken.
_MAX_BYTES = 64 * 1024 * 1024

# No honest peer is so far ahead, and a leap to the last term there is would leave no term to elect anyone in.
_MAX_TERM_LEAP = 1_000_000


class PeerGone(Struct, frozen=True):
    """A peer closed its links, and its address refuses connections. All that it sent lies before this."""


Heard: TypeAlias = RaftMessage | PeerGone


class Inbox:
    """Pending Raft messages, FIFO, at most 64 MiB."""

    def __init__(self) -> None:
        self._messages: list[tuple[NodeId, Heard]] = []
        self._size_bytes = 0

    @property
    def is_empty(self) -> bool:
        return not self._messages

    def add(self, peer_id: NodeId, data: bytes, *, term: int) -> None:
        """Take a message that came in `term`. Raises CorruptData, with a sentence, when it cannot be one."""
        message = decode_message(data)
        if message.term > term + _MAX_TERM_LEAP:
            raise CorruptData(f"a message of term {message.term} while this node is in term {term}")
        if self._size_bytes > _MAX_BYTES:
            raise CorruptData(f"more than {_MAX_BYTES} bytes while the disk was busy")
        self._messages.append((peer_id, message))
        self._size_bytes += len(data)

    def add_gone(self, peer_id: NodeId) -> None:
        """Adds the end of a peer, behind the messages that it sent before."""
        self._messages.append((peer_id, PeerGone()))

    def take(self) -> list[tuple[NodeId, Heard]]:
        messages, self._messages, self._size_bytes = self._messages, [], 0
        return messages
