"""Who a client of the HTTP administration is: by a password, a token or a certificate, as on listeners of Kafka.

`Authorization: Basic` (RFC 7617) has a user and the password of PLAIN or SCRAM, `Bearer` (RFC 6750) a token of
OAUTHBEARER, as far as the listener ADMIN has these mechanisms. A header goes before a certificate. The proof is made
for every request, as HTTP has no sessions; the password of a user of SCRAM that was right is remembered for as long as
the credential stays what it was, because hashing it takes milliseconds.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from functools import cached_property, partial
from typing import Final

from msgspec import Struct

from ...protocol.scram import BY_NAME, ScramMechanism
from ..configuration.admin_listeners import ADMIN
from ..configuration.bearer_config import OAUTHBEARER
from ..configuration.sasl_config import PLAIN
from ..network.peer_log import PeerLog
from ..network.request import ANONYMOUS, RequestContext
from .password_hashing import PasswordHashing
from .rules.authorization_header import BearerToken, read_authorization
from .rules.sasl_exchange import AuthenticationFailed, Proved
from .rules.sasl_mechanisms import CredentialSources, SaslMechanisms
from .rules.scram import ScramIdentity

KNOWN_MAX: Final = 1_000
"""Passwords that are remembered; with one more all are forgotten."""


class Unauthenticated(Exception):  # noqa: N818 - it is an answer, not a fault
    """The message is for the client, and tells nothing of who exists."""


class HttpIdentity(Struct, frozen=True, kw_only=True):
    """What a request has proved."""

    principal: str
    is_by_token: bool = False
    expiry_ms: int | None = None
    """When what it showed ends to be valid, in wall-clock time; None: never."""


class HttpIdentities:
    """Of one node."""

    def __init__(
        self,
        mechanisms: SaslMechanisms,
        sources: CredentialSources,
        peer_log: PeerLog,
        loop: asyncio.AbstractEventLoop,
        *,
        refusal_delay_ms: int,
    ) -> None:
        """`refusal_delay_ms` is `connection.failed.authentication.delay.ms`: guessing is to be slow."""
        self._mechanisms = mechanisms
        self._sources = sources
        self._peer_log = peer_log
        self._hashing = PasswordHashing(loop)
        self._refusal_delay_s = refusal_delay_ms / 1000
        self._known: dict[bytes, ScramIdentity] = {}

    @cached_property
    def _key(self) -> bytes:
        """Under which passwords are remembered; drawn when the first one comes."""
        return self._sources.random_bytes(_KEY_BYTES)

    @property
    def challenges(self) -> tuple[str, ...]:
        """The values of WWW-Authenticate: how a client may prove itself by a header; none where it need not."""
        names = self._mechanisms.names(ADMIN)
        has_passwords = any(name == PLAIN or name in BY_NAME for name in names)
        basic = ('Basic realm="penstock", charset="UTF-8"',) if has_passwords else ()
        return (*basic, 'Bearer realm="penstock"') if OAUTHBEARER in names else basic

    async def identify(
        self, authorization: str | None, certificate_principal: str | None, context: RequestContext
    ) -> HttpIdentity:
        """Raises Unauthenticated, and TooManyLogins when it cannot be told now. `context` says where the client is."""
        if authorization is None:
            if certificate_principal is not None:
                return HttpIdentity(principal=certificate_principal)
            if self.challenges:
                raise Unauthenticated("The request needs a user and a password, or a token.")
            return HttpIdentity(principal=ANONYMOUS)
        if not self.challenges:
            raise Unauthenticated("No user, password or token is known here: send no header Authorization.")
        try:
            proved = await self._prove(authorization, context)
        except AuthenticationFailed as failure:
            self._peer_log.write(
                logging.INFO,
                context.peer_host,
                "Failed authentication: peer=%s listener=%s software=%s reason=%s",
                context.peer_host,
                ADMIN,
                context.client_software,
                failure.reason,
            )
            await asyncio.sleep(self._refusal_delay_s)
            raise Unauthenticated("The user, the password or the token is not right.") from None
        return HttpIdentity(principal=proved.principal, is_by_token=proved.is_by_token, expiry_ms=proved.expiry_ms)

    def close(self) -> None:
        """Ends the thread that hashes."""
        self._hashing.close()

    async def _prove(self, authorization: str, context: RequestContext) -> Proved:
        shown = read_authorization(authorization)
        if isinstance(shown, BearerToken):
            return self._prove_token(shown.token, context)
        return await self._prove_password(shown.name, shown.password, context)

    async def _prove_password(self, name: str, password: str, context: RequestContext) -> Proved:
        plain = self._mechanisms.find(ADMIN, PLAIN)
        if plain is not None:
            try:
                outcome = plain(context).step(f"\0{name}\0{password}".encode())
            except AuthenticationFailed:
                # It may be one of SCRAM's.
                pass
            else:
                assert isinstance(outcome, Proved), "PLAIN has one step"
                return outcome
        scram = [mechanism for mechanism in BY_NAME.values() if self._mechanisms.find(ADMIN, mechanism.name)]
        for mechanism in scram:
            identity = self._sources.find_scram(mechanism, name, False)
            if await self._is_password(mechanism, identity, name, password, context):
                assert identity is not None
                return Proved(principal=identity.principal)
        raise AuthenticationFailed("the user or the password is not right (Basic)")

    async def _is_password(
        self,
        mechanism: ScramMechanism,
        identity: ScramIdentity | None,
        name: str,
        password: str,
        context: RequestContext,
    ) -> bool:
        """Whether it is that user's. For one that does not exist it takes as long as for one that does."""
        digest = hmac.digest(self._key, f"{mechanism.name}\0{name}\0{password}".encode(), "sha256")
        if identity is not None and self._known.get(digest) == identity:
            return True
        decoy = self._sources.decoys.make(mechanism, name, False)
        credential = decoy if identity is None else identity.credential
        salted = await self._hashing.run(
            context.peer_host,
            partial(mechanism.salted_password, password, credential.salt, credential.iterations),
        )
        is_right = hmac.compare_digest(mechanism.stored_key(salted), credential.stored_key)
        if identity is None or not is_right:
            return False
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[digest] = identity
        return True

    def _prove_token(self, token: str, context: RequestContext) -> Proved:
        begin = self._mechanisms.find(ADMIN, OAUTHBEARER)
        if begin is None:
            raise AuthenticationFailed("there is no OAUTHBEARER here")
        exchange = begin(context)
        outcome = exchange.step(f"n,,\x01auth=Bearer {token}\x01\x01".encode())
        if isinstance(outcome, Proved):
            return outcome
        # The client's answer to a refusal: the exchange tells its reason.
        exchange.step(b"\x01")
        raise AssertionError("a refused token proves nothing")


_KEY_BYTES: Final = 32
