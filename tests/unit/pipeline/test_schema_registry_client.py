"""What the pipeline asks a schema registry, and what it makes of the answers."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import Authority
from schema_registry import USER_INFO, Registered, SchemaRegistry, schema_registry

from penstock.pipeline.records import registry as client
from penstock.pipeline.records.errors import RegistryError
from penstock.pipeline.records.registry import Registry, registry_of


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SchemaRegistry]:
    monkeypatch.setattr(client, "_PAUSE_S", 0.0)
    with schema_registry() as running:
        yield running


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def secure_server(authority: Authority, tmp_path: Path) -> Iterator[SchemaRegistry]:
    shown = tmp_path / "server.pem"
    shown.write_text(authority.issue("127.0.0.1"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown)
    with schema_registry(context) as running:
        running.register(7, Registered(schema='"long"'))
        yield running


@pytest.fixture
def registry(server: SchemaRegistry) -> Registry:
    return registry_of({"url": f"{server.url}/", "basic.auth.user.info": USER_INFO})


def test_a_schema_is_asked_for_once(server: SchemaRegistry, registry: Registry) -> None:
    server.register(7, Registered(schema='"long"'))
    found = [registry.by_id(7) for _ in range(3)]
    assert [one and one.schema for one in found] == ['"long"'] * 3
    assert server.asked == ["/schemas/ids/7"]


def test_an_id_that_is_not_there_yet_is_asked_for_again(server: SchemaRegistry, registry: Registry) -> None:
    assert registry.by_id(8) is None
    server.register(8, Registered(schema='"int"'))
    assert registry.by_id(8) is not None


def test_the_newest_of_a_subject_is_not_kept(server: SchemaRegistry, registry: Registry) -> None:
    server.register(1, Registered(schema='"int"'), subject="a/b")
    assert registry.newest("a/b").schema == '"int"'
    server.register(2, Registered(schema='"long"'), subject="a/b")
    assert registry.newest("a/b").schema == '"long"'
    assert registry.version("a/b", 1).schema == '"int"'
    with pytest.raises(RegistryError, match="no version latest of c"):
        registry.newest("c")


def test_a_failing_registry_is_asked_again_and_then_to_blame(server: SchemaRegistry, registry: Registry) -> None:
    server.register(9, Registered(schema='"int"'))
    server.failures = [503, 503]
    assert registry.by_id(9) is not None
    server.failures = [503] * 3
    with pytest.raises(RegistryError, match="/schemas/ids/10 answers 503"):
        registry.by_id(10)
    assert not server.failures


def test_a_refused_password_is_not_tried_again_and_not_told(server: SchemaRegistry) -> None:
    registry = registry_of({"url": server.url, "basic.auth.user.info": "reader:wrong"})
    with pytest.raises(RegistryError, match="answers 401") as caught:
        registry.by_id(1)
    assert len(server.asked) == 1
    assert "wrong" not in f"{caught.value} {registry!r}"


def test_a_registry_that_is_not_there(server: SchemaRegistry, registry: Registry) -> None:
    server.server_close()
    with pytest.raises(RegistryError, match=r"does not answer \(.*\), asked 3 times"):
        registry.by_id(1)


def _trusting(server: SchemaRegistry, ca_file: Path) -> Registry:
    return registry_of({"url": server.url, "basic.auth.user.info": USER_INFO, "ssl.ca.location": str(ca_file)})


def test_a_registry_over_tls_shows_a_certificate_of_the_authority_that_is_named(
    secure_server: SchemaRegistry, authority: Authority, tmp_path: Path
) -> None:
    trusted = tmp_path / "authority.pem"
    trusted.write_text(authority.certificate)
    assert secure_server.url.startswith("https://")
    found = _trusting(secure_server, trusted).by_id(7)
    assert found is not None
    assert found.schema == '"long"'


def test_a_certificate_of_another_authority_is_refused_at_once(secure_server: SchemaRegistry, tmp_path: Path) -> None:
    another = tmp_path / "another.pem"
    another.write_text(Authority().certificate)
    with pytest.raises(RegistryError, match=r"certificate of .* was refused: .*issuer.*trusted are .*another\.pem"):
        _trusting(secure_server, another).by_id(7)
    unnamed = registry_of({"url": secure_server.url, "basic.auth.user.info": USER_INFO})
    with pytest.raises(RegistryError, match=r"trusted are the authorities of this machine; ssl\.ca\.location names"):
        unnamed.by_id(7)
    assert not secure_server.asked, "the password was not sent"


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_a_file_without_authorities_is_named(secure_server: SchemaRegistry, tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "authorities.pem"
    if text is not None:
        file.write_text(text)
    with pytest.raises(RegistryError, match=r"ssl\.ca\.location .*authorities\.pem"):
        _trusting(secure_server, file).by_id(7)
