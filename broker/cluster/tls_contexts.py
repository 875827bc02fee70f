"""Keys and certificates as OpenSSL has them, and new ones without a restart.

A connection takes the context that is there when it begins; those that are open keep theirs. Files are looked at every
`CHECK_S`, and at once when a dynamic config of TLS changes (KIP-226). What cannot be loaded changes nothing: it is
logged once, and the old certificates serve on, because a program that renews them may be between two files.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import ssl
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from ...protocol.errors import ConfigError
from ...storage.disk.disk_calls import nameless_file
from ...storage.disk.files import Files
from ..configuration.tls_config import (
    CIPHER_SUITES,
    KEY_PASSWORD,
    KEYSTORE_CHAIN,
    KEYSTORE_KEY,
    KEYSTORE_LOCATION,
    TRUSTSTORE_CERTIFICATES,
    TRUSTSTORE_LOCATION,
    TlsConfig,
)
from .rules.certificate_validity import expiry_s

CHECK_S: Final = 5.0
"""How long after a file changed new connections use it, at the latest."""
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
# TLS 1.3 has suites of its own, which OpenSSL chooses apart from the others.
_TLS_1_3_SUITES: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})

logger = logging.getLogger(__name__)


class _Loaded(Struct, frozen=True, kw_only=True):
    config: TlsConfig
    digest: bytes
    """Of the files that it was made of."""
    server: ssl.SSLContext | None
    client: ssl.SSLContext
    expiry_s: int | None
    """When the first certificate of its own chain ends to be valid, in seconds since 1970; None without a chain."""


class TlsContexts:
    """By listener name. Make it, and the files are read: blocking, for the start of a node.

    `change` and `watch` run in the loop and read in its executor.
    """

    def __init__(self, configs: Mapping[str, TlsConfig], files: Files, loop: asyncio.AbstractEventLoop) -> None:
        """Raises ConfigError."""
        self._configs = configs
        self._files = files
        self._loop = loop
        self._loaded = {name: _load(config, files) for name, config in configs.items()}
        self._refreshing: asyncio.Task[None] | None = None
        self._said = ""

    def server(self, listener_name: str) -> Callable[[], ssl.SSLContext] | None:
        """Asked for each connection that is accepted there; None for a listener without TLS."""
        if listener_name not in self._configs:
            return None

        def current() -> ssl.SSLContext:
            context = self._loaded[listener_name].server
            assert context is not None, f"listener {listener_name} has no certificate"
            return context

        return current

    def client(self, listener_name: str) -> Callable[[], ssl.SSLContext | None]:
        """Asked for each connection to that listener of another node."""
        return lambda: self._loaded[listener_name].client if listener_name in self._configs else None

    def expiries(self) -> Mapping[str, int]:
        """By listener name, when the first certificate of its chain ends to be valid: seconds since 1970."""
        return {name: loaded.expiry_s for name, loaded in self._loaded.items() if loaded.expiry_s is not None}

    def change(self, configs: Mapping[str, TlsConfig]) -> None:
        """From now on these, for the same listeners, once they are loaded."""
        self._configs = {name: configs.get(name, config) for name, config in self._configs.items()}
        if self._configs:
            self._refreshing = self._loop.create_task(self.refresh())

    def check(self, configs: Mapping[str, TlsConfig]) -> None:
        """Raises ConfigError when what changed in them could not be loaded. Blocks for a few small files."""
        for name, config in self._configs.items():
            if configs.get(name, config) != config:
                _load(configs[name], self._files)

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(CHECK_S)
            await self.refresh()

    async def refresh(self) -> None:
        """Load what has changed."""
        for name in self._configs:
            try:
                loaded = await self._loop.run_in_executor(None, self._load_changed, name)
            except ConfigError as error:
                if str(error) != self._said:
                    self._said = str(error)
                    logger.error("Failed to reload certificates: listener=%s reason=%s", name, error)
                continue
            if loaded is not None:
                self._said = ""
                self._loaded[name] = loaded
                logger.info("Reloaded certificates: listener=%s", name)

    def _load_changed(self, name: str) -> _Loaded | None:
        config, old = self._configs[name], self._loaded[name]
        if config == old.config and _digest(config, self._files) == old.digest:
            return None
        return _load(config, self._files)


def _load(config: TlsConfig, files: Files) -> _Loaded:
    # Taken first: what changes while the files are loaded is loaded once more.
    digest = _digest(config, files)
    server = None
    if config.has_keystore:
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # Every connection is a full handshake, which looks at the certificates that are valid now.
        server.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
        server.num_tickets = 0
        server.verify_mode = _CLIENT_AUTH[config.client_auth]
        _set_up(server, config, files)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = config.is_host_checked
    _set_up(client, config, files)
    expiry = expiry_s(_own_pem(config, files)) if config.has_keystore else None
    return _Loaded(config=config, digest=digest, server=server, client=client, expiry_s=expiry)


def _set_up(context: ssl.SSLContext, config: TlsConfig, files: Files) -> None:
    # As in Java, whatever is in the truststore is trusted, an authority in the middle too.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _set_suites(context, config)
    if config.has_keystore:
        _show(context, config, files)
    if config.trusted_certificates is not None:
        _trust(context, config.trusted_certificates, config.key_of(TRUSTSTORE_CERTIFICATES))
    elif config.truststore_location is not None:
        key = config.key_of(TRUSTSTORE_LOCATION)
        _trust(context, _read(files, config.truststore_location, key).decode(errors="replace"), key)
    else:
        context.load_default_certs()


def _set_suites(context: ssl.SSLContext, config: TlsConfig) -> None:
    versions = set(config.protocols)
    newer = _TLS_1_3_SUITES & set(config.cipher_suites)
    older = [suite for suite in config.cipher_suites if suite not in _TLS_1_3_SUITES]
    key = config.key_of(CIPHER_SUITES)
    if newer and newer != _TLS_1_3_SUITES:
        raise ConfigError(
            f"{key} must name all suites of TLS 1.3 ({', '.join(sorted(_TLS_1_3_SUITES))}) or none of them."
        )
    if config.cipher_suites:
        versions -= {"TLSv1.3"} if not newer else set()
        versions -= {"TLSv1.2"} if not older else set()
    if not versions:
        raise ConfigError(f"{key} holds no suite of {' or '.join(config.protocols)}.")
    context.minimum_version = min(_VERSIONS[version] for version in versions)
    context.maximum_version = max(_VERSIONS[version] for version in versions)
    if older:
        try:
            context.set_ciphers(":".join(map(_openssl_name, older)))
        except ssl.SSLError as error:
            raise ConfigError(f"{key} is {','.join(config.cipher_suites)}, of which OpenSSL has none.") from error


def _openssl_name(suite: str) -> str:
    """What OpenSSL calls a suite of TLS 1.2: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256."""
    name = suite.removeprefix("TLS_").replace("_WITH_", "_").removeprefix("RSA_")
    for java, openssl in (("AES_", "AES"), ("_CBC_", "_"), ("POLY1305_SHA256", "POLY1305")):
        name = name.replace(java, openssl)
    return name.replace("_", "-")


def _show(context: ssl.SSLContext, config: TlsConfig, files: Files) -> None:
    # Without any password OpenSSL would ask for it on the terminal.
    password = config.key_password or ""
    pem = _own_pem(config, files)
    if config.keystore_location is not None:
        what = f"{config.key_of(KEYSTORE_LOCATION)} is {config.keystore_location}, which"
    else:
        what = f"{config.key_of(KEYSTORE_CHAIN)} and {config.key_of(KEYSTORE_KEY)}"
    try:
        if config.keystore_location is not None:
            context.load_cert_chain(config.keystore_location, password=password)
        else:
            with nameless_file(pem.encode()) as path:
                context.load_cert_chain(path, password=password)
    except (OSError, ValueError) as error:
        if isinstance(error, ssl.SSLError) and "ENCRYPTED" in pem:
            key = config.key_of(KEY_PASSWORD)
            raise ConfigError(f"{what} cannot be used: {key} does not open the key in it.") from error
        raise ConfigError(f"{what} cannot be used: {_reason(error, 'no certificate and key in PEM')}.") from error


def _own_pem(config: TlsConfig, files: Files) -> str:
    """The chain and its key."""
    if config.keystore_location is None:
        return f"{config.certificate_chain}{config.key}"
    return _read(files, config.keystore_location, config.key_of(KEYSTORE_LOCATION)).decode(errors="replace")


def _trust(context: ssl.SSLContext, pem: str, key: str) -> None:
    try:
        context.load_verify_locations(cadata=pem)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{key} holds no certificates that can be read as PEM.") from error


def _reason(error: OSError | ValueError, otherwise: str) -> str:
    """Without the line of Python's source; `otherwise` where OpenSSL only says that it could not."""
    if not isinstance(error, ssl.SSLError):
        return error.strerror or str(error) if isinstance(error, OSError) else str(error)
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the key is not that of the first certificate"
    return error.reason.replace("_", " ").lower() if error.reason else otherwise


def _digest(config: TlsConfig, files: Files) -> bytes:
    digest = hashlib.sha256()
    for base, path in (
        (KEYSTORE_LOCATION, config.keystore_location),
        (TRUSTSTORE_LOCATION, config.truststore_location),
    ):
        if path is not None:
            content = _read(files, path, config.key_of(base))
            digest.update(len(content).to_bytes(8, "big") + content)
    return digest.digest()


def _read(files: Files, path: str, key: str) -> bytes:
    try:
        return files.read(path)
    except OSError as error:
        raise ConfigError(f"{key} is {path}, which cannot be read: {error.strerror or error}.") from error
