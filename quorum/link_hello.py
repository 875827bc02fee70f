"""How two voters prove to each other who they are before a link carries anything else.

The side that dials speaks first; each frame is a CBOR array behind its length (`link_frames.py`):

    dialer    PREFACE, then [version, cluster id, node id, directory id, nonce]
    listener  [cluster id, node id, directory id, nonce, proof]
    dialer    [proof]

A proof is the HMAC-SHA256, keyed with the cluster's secret, of everything both sides said before it and of whose proof
it is, so it can be neither replayed nor sent back to who made it. The version is that of the messages, whichever engine
runs them. The nonces are fresh for each link.

PREFACE begins with a byte that no request of Kafka's protocol begins with (its frames begin with a length below 2 GiB).
"""

import hmac
from dataclasses import dataclass
from hashlib import sha256
from typing import Final
from uuid import UUID

import cbor2

from ..protocol.errors import CorruptData
from .raft_messages import MESSAGE_VERSION

PREFACE: Final = b"\xffPSQ1\r\n"
_NONCE_BYTES: Final = 16


class LinkRefused(Exception):  # noqa: N818 - it is an answer, not a fault
    """The other side is not who it must be; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkIdentity:
    """What this voter says of itself, and the secret that it shares with the others."""

    cluster_id: str
    node_id: int
    directory_id: UUID
    secret: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerIdentity:
    """Who is on the other side, proved."""

    node_id: int
    directory_id: UUID


class DialerHello:
    """The dialing side of one link. `nonce` is fresh and random."""

    def __init__(self, identity: LinkIdentity, peer_id: int, nonce: bytes) -> None:
        assert len(nonce) == _NONCE_BYTES
        self._identity = identity
        self._peer_id = peer_id
        self.first = cbor2.dumps(
            [MESSAGE_VERSION, identity.cluster_id, identity.node_id, identity.directory_id.bytes, nonce]
        )

    def on_answer(self, answer: bytes) -> tuple[PeerIdentity, bytes]:
        """Return who answered and the frame that ends the greeting. Raises LinkRefused, CorruptData."""
        match _fields(answer):
            case [str() as cluster_id, int() as node_id, bytes() as directory, bytes() as nonce, bytes() as proof] if (
                len(directory) == 16 and len(nonce) == _NONCE_BYTES
            ):
                pass
            case _:
                raise CorruptData("an answer to the greeting that is none")
        identity = self._identity
        if cluster_id != identity.cluster_id:
            raise LinkRefused(f"it belongs to cluster {cluster_id!r:.60}, this node to {identity.cluster_id!r}")
        if node_id != self._peer_id:
            raise LinkRefused(f"it is node {node_id} where node {self._peer_id} was expected")
        said = cbor2.dumps([self.first, cluster_id, node_id, directory, nonce])
        if not hmac.compare_digest(proof, _proof(identity.secret, b"listener", said)):
            raise LinkRefused("it does not know the secret of the cluster")
        peer = PeerIdentity(node_id=node_id, directory_id=UUID(bytes=directory))
        return peer, cbor2.dumps([_proof(identity.secret, b"dialer", said)])


class ListenerHello:
    """The side that was dialed. `nonce` is fresh and random."""

    def __init__(self, identity: LinkIdentity, peer_ids: frozenset[int], nonce: bytes) -> None:
        assert len(nonce) == _NONCE_BYTES
        self._identity = identity
        self._peer_ids = peer_ids
        self._nonce = nonce
        self._said = b""
        self._peer: PeerIdentity | None = None

    def on_first(self, first: bytes) -> bytes:
        """Return the answer. Raises LinkRefused, CorruptData."""
        match _fields(first):
            case [int() as version, str() as cluster_id, int() as node_id, bytes() as directory, bytes() as nonce] if (
                len(directory) == 16 and len(nonce) == _NONCE_BYTES
            ):
                pass
            case _:
                raise CorruptData("a greeting that is none")
        identity = self._identity
        if version != MESSAGE_VERSION:
            raise LinkRefused(f"it speaks version {version} of the quorum's messages, this node {MESSAGE_VERSION}")
        if cluster_id != identity.cluster_id:
            raise LinkRefused(f"it belongs to cluster {cluster_id!r:.60}, this node to {identity.cluster_id!r}")
        if node_id not in self._peer_ids:
            raise LinkRefused(f"it says that it is node {node_id}, which is no other voter")
        answer = [identity.cluster_id, identity.node_id, identity.directory_id.bytes, self._nonce]
        self._said = cbor2.dumps([first, *answer])
        self._peer = PeerIdentity(node_id=node_id, directory_id=UUID(bytes=directory))
        return cbor2.dumps([*answer, _proof(identity.secret, b"listener", self._said)])

    def on_proof(self, last: bytes) -> PeerIdentity:
        """Return who dialed. Raises LinkRefused, CorruptData."""
        assert self._peer is not None
        match _fields(last):
            case [bytes() as proof]:
                if hmac.compare_digest(proof, _proof(self._identity.secret, b"dialer", self._said)):
                    return self._peer
                raise LinkRefused("it does not know the secret of the cluster")
            case _:
                raise CorruptData("a proof that is none")


def _proof(secret: bytes, side: bytes, said: bytes) -> bytes:
    return hmac.digest(secret, side + b"\0" + said, sha256)


def _fields(data: bytes) -> list[object]:
    try:
        fields = cbor2.loads(data)
    except (cbor2.CBORDecodeError, ValueError, TypeError, OverflowError, RecursionError, MemoryError) as error:
        raise CorruptData(f"a greeting that is no CBOR: {error!r:.100}") from error
    if not isinstance(fields, list):
        raise CorruptData("a greeting that is no array")
    return fields
