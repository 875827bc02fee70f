"""What one listener is told about TLS: Apache Kafka's `ssl.…` properties.

A key holds for all listeners, or as `listener.name.<listener>.<key>` for one (KIP-103). Certificates and keys are PEM
(KIP-651), in a file or in the property itself; the stores of Java are refused with a sentence that says how to convert
them. The same properties serve when this node connects to that listener on another one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ...protocol.errors import ConfigError
from .listener_keys import ListenerKeys
from .principal_mapping import PrincipalMapping, parse_principal_mapping

CLIENT_AUTH: Final = "ssl.client.auth"
CIPHER_SUITES: Final = "ssl.cipher.suites"
KEY_PASSWORD: Final = "ssl.key.password"
KEYSTORE_CHAIN: Final = "ssl.keystore.certificate.chain"
KEYSTORE_KEY: Final = "ssl.keystore.key"
KEYSTORE_LOCATION: Final = "ssl.keystore.location"
PRINCIPAL_MAPPING_RULES: Final = "ssl.principal.mapping.rules"
PROTOCOLS: Final = "ssl.enabled.protocols"
TRUSTSTORE_CERTIFICATES: Final = "ssl.truststore.certificates"
TRUSTSTORE_LOCATION: Final = "ssl.truststore.location"
_KEYSTORE_PASSWORD: Final = "ssl.keystore.password"
_KEYSTORE_TYPE: Final = "ssl.keystore.type"
_TRUSTSTORE_PASSWORD: Final = "ssl.truststore.password"
_TRUSTSTORE_TYPE: Final = "ssl.truststore.type"
_ENDPOINT_IDENTIFICATION: Final = "ssl.endpoint.identification.algorithm"
_KEYS: Final = (
    CLIENT_AUTH,
    CIPHER_SUITES,
    KEY_PASSWORD,
    KEYSTORE_CHAIN,
    KEYSTORE_KEY,
    KEYSTORE_LOCATION,
    PRINCIPAL_MAPPING_RULES,
    PROTOCOLS,
    TRUSTSTORE_CERTIFICATES,
    TRUSTSTORE_LOCATION,
    _KEYSTORE_PASSWORD,
    _KEYSTORE_TYPE,
    _TRUSTSTORE_PASSWORD,
    _TRUSTSTORE_TYPE,
    _ENDPOINT_IDENTIFICATION,
)
_TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
_JKS_TO_PKCS12: Final = "`keytool -importkeystore -srckeystore OLD -destkeystore NEW.p12 -deststoretype PKCS12`, then "
_PKCS12_TO_PEM: Final = "`openssl pkcs12 -in NEW.p12 -out NEW.pem`"
_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    """One listener's. Secrets are not shown."""

    listener_name: str
    # Whether the property was set for this listener alone.
    own_keys: frozenset[str]
    # A PEM file with the certificate, those that lead up to its authority, and the private key; or both as PEM texts.
    keystore_location: str | None
    certificate_chain: str | None
    key: str | None = field(repr=False)
    key_password: str | None = field(repr=False)
    # A PEM file of certificates, or their text; neither: those that the machine trusts.
    truststore_location: str | None
    trusted_certificates: str | None
    # Of clients: none, requested or required.
    client_auth: str
    protocols: tuple[str, ...]
    # By the names that Java knows; empty: what OpenSSL does by default.
    cipher_suites: tuple[str, ...]
    # Whether a certificate must name the host that was dialed.
    is_host_checked: bool
    # Who a client is that shows a certificate.
    principal_mapping: PrincipalMapping

    @property
    def has_keystore(self) -> bool:
        return self.keystore_location is not None or self.certificate_chain is not None

    @property
    def has_truststore(self) -> bool:
        return self.truststore_location is not None or self.trusted_certificates is not None

    def key_of(self, base: str) -> str:
        """The name under which a property of this listener was set, or would be for all."""
        return f"{_prefix(self.listener_name)}{base}" if base in self.own_keys else base


def keys_of(listener_name: str) -> tuple[str, ...]:
    """All keys that `read_tls` looks at."""
    return *_KEYS, *(f"{_prefix(listener_name)}{key}" for key in _KEYS)


