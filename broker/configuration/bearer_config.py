"""What one listener is told about OAUTHBEARER: Apache Kafka's `sasl.oauthbearer.…` properties (KIP-255, KIP-768).

A token is signed with a key that `sasl.oauthbearer.jwks.endpoint.url` tells. Unsigned ones, with which anyone can be
anyone, are taken only where the class of the callback handler, or an option of the login module, says so.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from ...protocol.errors import ConfigError
from ...protocol.jaas import JaasEntry
from .listener_keys import ListenerKeys
from .tls_config import TlsConfig, read_tls

OAUTHBEARER: Final = "OAUTHBEARER"
JWKS_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_REFRESH_MS: Final = "sasl.oauthbearer.jwks.endpoint.refresh.ms"
_BACKOFF_MS: Final = "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"
_BACKOFF_MS_MAX: Final = "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"
_AUDIENCE: Final = "sasl.oauthbearer.expected.audience"
_ISSUER: Final = "sasl.oauthbearer.expected.issuer"
_SCOPE_CLAIM: Final = "sasl.oauthbearer.scope.claim.name"
_SUB_CLAIM: Final = "sasl.oauthbearer.sub.claim.name"
_SKEW_S: Final = "sasl.oauthbearer.clock.skew.seconds"
BEARER_KEYS: Final = (
    JWKS_URL,
    _REFRESH_MS,
    _BACKOFF_MS,
    _BACKOFF_MS_MAX,
    _AUDIENCE,
    _ISSUER,
    _SCOPE_CLAIM,
    _SUB_CLAIM,
    _SKEW_S,
)
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
SECURED_HANDLERS: Final = (
    f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler",
    f"{_PACKAGE}.secured.OAuthBearerValidatorCallbackHandler",
)
UNSECURED_HANDLER: Final = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
_UNSECURED_OPTION: Final = "unsecuredValidator"


class BearerConfig(Struct, frozen=True, kw_only=True):
    """How tokens are checked. Times of a token may be off by `skew_ms`."""

    # None: unsigned tokens.
    jwks_url: str | None
    refresh_ms: int
    backoff_ms: int
    backoff_ms_max: int
    # Of which a token must name one; none: any will do.
    audiences: tuple[str, ...]
    issuer: str | None
    scope_claim: str
    sub_claim: str
    skew_ms: int
    # That an unsigned token must have.
    required_scopes: tuple[str, ...] = ()
    # With which a key set is asked for by https.
    jwks_tls: TlsConfig | None = None


def read_bearer(keys: ListenerKeys, jaas: JaasEntry | None, handler_key: str, handler: str | None) -> BearerConfig:
    """`handler` is the class that the property `handler_key` names. Raises ConfigError."""
    listener_name, url = keys.listener_name, keys.text(JWKS_URL, OAUTHBEARER)
    options = {} if jaas is None else jaas.options
    is_told_unsecured = any(name.startswith(_UNSECURED_OPTION) for name in options)
    if handler not in (None, UNSECURED_HANDLER, *SECURED_HANDLERS):
        raise ConfigError(
            f"{handler_key} can only be {SECURED_HANDLERS[0]} or {UNSECURED_HANDLER}: no other class can be loaded "
            "here."
        )
    if handler == UNSECURED_HANDLER or (handler is None and is_told_unsecured):
        if url is not None:
            raise ConfigError(
                f"Listener {listener_name} is told both {keys.key(JWKS_URL, OAUTHBEARER)} and to take unsigned tokens; "
                "it can be one of them."
            )
        return _unsecured(keys, options)
    if url is None:
        raise ConfigError(
            f"Listener {listener_name} has {OAUTHBEARER}, so {JWKS_URL} must say where the keys of the tokens' issuer "
            f"are; unsigned tokens are taken only where {handler_key} is {UNSECURED_HANDLER}."
        )
    key = keys.key(JWKS_URL, OAUTHBEARER)
    _check_url(key, url)
    return BearerConfig(
        jwks_url=url,
        refresh_ms=_positive(keys, _REFRESH_MS),
        backoff_ms=_positive(keys, _BACKOFF_MS),
        backoff_ms_max=_positive(keys, _BACKOFF_MS_MAX),
        audiences=tuple(filter(None, keys.strings(_AUDIENCE, OAUTHBEARER))),
        issuer=keys.text(_ISSUER, OAUTHBEARER),
        scope_claim=keys.text(_SCOPE_CLAIM, OAUTHBEARER) or "scope",
        sub_claim=keys.text(_SUB_CLAIM, OAUTHBEARER) or "sub",
        skew_ms=1000 * max(keys.integer(_SKEW_S, OAUTHBEARER), 0),
        jwks_tls=_tls(listener_name, options) if urlsplit(url).scheme == "https" else None,
    )


def _tls(listener_name: str, options: Mapping[str, str]) -> TlsConfig:
    """By the login module's options of the names `ssl.…`, as in Kafka's `JaasOptionsUtils`."""
    try:
        return read_tls(options, listener_name)
    except ConfigError as error:
        raise ConfigError(f"The options of {OAUTHBEARER} of listener {listener_name}: {error}") from error


def _unsecured(keys: ListenerKeys, options: Mapping[str, str]) -> BearerConfig:
    skew = options.get("unsecuredValidatorAllowableClockSkewMs", "0")
    if not (skew.isascii() and skew.isdecimal() and len(skew) < 10):
        raise ConfigError(
            f"unsecuredValidatorAllowableClockSkewMs of listener {keys.listener_name} must be a number of milliseconds."
        )
    return BearerConfig(
        jwks_url=None,
        refresh_ms=0,
        backoff_ms=0,
        backoff_ms_max=0,
        audiences=(),
        issuer=None,
        scope_claim=options.get("unsecuredValidatorScopeClaimName", "scope"),
        sub_claim=options.get("unsecuredValidatorPrincipalClaimName", "sub"),
        skew_ms=int(skew),
        required_scopes=tuple(options.get("unsecuredValidatorRequiredScope", "").split()),
    )


def _check_url(key: str, url: str) -> None:
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    is_file = parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path.startswith("/")
    if not is_file and not (parts.scheme in ("http", "https") and parts.hostname):
        raise ConfigError(f"{key} must be the URL of a JSON Web Key Set, https://… or file:///…, but is not.")


def _positive(keys: ListenerKeys, base: str) -> int:
    value = keys.integer(base, OAUTHBEARER)
    if value <= 0:
        raise ConfigError(f"{keys.key(base, OAUTHBEARER)} is {value}, but it is a number of milliseconds above 0.")
    return value
