"""SaslHandshake 0 to 1 and SaslAuthenticate 0 to 2: clients and nodes prove who they are.

Kafka: `SaslServerAuthenticator`.

SaslHandshake 0: tokens follow without header (KIP-43). 1: in SaslAuthenticate (KIP-152). SaslAuthenticate 1: tells when
the session ends, and the client authenticates again on the same connection before (KIP-368). 2: flexible.

Nodes of the cluster prove themselves on every listener, by `PENSTOCK-CLUSTER`. A listener without SASL has no other
mechanism and answers as Apache Kafka's. What is refused on a listener with SASL is answered after
`connection.failed.authentication.delay.ms`, then the connection is closed: that slows down the guessing of passwords.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.static.primitive import i64Timedelta
from msgspec import Struct

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode
from ...protocol.messages import decode_request, encode_response, kio_error
from ...quorum.links.rules.node_certificates import NodeCertificates
from ...quorum.links.rules.peer_proof import MECHANISM as CLUSTER_MECHANISM
from ...quorum.links.rules.peer_proof import PeerHello
from ..network.handlers import Handlers
from ..network.peer_log import PeerLog
from ..network.request import Request, RequestContext
from ..network.rules.sasl_session import SaslSession, SaslState
from ..network.sasl_connection import NO_VERSION
from ..security.rules.cluster_exchange import ClusterExchange
from ..security.rules.sasl_exchange import AuthenticationFailed, BeginExchange, Proved, SaslExchange
from ..security.rules.sasl_mechanisms import SaslMechanisms

_VERSION_WITH_HEADERS: Final = 1
"""Of SaslHandshake: the tokens that follow come in SaslAuthenticate."""
_SESSION_MS_MAX: Final = 10 * 365 * 86_400_000
"""Longer ones are as good as endless, and timers have a limit."""
_SIZE = struct.Struct(">i")


class SaslDependencies(Struct, frozen=True, kw_only=True):
    """What the handlers are made of. `hello` returns this node's identity with a new nonce each time. Without secret
    and certificates no node can prove itself."""

    mechanisms: SaslMechanisms
    secret: bytes
    certificates: NodeCertificates | None
    hello: Callable[[], PeerHello]
    failed_authentication_delay_ms: int
    peer_log: PeerLog
    loop: asyncio.AbstractEventLoop
    wall_clock_ms: Callable[[], int]


def register(handlers: Handlers, parts: SaslDependencies) -> None:
    authenticator = _Authenticator(parts)
    handlers.add(ApiKey.SASL_HANDSHAKE, authenticator.handshake)
    handlers.add(ApiKey.SASL_AUTHENTICATE, authenticator.authenticate)


@dataclass(slots=True, eq=False)
class _Exchange:
    """In progress on one connection, in its context."""

    mechanism: str
    steps: SaslExchange


class _Authenticator:
    def __init__(self, parts: SaslDependencies) -> None:
        self._parts = parts
        self._mechanisms = parts.mechanisms
        self._has_node_proof = bool(parts.secret) or parts.certificates is not None

    # SaslHandshake.

    def handshake(self, request: Request) -> None:
        message = decode_request(request.api_key, request.api_version, request.body, request.body_offset)
        assert isinstance(message, SaslHandshakeRequest)
        session = request.context.sasl
        if session is None:
            self._begin_of_node(request, message.mechanism)
            return
        now_s = self._parts.loop.time()
        if not session.can_begin_exchange(now_s):
            answer = _handshake(request, ErrorCode.ILLEGAL_SASL_STATE)
            if session.state is SaslState.PROVED:
                request.respond(answer)
            else:
                self._fail(request, session, answer, "SaslHandshake came during an exchange or too soon after the last")
            return
        begin = self._find(request.context, message.mechanism)
        names = self._mechanisms.names(request.context.listener_name)
        if begin is None:
            answer = _handshake(request, ErrorCode.UNSUPPORTED_SASL_MECHANISM, names)
            self._fail(request, session, answer, "Unsupported SASL mechanism")
            return
        steps: SaslExchange = begin(request.context)
        if session.is_renewal and message.mechanism != session.mechanism:
            # As Kafka does: the refusal follows with the first token.
            steps = _AnotherMechanism(session.mechanism, message.mechanism)
        session.begin_exchange(
            session.mechanism if session.is_renewal else message.mechanism,
            now_s,
            has_headers=request.api_version >= _VERSION_WITH_HEADERS,
        )
        request.set_context(replace(request.context, exchange=_Exchange(message.mechanism, steps)))
        request.respond(_handshake(request, ErrorCode.NONE, names or (CLUSTER_MECHANISM,)))

    def _begin_of_node(self, request: Request, mechanism: str) -> None:
        begin = self._find(request.context, mechanism)
        if begin is None:
            # As a Kafka listener without SASL answers; Kafka closes the connection afterwards, and so do clients.
            request.respond(_handshake(request, ErrorCode.ILLEGAL_SASL_STATE))
            return
        request.set_context(replace(request.context, exchange=_Exchange(mechanism, begin(request.context))))
        request.respond(_handshake(request, ErrorCode.NONE, (CLUSTER_MECHANISM,)))

    def _find(self, context: RequestContext, mechanism: str) -> BeginExchange | None:
        if mechanism == CLUSTER_MECHANISM and self._has_node_proof:
            return self._begin_cluster_exchange
        return self._mechanisms.find(context.listener_name, mechanism)

    def _begin_cluster_exchange(self, context: RequestContext) -> SaslExchange:
        return ClusterExchange(
            secret=self._parts.secret,
            certificates=self._parts.certificates,
            hello=self._parts.hello(),
            peer_certificate=context.peer_certificate,
        )

    # SaslAuthenticate, and tokens without it.

    def authenticate(self, request: Request) -> None:
        has_header = request.api_version != NO_VERSION
        if has_header:
            message = decode_request(request.api_key, request.api_version, request.body, request.body_offset)
            assert isinstance(message, SaslAuthenticateRequest)
            token = message.auth_bytes
        else:
            token = bytes(request.body)
        exchange, session = request.context.exchange, request.context.sasl
        if not isinstance(exchange, _Exchange):
            # A connection that has not begun an exchange lets none through where there is SASL.
            is_over = session is not None or request.context.node_id is not None or not self._has_node_proof
            request.respond(
                _answer(
                    request,
                    ErrorCode.ILLEGAL_SASL_STATE,
                    "SaslAuthenticate request received after successful authentication"
                    if is_over
                    else "SaslAuthenticate request received before SaslHandshake",
                )
            )
            return
        try:
            outcome = exchange.steps.step(token)
            if isinstance(outcome, bytes):
                request.respond(
                    _answer(request, ErrorCode.NONE, token=outcome) if has_header else _sized(outcome),
                )
                return
            if session is not None and session.is_renewal and outcome.principal != session.principal:
                sentence = (
                    f"Cannot change principals during re-authentication from {_shown(session.principal)}: "
                    f"{_shown(outcome.principal)}"
                )
                raise AuthenticationFailed(sentence, sentence)
        except AuthenticationFailed as failure:
            self._refuse(request, session, exchange, failure)
            return
        self._prove(request, session, exchange, outcome)

    def _prove(self, request: Request, session: SaslSession | None, exchange: _Exchange, outcome: Proved) -> None:
        lifetime_ms = None
        if session is not None:
            lifetime_ms = self._lifetime_ms(request.context.listener_name, exchange.mechanism, outcome)
            end_s = None if lifetime_ms is None else self._parts.loop.time() + lifetime_ms / 1000
            session.prove(outcome.principal, end_s)
        request.set_context(
            replace(
                request.context,
                principal=outcome.principal,
                is_token_authenticated=outcome.is_by_token,
                node_id=outcome.node_id,
                exchange=None,
            )
        )
        if request.api_version == NO_VERSION:
            request.respond(_sized(outcome.token))
        else:
            request.respond(_answer(request, ErrorCode.NONE, token=outcome.token, lifetime_ms=lifetime_ms or 0))

    def _lifetime_ms(self, listener_name: str, mechanism: str, outcome: Proved) -> int | None:
        """Until the credential ends, or for as long as the configuration lets a session last; None: without end."""
        limits = []
        if outcome.expiry_ms is not None:
            limits.append(max(outcome.expiry_ms - self._parts.wall_clock_ms(), 0))
        max_reauth_ms = self._mechanisms.max_reauth_ms(listener_name, mechanism)
        if max_reauth_ms > 0:
            limits.append(max_reauth_ms)
        return min(*limits, _SESSION_MS_MAX) if limits else None

    # Refusals.

    def _refuse(
        self, request: Request, session: SaslSession | None, exchange: _Exchange, failure: AuthenticationFailed
    ) -> None:
        during = "re-authentication" if session is not None and session.is_renewal else "authentication"
        message = failure.message or (
            f"Authentication failed during {during} due to invalid credentials with SASL mechanism {exchange.mechanism}"
        )
        answer = None
        if request.api_version != NO_VERSION:
            answer = _answer(request, ErrorCode.SASL_AUTHENTICATION_FAILED, message)
        reason = f"{failure.reason} (mechanism {exchange.mechanism})"
        if session is None:
            request.set_context(replace(request.context, exchange=None))
            self._log(request.context, reason)
            assert answer is not None, "tokens without header come where there is a session"
            request.respond(answer)
            return
        self._fail(request, session, answer, reason)

    def _fail(self, request: Request, session: SaslSession, answer: bytes | None, reason: str) -> None:
        """Answers after the delay; then the connection ends itself."""
        session.fail()
        self._log(request.context, reason)
        self._parts.loop.call_later(self._parts.failed_authentication_delay_ms / 1000, request.respond, answer or ())

    def _log(self, context: RequestContext, reason: str) -> None:
        self._parts.peer_log.write(
            logging.INFO,
            context.peer_host,
            "Failed authentication: peer=%s:%d listener=%s client=%s software=%s reason=%s",
            context.peer_host,
            context.peer_port,
            context.listener_name,
            context.client_id,
            context.client_software,
            reason,
        )


class _AnotherMechanism:
    """In place of an exchange by which a session cannot be renewed."""

    def __init__(self, previous: str, asked: str) -> None:
        self._sentence = (
            f"SASL mechanism '{asked}' requested by client is not supported for re-authentication of mechanism "
            f"'{previous}'"
        )

    def step(self, _token: bytes) -> bytes | Proved:
        raise AuthenticationFailed(self._sentence, self._sentence)


def _shown(principal: str | None) -> str:
    """As Kafka's sentence has it: `User.alice`."""
    return (principal or "").replace(":", ".", 1)


def _handshake(request: Request, code: ErrorCode, mechanisms: tuple[str, ...] = ()) -> bytes:
    response = SaslHandshakeResponse(error_code=kio_error(code), mechanisms=mechanisms)
    return encode_response(request.api_key, request.api_version, request.correlation_id, response)


def _answer(
    request: Request, code: ErrorCode, message: str | None = None, *, token: bytes = b"", lifetime_ms: int = 0
) -> bytes:
    response = SaslAuthenticateResponse(
        error_code=kio_error(code),
        error_message=message,
        auth_bytes=token,
        session_lifetime=i64Timedelta.parse(timedelta(milliseconds=lifetime_ms)),
    )
    return encode_response(request.api_key, request.api_version, request.correlation_id, response)


def _sized(token: bytes) -> bytes:
    return _SIZE.pack(len(token)) + token
