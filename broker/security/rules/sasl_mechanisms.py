"""The mechanisms by which clients of each listener may prove themselves, as the configuration in effect has them."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ....protocol.scram import BY_NAME, ITERATIONS_MIN, ScramMechanism
from ....quorum.metadata.image import MetadataImage
from ....quorum.metadata.security_image import ScramCredential, ScramUser
from ....quorum.permissions.token_settings import DelegationTokenConfig
from ....quorum.permissions.tokens import hmac_of, is_expired
from ...configuration.bearer_config import OAUTHBEARER, BearerConfig
from ...configuration.sasl_config import PLAIN, MechanismConfig, SaslConfig
from .bearer import BearerExchange, VerifyToken, no_tokens
from .bearer_claims import unsigned_verifier
from .decoy_credentials import DecoyCredentials
from .plain import PlainExchange, PlainUsers
from .sasl_exchange import BeginExchange, user
from .scram import ScramExchange, ScramIdentity

_DECOY_KEY_BYTES = 32
_KNOWN_TOKENS = 1_000
"""A credential of each of them takes some milliseconds to compute."""


@dataclass(frozen=True, kw_only=True)
class CredentialSources:
    """Where mechanisms find what clients must know.

    `random_bytes` is for secrets; `tokens` is None where there are no delegation tokens. `cluster_secret`, the same on
    all nodes, lets them agree on what a user is shown who has no credential; without it each node draws that for
    itself.
    """

    image: Callable[[], MetadataImage]
    random_bytes: Callable[[int], bytes]
    wall_clock_ms: Callable[[], int]
    token_verifier: Callable[[BearerConfig], VerifyToken] = lambda _config: no_tokens
    cluster_secret: bytes = b""
    tokens: DelegationTokenConfig | None = None

    @cached_property
    def decoys(self) -> DecoyCredentials:
        """What those are shown whom `find_scram` does not find."""
        secret = self.cluster_secret or self.random_bytes(_DECOY_KEY_BYTES)
        key = hmac.digest(secret, b"SCRAM users that do not exist", "sha256")
        return DecoyCredentials(key, lambda: self.image().scram_credentials)

    def find_scram(self, mechanism: ScramMechanism, name: str, is_token: bool) -> ScramIdentity | None:
        if is_token:
            return self._find_token(mechanism, name)
        credential = self.image().scram_credentials.get(ScramUser(name, mechanism.number))
        return None if credential is None else ScramIdentity(principal=user(name), credential=credential)

    def _find_token(self, mechanism: ScramMechanism, token_id: str) -> ScramIdentity | None:
        config, token = self.tokens, self.image().delegation_tokens.get(token_id)
        if config is None or token is None or is_expired(token, self.wall_clock_ms()):
            return None
        return ScramIdentity(
            principal=token.owner,
            credential=token_credential(mechanism, config.secret_key, token_id),
            is_by_token=True,
            expiry_ms=min(token.expiration_timestamp_ms, token.max_timestamp_ms),
        )


@lru_cache(_KNOWN_TOKENS)
def token_credential(mechanism: ScramMechanism, secret_key: bytes, token_id: str) -> ScramCredential:
    """What a server keeps of the password of a token, which is the base64 form of its HMAC.

    The same on all nodes. Kafka: `DelegationTokenManager.prepareScramCredentials`.
    """
    password = base64.b64encode(hmac_of(secret_key, token_id)).decode()
    salt = hmac.digest(secret_key, f"salt of {mechanism.name} for {token_id}".encode(), "sha256")
    salted = mechanism.salted_password(password, salt, ITERATIONS_MIN)
    return ScramCredential(
        salt=salt,
        stored_key=mechanism.stored_key(salted),
        server_key=mechanism.server_key(salted),
        iterations=ITERATIONS_MIN,
    )


class SaslMechanisms:
    """Of the listeners of one node with SASL. An exchange that has begun goes on as it began."""

    def __init__(self, configs: Mapping[str, SaslConfig], sources: CredentialSources) -> None:
        self._sources = sources
        self._configs: Mapping[str, SaslConfig] = {}
        self._mechanisms: dict[str, dict[str, BeginExchange]] = {}
        self.change(configs)

    def change(self, configs: Mapping[str, SaslConfig]) -> None:
        """Takes over a configuration with other users, mechanisms or times (KIP-226)."""
        self._configs = configs
        self._mechanisms = {
            listener_name: {name: self._make(one) for name, one in config.mechanisms.items()}
            for listener_name, config in configs.items()
        }

    def names(self, listener_name: str) -> tuple[str, ...]:
        """Those that a listener offers; none for a listener without SASL."""
        return tuple(self._mechanisms.get(listener_name, ()))

    def find(self, listener_name: str, mechanism: str) -> BeginExchange | None:
        return self._mechanisms.get(listener_name, {}).get(mechanism)

    def max_reauth_ms(self, listener_name: str, mechanism: str) -> int:
        """How long a session lasts at most; 0: no limit."""
        config = self._configs.get(listener_name)
        one = None if config is None else config.mechanisms.get(mechanism)
        return 0 if one is None else one.max_reauth_ms

    def _make(self, config: MechanismConfig) -> BeginExchange:
        sources = self._sources
        if config.mechanism == PLAIN:
            assert config.jaas is not None, "PLAIN has users"
            users = PlainUsers(config.jaas.options)
            return lambda _context: PlainExchange(users)
        if config.mechanism == OAUTHBEARER:
            bearer = config.bearer
            assert bearer is not None, "OAUTHBEARER is told how tokens are checked"
            verify = (
                unsigned_verifier(bearer, sources.wall_clock_ms)
                if bearer.jwks_url is None
                else sources.token_verifier(bearer)
            )
            return lambda _context: BearerExchange(verify)
        mechanism = BY_NAME[config.mechanism]
        return lambda _context: ScramExchange(mechanism, sources.find_scram, sources.random_bytes, sources.decoys.make)