def read_tls(properties: Mapping[str, str], listener_name: str, *, is_client_auth_inherited: bool = True) -> TlsConfig:
    """`is_client_auth_inherited`: `ssl.client.auth` of all listeners holds for this one. Raises ConfigError."""
    reader = _Reader(properties, listener_name)
    is_client_auth_set = is_client_auth_inherited or reader.key(CLIENT_AUTH) != CLIENT_AUTH
    keystore = reader.text(KEYSTORE_LOCATION)
    chain, key = reader.pem(KEYSTORE_CHAIN), reader.pem(KEYSTORE_KEY)
    truststore, trusted = reader.text(TRUSTSTORE_LOCATION), reader.pem(TRUSTSTORE_CERTIFICATES)
    if keystore is not None or chain is not None or key is not None:
        reader.check_store(_KEYSTORE_TYPE, _KEYSTORE_PASSWORD, f"; {KEY_PASSWORD} is that of the key in it")
    if truststore is not None or trusted is not None:
        reader.check_store(_TRUSTSTORE_TYPE, _TRUSTSTORE_PASSWORD, "")
    reader.check_one(KEYSTORE_LOCATION, KEYSTORE_CHAIN)
    reader.check_one(KEYSTORE_LOCATION, KEYSTORE_KEY)
    reader.check_one(TRUSTSTORE_LOCATION, TRUSTSTORE_CERTIFICATES)
    if (chain is None) is not (key is None):
        given, missing = (KEYSTORE_CHAIN, KEYSTORE_KEY) if key is None else (KEYSTORE_KEY, KEYSTORE_CHAIN)
        raise ConfigError(f"{reader.key(given)} is set, so {reader.key(missing)} must be set too.")
    return TlsConfig(
        listener_name=listener_name,
        own_keys=frozenset(base for base in _KEYS if reader.key(base) != base),
        keystore_location=keystore,
        certificate_chain=chain,
        key=key,
        key_password=reader.text(KEY_PASSWORD),
        truststore_location=truststore,
        trusted_certificates=trusted,
        client_auth=(is_client_auth_set and reader.text(CLIENT_AUTH)) or "none",
        protocols=_protocols(reader),
        cipher_suites=tuple(reader.strings(CIPHER_SUITES)),
        is_host_checked=reader.text(_ENDPOINT_IDENTIFICATION) is not None,
        principal_mapping=parse_principal_mapping(
            reader.key(PRINCIPAL_MAPPING_RULES), reader.text(PRINCIPAL_MAPPING_RULES) or ""
        ),
    )


def check_served(config: TlsConfig) -> None:
    """A listener that this node has, and not only connects to, needs more. Raises ConfigError."""
    if not config.has_keystore:
        raise ConfigError(
            f"Listener {config.listener_name} speaks SSL, so {KEYSTORE_LOCATION}, or {KEYSTORE_CHAIN} and "
            f"{KEYSTORE_KEY}, must be set."
        )
    if config.client_auth != "none" and not config.has_truststore:
        raise ConfigError(
            f"{config.key_of(CLIENT_AUTH)} is {config.client_auth} for listener {config.listener_name}, so "
            f"{TRUSTSTORE_LOCATION} or {TRUSTSTORE_CERTIFICATES} must say which authorities vouch for clients."
        )


class _Reader(ListenerKeys):
    """The listener's own properties over those of all listeners."""

    def pem(self, base: str) -> str | None:
        """PEM whose line breaks may have become blanks on the way into a property. None when it is not set."""
        text = self.text(base)
        if text is None:
            return None
        blocks = [_with_lines(kind, body) for kind, body in _PEM_BLOCK.findall(text)]
        if not blocks:
            raise ConfigError(f"{self.key(base)} must hold PEM, which begins with -----BEGIN, but does not.")
        return "".join(blocks)

    def check_store(self, type_base: str, password_base: str, hint: str) -> None:
        key, kind = self.key(type_base), self.text(type_base) or ""
        if kind.upper() != "PEM":
            default = "" if self.is_set(type_base) else " by default"
            steps = (_JKS_TO_PKCS12 if kind.upper() == "JKS" else "") + _PKCS12_TO_PEM
            raise ConfigError(f"{key} is {kind}{default}, but only PEM is read here: convert it ({steps}) and set PEM.")
        if self.text(password_base) is not None:
            raise ConfigError(f"{self.key(password_base)} is set, but a PEM store has no password{hint}.")

    def check_one(self, one: str, other: str) -> None:
        if self.text(one) is not None and self.text(other) is not None:
            raise ConfigError(f"Only one of {self.key(one)} and {self.key(other)} may be set.")


def _protocols(reader: _Reader) -> tuple[str, ...]:
    named = tuple(reader.strings(PROTOCOLS)) or _TLS_VERSIONS
    for name in named:
        if name not in _TLS_VERSIONS:
            raise ConfigError(f"{reader.key(PROTOCOLS)} holds {name}, but only {' and '.join(_TLS_VERSIONS)} are safe.")
    return named


def _prefix(listener_name: str) -> str:
    return f"listener.name.{listener_name.lower()}."


def _with_lines(kind: str, body: str) -> str:
    """One block. The headers of an old encrypted key stay as they are."""
    if ":" not in body:
        packed = "".join(body.split())
        body = "\n" + "".join(f"{packed[start : start + 64]}\n" for start in range(0, len(packed), 64))
    return f"-----BEGIN {kind}-----{body}-----END {kind}-----\n"
