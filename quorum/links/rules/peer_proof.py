"""How two nodes prove to each other that they are of one cluster: both know its secret, and neither ever says it.

    client → server   hello: who I am, and a nonce
    server → client   hello, and HMAC(secret, "server", both hellos)
    client → server   HMAC(secret, "client", both hellos)

Both hellos, with both nonces, are under both proofs: nothing can be replayed, and a man in the middle cannot change the
identities. Later bytes are not protected by this: TLS is for that.
"""

import hmac
from typing import Final
from uuid import UUID

import cbor2
from msgspec import Struct

from ....protocol.errors import CorruptData
from ....protocol.ids import NodeId
from ...raft.cbor_errors import CBOR_ERRORS

MECHANISM: Final = "PENSTOCK-CLUSTER"
"""The SASL mechanism under which nodes exchange these proofs on listeners of Kafka's protocol."""
NONCE_BYTES: Final = 32
# Both sides refuse a higher one: what is said between nodes may then mean something else.
PROTOCOL_VERSION: Final = 1

_DIGEST: Final = "sha256"
PROOF_BYTES: Final = 32
# Bounds for input of unauthenticated peers, and for what log lines and answers quote of it.
_MAX_HELLO_BYTES: Final = 512
_MAX_NODE_ID: Final = 2**31 - 1
_MAX_CLUSTER_ID_LETTERS: Final = 128


class PeerHello(Struct, frozen=True, kw_only=True):
    """Who a node is. Its cluster is None as long as it belongs to none, its directory that of its metadata log."""

    node_id: NodeId
    directory_id: UUID
    cluster_id: str | None
    nonce: bytes
    version: int = PROTOCOL_VERSION


class PeerRefused(Exception):  # noqa: N818 - it is an answer, not a fault
    """The other side is not a node of this cluster. The message is one sentence."""


def encode_hello(hello: PeerHello) -> bytes:
    return cbor2.dumps([hello.version, hello.node_id, hello.directory_id.bytes, hello.cluster_id, hello.nonce])


def decode_hello(data: bytes) -> PeerHello:
    """Raises CorruptData for malformed bytes, PeerRefused for an unknown version."""
    if len(data) > _MAX_HELLO_BYTES:
        raise CorruptData(f"expected the hello of a node, found {len(data)} bytes")
    try:
        items = cbor2.loads(data)
    except CBOR_ERRORS as error:
        raise CorruptData(f"expected the hello of a node: {error!r:.100}") from error
    match items:
        case [int() as version, *_] if version != PROTOCOL_VERSION:
            raise PeerRefused(f"it speaks version {version} between nodes, this node version {PROTOCOL_VERSION}")
        case [
            int() as version,
            int() as node_id,
            bytes() as directory_id,
            str() | None as cluster_id,
            bytes() as nonce,
        ]:
            if (
                len(directory_id) == 16
                and len(nonce) == NONCE_BYTES
                and type(node_id) is int
                and 0 <= node_id <= _MAX_NODE_ID
                and (cluster_id is None or _is_cluster_id(cluster_id))
            ):
                return PeerHello(
                    version=version,
                    node_id=NodeId(node_id),
                    directory_id=UUID(bytes=directory_id),
                    cluster_id=cluster_id,
                    nonce=nonce,
                )
    raise CorruptData(f"expected the hello of a node, found {data[:40].hex()}")


def _is_cluster_id(text: str) -> bool:
    """Whether a log line may have it in it."""
    return len(text) <= _MAX_CLUSTER_ID_LETTERS and text.isascii() and text.isprintable()


def server_proof(secret: bytes, client_hello: bytes, server_hello: bytes) -> bytes:
    return _proof(secret, b"server", client_hello, server_hello)


def client_proof(secret: bytes, client_hello: bytes, server_hello: bytes) -> bytes:
    return _proof(secret, b"client", client_hello, server_hello)


def is_same_proof(one: bytes, other: bytes) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(one, other)


def check_cluster(own: str | None, peer: PeerHello) -> None:
    """Raise PeerRefused when a peer belongs to another cluster; one that belongs to none yet may join."""
    if own is not None and peer.cluster_id is not None and peer.cluster_id != own:
        raise PeerRefused(f"node {peer.node_id} belongs to cluster {peer.cluster_id}, this node to cluster {own}")


def _proof(secret: bytes, side: bytes, client_hello: bytes, server_hello: bytes) -> bytes:
    message = b"".join((side, len(client_hello).to_bytes(4, "big"), client_hello, server_hello))
    return hmac.digest(secret, message, _DIGEST)
