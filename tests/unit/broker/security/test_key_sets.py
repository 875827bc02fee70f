"""Key sets from files and URLs: loaded, rotated, and kept when they cannot be read."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from certificates import Authority
from tokens import NOW_S, jwk, key_set, rsa_key, token
from waiting import loop_until

from penstock.broker.configuration.bearer_config import BearerConfig
from penstock.broker.configuration.tls_config import TlsConfig, read_tls
from penstock.broker.security.key_sets import KEY_SET_BYTES_MAX, KeySets
from penstock.broker.security.rules.bearer import TokenRefused
from penstock.protocol.errors import ConfigError
from penstock.storage.disk.memory_files import MemoryFiles

FIRST, SECOND = key_set(jwk(rsa_key(), "one")), key_set(jwk(rsa_key(1), "two"))


def config(url: str, tls: TlsConfig | None = None) -> BearerConfig:
    return BearerConfig(
        jwks_url=url,
        refresh_ms=3_600_000,
        backoff_ms=1,
        backoff_ms_max=1,
        audiences=(),
        issuer=None,
        scope_claim="scope",
        sub_claim="sub",
        skew_ms=0,
        jwks_tls=tls,
    )


class Provider:
    """Answers every request with what it has."""

    def __init__(self) -> None:
        self.body = FIRST
        self.status = "200 OK"
        self.request_count = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.request_count += 1
        head = f"HTTP/1.1 {self.status}\r\nContent-Length: {len(self.body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + self.body)
        await writer.drain()
        writer.close()


def run(
    scenario: Callable[[KeySets, MemoryFiles, Provider, str], Awaitable[None]], tls: ssl.SSLContext | None = None
) -> None:
    async def main() -> None:
        files, provider = MemoryFiles(), Provider()
        server = await asyncio.start_server(provider.serve, "127.0.0.1", 0, ssl=tls)
        sets = KeySets(files, asyncio.get_running_loop(), lambda: 1000 * NOW_S)
        async with server, asyncio.timeout(30):
            port = server.sockets[0].getsockname()[1]
            await scenario(sets, files, provider, f"http{'s' if tls else ''}://127.0.0.1:{port}/keys")

    asyncio.run(main())


def test_a_file_is_loaded_and_loaded_again() -> None:
    async def scenario(sets: KeySets, files: MemoryFiles, _provider: Provider, _url: str) -> None:
        files.write("/keys", FIRST)
        verify = sets.verifier(config("file:///keys"))
        await sets.load()
        assert verify(token(rsa_key())).name == "alice"
        files.write("/keys", b"half of a fi")
        await sets.load_again()
        assert verify(token(rsa_key())).name == "alice"
        files.write("/keys", SECOND)
        await sets.load_again()
        assert verify(token(rsa_key(1), "two")).name == "alice"
        with pytest.raises(TokenRefused):
            verify(token(rsa_key()))

    run(scenario)


def test_a_file_that_is_no_key_set_stops_the_start() -> None:
    async def scenario(sets: KeySets, files: MemoryFiles, _provider: Provider, _url: str) -> None:
        files.write("/keys", b"{}")
        sets.verifier(config("file:///keys"))
        with pytest.raises(
            ConfigError, match="The key set of OAUTHBEARER in /keys cannot be used: it is no JSON object"
        ):
            await sets.load()

    run(scenario)


def test_a_key_that_is_new_at_the_provider_is_fetched_when_a_token_names_it() -> None:
    async def scenario(sets: KeySets, _files: MemoryFiles, provider: Provider, url: str) -> None:
        verify = sets.verifier(config(url))
        await sets.load()
        watching = asyncio.create_task(sets.watch())
        provider.body = SECOND
        with pytest.raises(TokenRefused):
            verify(token(rsa_key(1), "two"))
        await loop_until(lambda: provider.request_count == 2, "the second request")

        def is_taken() -> bool:
            try:
                return verify(token(rsa_key(1), "two")).name == "alice"
            except TokenRefused:
                return False

        await loop_until(is_taken, "the new key")
        # Made-up names do not make it ask again so soon.
        for number in range(20):
            with pytest.raises(TokenRefused):
                verify(token(rsa_key(1), f"made up {number}"))
        await asyncio.sleep(0)
        assert provider.request_count == 2
        watching.cancel()

    run(scenario)


@pytest.mark.parametrize("body", [b"x", b"{" + b" " * KEY_SET_BYTES_MAX + b"}"])
def test_a_provider_that_fails_is_asked_again_and_its_keys_stay(body: bytes) -> None:
    async def scenario(sets: KeySets, _files: MemoryFiles, provider: Provider, url: str) -> None:
        provider.status = "503 Service Unavailable"
        verify = sets.verifier(config(url))
        await sets.load()
        with pytest.raises(TokenRefused):
            verify(token(rsa_key()))
        watching = asyncio.create_task(sets.watch())
        await loop_until(lambda: provider.request_count >= 3, "further requests")
        provider.status = "200 OK"

        def is_taken() -> bool:
            try:
                return verify(token(rsa_key())).name == "alice"
            except TokenRefused:
                return False

        await loop_until(is_taken, "the keys")
        watching.cancel()
        provider.body = body
        await sets.load_again()
        assert is_taken()

    run(scenario)


def test_a_provider_is_asked_by_https_only_if_the_truststore_vouches_for_it(tmp_path: Path) -> None:
    authority, other = Authority(), Authority()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (tmp_path / "provider.pem").write_text(authority.issue("127.0.0.1"))
    context.load_cert_chain(tmp_path / "provider.pem")
    store = {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/trusted.pem"}

    async def scenario(sets: KeySets, files: MemoryFiles, provider: Provider, url: str) -> None:
        files.write("/trusted.pem", other.certificate.encode())
        verify = sets.verifier(config(url, read_tls(store, "CLIENTS")))
        await sets.load()
        with pytest.raises(TokenRefused):
            verify(token(rsa_key()))
        assert provider.request_count == 0
        files.write("/trusted.pem", authority.certificate.encode())
        await sets.load_again()
        assert verify(token(rsa_key())).name == "alice"

    run(scenario, context)
