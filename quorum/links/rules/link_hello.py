"""How two voters prove to each other who they are before a link carries anything else (`peer_proof.py`).

The side that dials speaks first; each frame is bytes behind their length (`link_frames.py`), the second CBOR:

    dialer    PREFACE, then its hello
    listener  [its hello, its proof], or the sentence with which it refuses
    dialer    its proof

PREFACE begins with a byte that no request of Kafka's protocol begins with (its frames begin with a length below 2 GiB),
and ends with the version of the messages that follow, whichever engine runs them.
"""

from collections.abc import Callable
from typing import Final
from uuid import UUID

import cbor2

from ....protocol.errors import CorruptData
from ....protocol.ids import NodeId
from ...raft.cbor_errors import CBOR_ERRORS
from ...raft.messages import MESSAGE_VERSION
from .peer_proof import (
    PeerHello,
    PeerRefused,
    check_cluster,
    client_proof,
    decode_hello,
    encode_hello,
    is_same_proof,
    server_proof,
)

PREFACE: Final = b"\xffPSQUORUM%03d" % MESSAGE_VERSION

# What is logged of the other side's reason: anyone may have written it.
_MAX_SENTENCE_LETTERS: Final = 300


class DialerHello:
    """The dialing side of one link. `own` has a fresh nonce."""

    def __init__(self, own: PeerHello, secret: bytes, peer_id: NodeId) -> None:
        self._own = own
        self._secret = secret
        self._peer_id = peer_id
        self.first = encode_hello(own)

    def on_answer(self, answer: bytes) -> tuple[PeerHello, bytes]:
        """Return who answered and the frame that ends the greeting. Raises PeerRefused, CorruptData."""
        encoded, proof = _answer(answer)
        peer = decode_hello(encoded)
        check_cluster(self._own.cluster_id, peer)
        if peer.node_id != self._peer_id:
            raise PeerRefused(f"it is node {peer.node_id} where node {self._peer_id} was expected")
        if not is_same_proof(proof, server_proof(self._secret, self.first, encoded)):
            raise PeerRefused("it does not know the secret of the cluster")
        return peer, client_proof(self._secret, self.first, encoded)


class ListenerHello:
    """The side that was dialed. `own` has a fresh nonce."""

    def __init__(
        self,
        own: PeerHello,
        secret: bytes,
        peer_ids: frozenset[NodeId],
        directory_of: Callable[[NodeId], UUID | None],
        check_certificate: Callable[[PeerHello], None],
    ) -> None:
        """`directory_of` tells whose disk is at the address of a peer now, where that is known; `check_certificate`
        raises PeerRefused."""
        self._own = own
        self._secret = secret
        self._peer_ids = peer_ids
        self._directory_of = directory_of
        self._check_certificate = check_certificate
        self._expected = b""
        self._peer: PeerHello | None = None

    def on_first(self, first: bytes) -> bytes:
        """Return the answer. Raises PeerRefused, CorruptData."""
        peer = decode_hello(first)
        check_cluster(self._own.cluster_id, peer)
        if peer.node_id not in self._peer_ids:
            raise PeerRefused(f"it says that it is node {peer.node_id}, which is no other voter")
        self._check_certificate(peer)
        directory_id = self._directory_of(peer.node_id)
        if directory_id not in (None, peer.directory_id):
            # Two processes under one id would have two votes.
            raise PeerRefused(
                f"it says that it is node {peer.node_id} with directory {peer.directory_id}, but at the address of "
                f"node {peer.node_id} is the one with directory {directory_id}"
            )
        encoded = encode_hello(self._own)
        self._peer = peer
        self._expected = client_proof(self._secret, first, encoded)
        return cbor2.dumps([encoded, server_proof(self._secret, first, encoded)])

    def on_proof(self, proof: bytes) -> PeerHello:
        """Return who dialed. Raises PeerRefused."""
        assert self._peer is not None
        if not is_same_proof(proof, self._expected):
            raise PeerRefused("it does not know the secret of the cluster")
        return self._peer


def encode_refusal(refusal: PeerRefused) -> bytes:
    """Return the frame that tells the dialer why it is turned away."""
    return cbor2.dumps(str(refusal)[:_MAX_SENTENCE_LETTERS])


def _answer(data: bytes) -> tuple[bytes, bytes]:
    try:
        match cbor2.loads(data):
            case [bytes() as encoded, bytes() as proof]:
                return encoded, proof
            case str() as sentence:
                letters = (letter if letter.isprintable() else "?" for letter in sentence[:_MAX_SENTENCE_LETTERS])
                raise PeerRefused(f"it refuses this node: {''.join(letters)}")
    except CBOR_ERRORS as error:
        raise CorruptData(f"an answer to the greeting that is no CBOR: {error!r:.100}") from error
    raise CorruptData("a malformed answer to the greeting")
