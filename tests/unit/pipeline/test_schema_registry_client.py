"""What the pipeline asks a schema registry, and what it makes of the answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
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
