"""How far a connection of a SASL listener has proved who its peer is. Kafka: `SaslServerAuthenticator.SaslState`.

| state    | may begin                        | leaves by                                        | to                 |
|----------|----------------------------------|--------------------------------------------------|--------------------|
| initial  | ApiVersions, SaslHandshake       | ApiVersions that is answered                     | versions known     |
| initial  |                                  | SaslHandshake with a mechanism of the listener   | exchange or tokens |
| versions | SaslHandshake                    | SaslHandshake with a mechanism of the listener   | exchange or tokens |
| exchange | SaslAuthenticate                 | the proof                                        | proved             |
| tokens   | frames that are tokens (KIP-43)  | the proof                                        | proved             |
| proved   | everything                       | SaslHandshake, where sessions end (KIP-368)      | exchange or tokens |
| proved   |                                  | the end of the session                           | expired            |
| expired  | SaslHandshake                    | SaslHandshake                                    | exchange or tokens |
| any      |                                  | any other frame, or a proof that is wrong        | failed             |
| failed   | nothing                          | the connection is closed                         |                    |
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from msgspec import Struct

from ....protocol.apis import ApiKey

REAUTHENTICATION_INTERVAL_S: Final = 1.0
"""A session begins to be renewed at most that often; Kafka: `MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS`."""


class SaslState(Enum):
    """Of one connection."""

    INITIAL = auto()
    VERSIONS_KNOWN = auto()
    EXCHANGE = auto()
    TOKENS = auto()
    PROVED = auto()
    EXPIRED = auto()
    FAILED = auto()


_ALLOWED: Final = {
    SaslState.INITIAL: frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
    SaslState.VERSIONS_KNOWN: frozenset({ApiKey.SASL_HANDSHAKE}),
    # The handler has an answer for SaslHandshake, too.
    SaslState.EXCHANGE: frozenset({ApiKey.SASL_AUTHENTICATE, ApiKey.SASL_HANDSHAKE}),
    SaslState.EXPIRED: frozenset({ApiKey.SASL_HANDSHAKE}),
    SaslState.FAILED: frozenset[ApiKey](),
}


class SaslSession(Struct, eq=False):
    """Of one connection: SASL's handlers change it, the connection obeys it."""

    state: SaslState = SaslState.INITIAL
    mechanism: str = ""
    """By which the peer proves itself, or has."""
    principal: str | None = None
    """What it has proved; None before."""
    end_s: float | None = None
    """When the session ends, in the loop's time; None: never."""
    renewal_s: float | None = None
    """When its renewal began last."""
    on_change: Callable[[], None] | None = None
    """Called when the state has changed, by what the connection's requests come to."""

    @property
    def is_renewal(self) -> bool:
        return self.principal is not None

    def allows(self, api_key: int) -> bool:
        """Whether a request may begin; not asked of what is no request, or once the peer is proved."""
        return api_key in _ALLOWED[self.state]

    def on_versions_told(self) -> None:
        if self.state is SaslState.INITIAL:
            self.state = SaslState.VERSIONS_KNOWN

    def can_begin_exchange(self, now_s: float) -> bool:
        """Whether SaslHandshake begins one: always before a proof, afterwards where sessions end and not too often."""
        if self.state in (SaslState.INITIAL, SaslState.VERSIONS_KNOWN):
            return True
        if self.state not in (SaslState.PROVED, SaslState.EXPIRED) or self.end_s is None:
            return False
        return self.renewal_s is None or now_s - self.renewal_s >= REAUTHENTICATION_INTERVAL_S

    def begin_exchange(self, mechanism: str, now_s: float, *, has_headers: bool) -> None:
        if self.is_renewal:
            self.renewal_s = now_s
        self.mechanism = mechanism
        self._become(SaslState.EXCHANGE if has_headers else SaslState.TOKENS)

    def prove(self, principal: str, end_s: float | None) -> None:
        self.principal = principal
        self.end_s = end_s
        self._become(SaslState.PROVED)

    def expire(self) -> None:
        if self.state is SaslState.PROVED:
            self.state = SaslState.EXPIRED

    def fail(self) -> None:
        self._become(SaslState.FAILED)

    def _become(self, state: SaslState) -> None:
        self.state = state
        if self.on_change is not None:
            self.on_change()
