"""What one listener is told about SASL: Apache Kafka's `sasl.…` properties.

A key holds for all listeners, for one (`listener.name.<listener>.<key>`), or for one mechanism on it
(`listener.name.<listener>.<mechanism>.<key>`). GSSAPI is not built, and no class of a callback handler can be loaded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from ...protocol.errors import ConfigError
from ...protocol.jaas import JaasEntry, parse_jaas
from ...protocol.scram import BY_NAME
from ...quorum.links.rules.peer_proof import MECHANISM as CLUSTER_MECHANISM
from .bearer_config import BEARER_KEYS, OAUTHBEARER, BearerConfig, read_bearer
from .listener_keys import ListenerKeys

PLAIN: Final = "PLAIN"
MECHANISMS: Final = (PLAIN, *BY_NAME, OAUTHBEARER)
_GSSAPI: Final = "GSSAPI"
_ENABLED_MECHANISMS: Final = "sasl.enabled.mechanisms"
_JAAS_CONFIG: Final = "sasl.jaas.config"
_CALLBACK_HANDLER: Final = "sasl.server.callback.handler.class"
_LOGIN_CALLBACK_HANDLER: Final = "sasl.login.callback.handler.class"
_LOGIN_CLASS: Final = "sasl.login.class"
_MAX_RECEIVE_SIZE: Final = "sasl.server.max.receive.size"
_MAX_REAUTH_MS: Final = "connections.max.reauth.ms"
_OF_LISTENER: Final = (_ENABLED_MECHANISMS, _MAX_RECEIVE_SIZE, _MAX_REAUTH_MS, _CALLBACK_HANDLER)
_OF_MECHANISM: Final = (_JAAS_CONFIG, _MAX_REAUTH_MS, _CALLBACK_HANDLER, _LOGIN_CALLBACK_HANDLER, _LOGIN_CLASS)
_SECURITY: Final = "org.apache.kafka.common.security"
LOGIN_MODULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        PLAIN: f"{_SECURITY}.plain.PlainLoginModule",
        **dict.fromkeys(BY_NAME, f"{_SECURITY}.scram.ScramLoginModule"),
        OAUTHBEARER: f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismConfig:
    """One mechanism of one listener. `jaas` has secrets, which are not shown."""

    mechanism: str
    jaas: JaasEntry | None = field(repr=False)
    # A session ends at the latest after this time; 0: never (KIP-368).
    max_reauth_ms: int
    # Of OAUTHBEARER.
    bearer: BearerConfig | None = None


class SaslConfig(Struct, frozen=True, kw_only=True):
    """One listener's."""

    listener_name: str
    # By name, in the order of sasl.enabled.mechanisms.
    mechanisms: Mapping[str, MechanismConfig]
    # The largest frame that is taken before a client has authenticated.
    max_receive_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Who logs in, in the options of a login module."""

    user: str
    password: str = field(repr=False)


def sasl_keys_of(listener_name: str) -> tuple[str, ...]:
    """All keys that `read_sasl` looks at."""
    keys = ListenerKeys({}, listener_name)
    return (
        *_OF_LISTENER,
        _JAAS_CONFIG,
        *BEARER_KEYS,
        *(f"listener.name.{listener_name.lower()}.{base}" for base in (*_OF_LISTENER, *BEARER_KEYS)),
        *(keys.mechanism_key(base, OAUTHBEARER) for base in BEARER_KEYS),
        *(keys.mechanism_key(base, mechanism) for base in _OF_MECHANISM for mechanism in MECHANISMS),
    )


def read_sasl(properties: Mapping[str, str], listener_name: str) -> SaslConfig:
    """Raises ConfigError."""
    keys = ListenerKeys(properties, listener_name)
    key, names = keys.key(_ENABLED_MECHANISMS), keys.strings(_ENABLED_MECHANISMS)
    choice = " or ".join(MECHANISMS)
    if key not in properties:
        raise ConfigError(
            f"Listener {listener_name} speaks SASL, so {_ENABLED_MECHANISMS} must name {choice}: {_GSSAPI}, the "
            "default, is not built."
        )
    if not names:
        raise ConfigError(f"{key} must name {choice}, because listener {listener_name} speaks SASL.")
    for name in names:
        if name == _GSSAPI:
            raise ConfigError(f"{key} holds {_GSSAPI} (Kerberos), which is not built; it can name {choice}.")
        if name not in MECHANISMS:
            raise ConfigError(f"{key} holds {name}, but can only name {choice}.")
    size = keys.integer(_MAX_RECEIVE_SIZE)
    if size <= 0:
        raise ConfigError(f"{keys.key(_MAX_RECEIVE_SIZE)} is {size}, but it is a number of bytes above 0.")
    return SaslConfig(
        listener_name=listener_name,
        mechanisms=MappingProxyType({name: _mechanism(properties, keys, listener_name, name) for name in names}),
        max_receive_size=size,
    )


def read_login(properties: Mapping[str, str], listener_name: str, mechanism: str) -> Login | None:
    """By which a node logs in at the listener with PLAIN or SCRAM in Apache Kafka; None where that is not said.

    Raises ConfigError.
    """
    jaas = _jaas(properties, ListenerKeys(properties, listener_name), mechanism)
    options = {} if jaas is None else jaas.options
    if not options.get("username") or not options.get("password"):
        return None
    return Login(user=options["username"], password=options["password"])


def check_node_mechanism(key: str, mechanism: str, config: SaslConfig) -> None:
    """Checks what is said about the mechanism of nodes on their listener. Raises ConfigError."""
    if mechanism not in config.mechanisms and mechanism != CLUSTER_MECHANISM:
        raise ConfigError(
            f"{key} is {mechanism}, but listener {config.listener_name} has only {', '.join(config.mechanisms)}; nodes "
            f"need none of them: they prove themselves by {CLUSTER_MECHANISM}."
        )


def _mechanism(
    properties: Mapping[str, str], keys: ListenerKeys, listener_name: str, mechanism: str
) -> MechanismConfig:
    handler_key = keys.key(_CALLBACK_HANDLER, mechanism)
    handler = properties.get(handler_key, "").strip() or None
    if handler is not None and mechanism != OAUTHBEARER:
        raise ConfigError(f"{handler_key} is set, but no class of a callback handler can be loaded here.")
    jaas = _jaas(properties, keys, mechanism)
    if jaas is None and mechanism == PLAIN:
        raise ConfigError(
            f"Listener {listener_name} has {PLAIN}, so {keys.mechanism_key(_JAAS_CONFIG, PLAIN)} must name the users: "
            f'{LOGIN_MODULES[PLAIN]} required user_NAME="password";'
        )
    bearer = None
    if mechanism == OAUTHBEARER:
        own_key = handler_key if handler is not None else keys.mechanism_key(_CALLBACK_HANDLER, mechanism)
        bearer = read_bearer(keys, jaas, own_key, handler)
    max_reauth_ms = max(keys.integer(_MAX_REAUTH_MS, mechanism), 0)
    return MechanismConfig(mechanism=mechanism, jaas=jaas, max_reauth_ms=max_reauth_ms, bearer=bearer)


def _jaas(properties: Mapping[str, str], keys: ListenerKeys, mechanism: str) -> JaasEntry | None:
    """The entry of the mechanism's own key; else that of `sasl.jaas.config` when its module is the mechanism's."""
    module = LOGIN_MODULES[mechanism]
    key = keys.mechanism_key(_JAAS_CONFIG, mechanism)
    if key in properties:
        entry = parse_jaas(key, properties[key])
        if entry.login_module != module:
            raise ConfigError(f"{key} must begin with {module}, the login module of {mechanism}.")
        return entry
    if _JAAS_CONFIG in properties:
        entry = parse_jaas(_JAAS_CONFIG, properties[_JAAS_CONFIG])
        return entry if entry.login_module == module else None
    return None
