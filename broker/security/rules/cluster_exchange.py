"""PENSTOCK-CLUSTER: a node proves that it is one of this cluster (`peer_proof.py`, decisions 4 and 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....protocol.errors import CorruptData
from ....quorum.links.rules.node_certificates import NodeCertificates
from ....quorum.links.rules.peer_proof import (
    PeerHello,
    PeerRefused,
    check_cluster,
    client_proof,
    decode_hello,
    encode_hello,
    is_same_proof,
    server_proof,
)
from .sasl_exchange import AuthenticationFailed, Proved


class ClusterExchange:
    """It waits first for the peer's hello, then for its proof."""

    def __init__(
        self,
        *,
        secret: bytes,
        certificates: NodeCertificates | None,
        hello: PeerHello,
        peer_certificate: Mapping[str, Any] | None,
    ) -> None:
        """`hello` is this node's, with a nonce of its own."""
        self._secret = secret
        self._certificates = certificates
        self._hello = hello
        self._peer_certificate = peer_certificate
        self._peer: PeerHello | None = None
        self._expected_proof = b""

    def step(self, token: bytes) -> bytes | Proved:
        try:
            return self._proceed(token)
        except (CorruptData, PeerRefused) as error:
            raise AuthenticationFailed(str(error), str(error)) from None

    def _proceed(self, received: bytes) -> bytes | Proved:
        if self._peer is None:
            peer = decode_hello(received)
            check_cluster(self._hello.cluster_id, peer)
            if self._certificates is not None:
                self._certificates.check(peer.node_id, self._peer_certificate)
            own = encode_hello(self._hello)
            self._peer, self._expected_proof = peer, client_proof(self._secret, received, own)
            return server_proof(self._secret, received, own) + own
        node_id = self._peer.node_id
        if not is_same_proof(received, self._expected_proof):
            raise PeerRefused(f"node {node_id} does not know the secret of this cluster")
        return Proved(principal=f"Node:{node_id}", node_id=node_id)
