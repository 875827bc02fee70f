"""Keys and certificates that are loaded, refused and loaded anew."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from certificates import Authority
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from penstock.broker.cluster.tls_contexts import TlsContexts
from penstock.broker.configuration.tls_config import TlsConfig, read_tls
from penstock.protocol.errors import ConfigError
from penstock.storage.disk.files import DiskFiles

PEM = {"ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM"}
AUTHORITY = Authority()
LATER = datetime(2099, 12, 31, 23, 59, 58, tzinfo=UTC)
OTHER = Authority()


class World:
    """The files of one listener, and its properties."""

    def __init__(self, folder: Path) -> None:
        self.keystore = folder / "keystore.pem"
        self.keystore.write_text(AUTHORITY.issue("localhost"))
        self.truststore = folder / "truststore.pem"
        self.truststore.write_text(AUTHORITY.certificate)
        self.properties = {
            **PEM,
            "ssl.keystore.location": str(self.keystore),
            "ssl.truststore.location": str(self.truststore),
            "ssl.client.auth": "required",
        }

    def configs(self, **changed: str) -> dict[str, TlsConfig]:
        properties = self.properties | {key.replace("_", "."): value for key, value in changed.items()}
        return {"SSL": read_tls({key: value for key, value in properties.items() if value}, "SSL")}

    def load(self, **changed: str) -> TlsContexts:
        return TlsContexts(self.configs(**changed), DiskFiles(), asyncio.get_running_loop())


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            await scenario()

    asyncio.run(main())


def agree(server_side: TlsContexts, client: ssl.SSLContext) -> ssl.SSLObject:
    """The client's side after a handshake in memory. Raises SSLError of either side."""
    context = server_side.server("SSL")
    assert context is not None
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = context().wrap_bio(to_server, to_client, server_side=True)
    other = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    for _ in range(3):
        for side in (other, one):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return other


def client_context(contexts: TlsContexts) -> ssl.SSLContext:
    context = contexts.client("SSL")()
    assert context is not None
    return context


def test_two_nodes_agree_by_what_is_in_their_files(world: World) -> None:
    async def scenario() -> None:
        contexts = world.load()
        agreed = agree(contexts, client_context(contexts))
        assert agreed.version() == "TLSv1.3"
        assert contexts.server("PLAINTEXT") is None
        assert contexts.client("PLAINTEXT")() is None

    run(scenario)


def test_keys_in_properties_need_no_file(world: World) -> None:
    async def scenario() -> None:
        pem = AUTHORITY.issue("localhost")
        cut = pem.index("-----BEGIN CERTIFICATE")
        contexts = world.load(
            ssl_keystore_location="",
            ssl_keystore_key=pem[:cut].replace("\n", " "),
            ssl_keystore_certificate_chain=pem[cut:].replace("\n", " "),
            ssl_truststore_location="",
            ssl_truststore_certificates=AUTHORITY.certificate.replace("\n", " "),
        )
        agree(contexts, client_context(contexts))

    run(scenario)


def test_a_key_may_have_a_password(world: World) -> None:
    async def scenario() -> None:
        pem = AUTHORITY.issue("localhost").encode()
        key = load_pem_private_key(pem, None)
        closed = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"open"))
        world.keystore.write_bytes(pem[pem.index(b"-----BEGIN CERTIFICATE") :] + closed)
        contexts = world.load(ssl_key_password="open")
        agree(contexts, client_context(contexts))
        for wrong in ("", "shut"):
            with pytest.raises(
                ConfigError, match=r"keystore\.pem, which cannot be used: ssl\.key\.password does not open"
            ):
                world.load(ssl_key_password=wrong)

    run(scenario)


@pytest.mark.parametrize(
    ("changed", "version"),
    [
        ({"ssl_enabled_protocols": "TLSv1.2"}, "TLSv1.2"),
        ({"ssl_enabled_protocols": "TLSv1.3"}, "TLSv1.3"),
        ({"ssl_cipher_suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"}, "TLSv1.2"),
        (
            {
                "ssl_cipher_suites": "TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256,"
                "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
            },
            "TLSv1.3",
        ),
    ],
)
def test_versions_and_suites_are_as_told(world: World, changed: dict[str, str], version: str) -> None:
    async def scenario() -> None:
        agreed = agree(world.load(**changed), client_context(world.load()))
        assert agreed.version() == version
        if "ssl_cipher_suites" in changed and version == "TLSv1.2":
            assert agreed.cipher() == ("ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.2", 128)

    run(scenario)


