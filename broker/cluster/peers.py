"""Connections from this node to others of its cluster, on which both have proved to be nodes of it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse

from ...client.connection import Connection, connect
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.ids import NodeId
from ...quorum.links.rules.node_certificates import NodeCertificates
from ...quorum.links.rules.peer_proof import (
    MECHANISM,
    PROOF_BYTES,
    PeerHello,
    PeerRefused,
    check_cluster,
    client_proof,
    decode_hello,
    encode_hello,
    is_same_proof,
    server_proof,
)


class PeerConnector:
    """Opens them. `hello` says who this node is, with a new nonce each time; `tls` is asked for each connection.

    With `certificates`, who is at the other end must also be named by the certificate that it shows.
    """

    def __init__(
        self,
        *,
        secret: bytes,
        hello: Callable[[], PeerHello],
        certificates: NodeCertificates | None = None,
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
    ) -> None:
        self._secret = secret
        self._hello = hello
        self._certificates = certificates
        self._tls = tls

    async def connect(
        self, host: str, port: int, *, timeout_ms: int, node_id: NodeId | None = None
    ) -> tuple[Connection, PeerHello]:
        """Returns a connection, and who is at its other end: node `node_id`, if given.

        Raises ConnectionError, TimeoutError or CorruptData when the peer cannot be reached or does not speak the
        protocol, PeerRefused when it is a node of another cluster, knows another secret or shows another certificate.
        `timeout_ms` is for all of it.
        """
        whole = asyncio.timeout(timeout_ms / 1000)
        try:
            async with whole:
                connection = await connect(
                    host, port, client_id=f"node-{self._hello().node_id}", timeout_ms=timeout_ms, tls=self._tls()
                )
                try:
                    peer = await self._prove(connection)
                    if node_id not in (None, peer.node_id):
                        raise ConnectionError(
                            f"node {peer.node_id} is at the address of node {node_id}, {connection.peer}"
                        )
                    return connection, peer
                except BaseException:
                    await connection.close()
                    raise
        except TimeoutError:
            if whole.expired():
                raise TimeoutError(f"{host}:{port} did not prove within {timeout_ms} ms who it is") from None
            raise
        except KafkaError as error:
            # It speaks Kafka, but does not tell its versions, or serves none of what a node is asked.
            raise CorruptData(f"{host}:{port} is no node of a cluster like this: {error}") from None

    async def _prove(self, connection: Connection) -> PeerHello:
        handshake = await connection.call(SaslHandshakeRequest(mechanism=MECHANISM))
        assert isinstance(handshake, SaslHandshakeResponse)
        if handshake.error_code:
            raise PeerRefused(f"{connection.peer} is no node of a cluster with a secret or with certificates")
        own = self._hello()
        own_bytes = encode_hello(own)
        answer = await _exchange(connection, own_bytes)
        proof, peer_bytes = answer[:PROOF_BYTES], answer[PROOF_BYTES:]
        peer = decode_hello(peer_bytes)
        check_cluster(own.cluster_id, peer)
        if self._certificates is not None:
            self._certificates.check(peer.node_id, connection.peer_certificate)
        if not is_same_proof(proof, server_proof(self._secret, own_bytes, peer_bytes)):
            raise PeerRefused(f"node {peer.node_id} at {connection.peer} does not know the secret of this cluster")
        await _exchange(connection, client_proof(self._secret, own_bytes, peer_bytes))
        return peer


async def _exchange(connection: Connection, auth_bytes: bytes) -> bytes:
    answer = await connection.call(SaslAuthenticateRequest(auth_bytes=auth_bytes))
    assert isinstance(answer, SaslAuthenticateResponse)
    if answer.error_code == int(ErrorCode.SASL_AUTHENTICATION_FAILED):
        raise PeerRefused(f"{connection.peer} refuses this node: {answer.error_message}")
    if answer.error_code:
        raise CorruptData(f"{connection.peer} answers the proof of this node with {answer.error_code.name}")
    return answer.auth_bytes
