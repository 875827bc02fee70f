"""SaslHandshake 0 to 1 and SaslAuthenticate 0 to 2: authentication of the other nodes of the cluster.

The one mechanism, `PENSTOCK-CLUSTER` (`links/rules/peer_proof.py`), is for nodes: clients have none yet and get Apache
Kafka's errors for a listener without SASL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse

from ...protocol.apis import ApiKey
from ...protocol.errors import CorruptData, ErrorCode
from ...protocol.messages import decode_request, encode_response, kio_error
from ...quorum.links.rules.node_certificates import NodeCertificates
from ...quorum.links.rules.peer_proof import (
    MECHANISM,
    PeerHello,
    PeerRefused,
    check_cluster,
    client_proof,
    decode_hello,
    encode_hello,
    is_same_proof,
    server_proof,
)
from ..network.handlers import Handlers
from ..network.request import Request


@dataclass(slots=True)
class PeerExchange:
    """State of the exchange on a connection: it waits first for the peer's hello, then for its proof."""

    peer: PeerHello | None = None
    expected_proof: bytes = b""


def register(
    handlers: Handlers, *, secret: bytes, certificates: NodeCertificates | None, hello: Callable[[], PeerHello]
) -> None:
    """`hello` returns this node's identity with a new nonce each time. Without secret and certificates no peer can
    authenticate."""
    has_proof = bool(secret) or certificates is not None

    def handshake(request: Request) -> None:
        message = decode_request(request.api_key, request.api_version, request.body, request.body_offset)
        assert isinstance(message, SaslHandshakeRequest)
        if message.mechanism != MECHANISM or not has_proof:
            # As a Kafka listener without SASL answers; Kafka closes the connection afterwards, and so do clients.
            response = SaslHandshakeResponse(error_code=kio_error(ErrorCode.ILLEGAL_SASL_STATE))
        else:
            request.set_context(replace(request.context, exchange=PeerExchange()))
            response = SaslHandshakeResponse(error_code=kio_error(ErrorCode.NONE), mechanisms=(MECHANISM,))
        request.respond(encode_response(request.api_key, request.api_version, request.correlation_id, response))

    def authenticate(request: Request) -> None:
        message = decode_request(request.api_key, request.api_version, request.body, request.body_offset)
        assert isinstance(message, SaslAuthenticateRequest)
        exchange = request.context.exchange
        if not isinstance(exchange, PeerExchange):
            _answer(
                request,
                SaslAuthenticateResponse(
                    error_code=kio_error(ErrorCode.ILLEGAL_SASL_STATE),
                    error_message="SaslAuthenticate request received after successful authentication"
                    if request.context.node_id is not None or not has_proof
                    else "SaslAuthenticate request received before SaslHandshake",
                    auth_bytes=b"",
                ),
            )
            return
        try:
            auth_bytes = _proceed(request, exchange, message.auth_bytes, secret, certificates, hello)
        except (CorruptData, PeerRefused) as error:
            request.set_context(replace(request.context, exchange=None))
            _answer(
                request,
                SaslAuthenticateResponse(
                    error_code=kio_error(ErrorCode.SASL_AUTHENTICATION_FAILED), error_message=str(error), auth_bytes=b""
                ),
            )
        else:
            _answer(
                request,
                SaslAuthenticateResponse(
                    error_code=kio_error(ErrorCode.NONE), error_message=None, auth_bytes=auth_bytes
                ),
            )

    handlers.add(ApiKey.SASL_HANDSHAKE, handshake)
    handlers.add(ApiKey.SASL_AUTHENTICATE, authenticate)


def _proceed(
    request: Request,
    exchange: PeerExchange,
    received: bytes,
    secret: bytes,
    certificates: NodeCertificates | None,
    hello: Callable[[], PeerHello],
) -> bytes:
    if exchange.peer is None:
        peer, own = decode_hello(received), hello()
        check_cluster(own.cluster_id, peer)
        if certificates is not None:
            certificates.check(peer.node_id, request.context.peer_certificate)
        own_bytes = encode_hello(own)
        exchange.peer, exchange.expected_proof = peer, client_proof(secret, received, own_bytes)
        return server_proof(secret, received, own_bytes) + own_bytes
    if not is_same_proof(received, exchange.expected_proof):
        raise PeerRefused(f"node {exchange.peer.node_id} does not know the secret of this cluster")
    node_id = exchange.peer.node_id
    request.set_context(replace(request.context, node_id=node_id, principal=f"Node:{node_id}", exchange=None))
    return b""


def _answer(request: Request, response: SaslAuthenticateResponse) -> None:
    request.respond(encode_response(request.api_key, request.api_version, request.correlation_id, response))