def test_what_cannot_be_loaded_is_one_sentence_with_its_key(world: World, tmp_path: Path) -> None:
    strange = tmp_path / "strange.pem"
    strange.write_text("no PEM")
    mixed = tmp_path / "mixed.pem"
    pem, other = AUTHORITY.issue("localhost"), AUTHORITY.issue("localhost")
    mixed.write_text(pem[: pem.index("-----BEGIN CERT")] + other[other.index("-----BEGIN CERT") :])
    key_and_file = "ssl.keystore.location is " + str(tmp_path)
    cases: list[tuple[dict[str, str], str]] = [
        (
            {"ssl_keystore_location": str(tmp_path / "none")},
            f"{key_and_file}/none, which cannot be read: No such file or directory.",
        ),
        (
            {"ssl_keystore_location": str(strange)},
            f"{key_and_file}/strange.pem, which cannot be used: no certificate and key in PEM.",
        ),
        (
            {"ssl_keystore_location": str(mixed)},
            f"{key_and_file}/mixed.pem, which cannot be used: the key is not that of the first certificate.",
        ),
        (
            {"listener.name.ssl.ssl.truststore.location": str(strange)},
            "listener.name.ssl.ssl.truststore.location holds no certificates that can be read as PEM.",
        ),
        (
            {"ssl_cipher_suites": "TLS_FANCY"},
            "ssl.cipher.suites is TLS_FANCY, of which OpenSSL has none.",
        ),
        (
            {"ssl_cipher_suites": "TLS_AES_128_GCM_SHA256"},
            "ssl.cipher.suites must name all suites of TLS 1.3 (TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384, "
            "TLS_CHACHA20_POLY1305_SHA256) or none of them.",
        ),
        (
            {
                "ssl_cipher_suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
                "ssl_enabled_protocols": "TLSv1.3",
            },
            "ssl.cipher.suites holds no suite of TLSv1.3.",
        ),
    ]

    async def scenario() -> None:
        for changed, sentence in cases:
            with pytest.raises(ConfigError) as refused:
                world.load(**changed)
            assert str(refused.value) == sentence

    run(scenario)


def test_new_connections_use_the_certificates_that_are_there_now(world: World) -> None:
    async def scenario() -> None:
        contexts = world.load()
        client = client_context(contexts)
        before = agree(contexts, client).getpeercert()
        await contexts.refresh()
        assert agree(contexts, client).getpeercert() == before
        assert before is not None
        assert set(contexts.expiries().values()) == {ssl.cert_time_to_seconds(str(before["notAfter"]))}
        world.keystore.write_text(AUTHORITY.issue("localhost", "renewed", not_after=LATER))
        await contexts.refresh()
        assert set(contexts.expiries().values()) == {int(LATER.timestamp())}
        after = agree(contexts, client).getpeercert()
        assert after is not None
        assert ("DNS", "renewed") in after["subjectAltName"]
        world.truststore.write_text(OTHER.certificate)
        await contexts.refresh()
        with pytest.raises(ssl.SSLCertVerificationError):
            agree(contexts, client)

    run(scenario)


def test_files_that_cannot_be_loaded_change_nothing_and_are_logged_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        contexts = world.load()
        client = client_context(contexts)
        world.keystore.write_text("half a certifi")
        for _ in range(3):
            await contexts.refresh()
        agree(contexts, client)
        world.keystore.write_text(AUTHORITY.issue("localhost"))
        await contexts.refresh()

    with caplog.at_level("INFO", "penstock.broker.cluster.tls_contexts"):
        run(scenario)
    lines = [record.getMessage() for record in caplog.records]
    assert [line.partition(":")[0] for line in lines] == ["Failed to reload certificates", "Reloaded certificates"]


def test_a_changed_property_is_tried_before_it_is_taken(world: World, tmp_path: Path) -> None:
    async def scenario() -> None:
        contexts = world.load()
        with pytest.raises(ConfigError, match="cannot be read"):
            contexts.check(world.configs(ssl_keystore_location=str(tmp_path / "none")))
        renewed = tmp_path / "renewed.pem"
        renewed.write_text(AUTHORITY.issue("localhost", "renewed"))
        changed = world.configs(ssl_keystore_location=str(renewed))
        contexts.check(changed)
        client = client_context(contexts)
        contexts.change(changed)
        await contexts.refresh()
        after = agree(contexts, client).getpeercert()
        assert after is not None
        assert ("DNS", "renewed") in after["subjectAltName"]

    run(scenario)
