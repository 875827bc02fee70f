"""Apache Kafka on a machine that is too slow for it, or lacks what it needs: told in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.local.apache_kafka import cluster, jars
from penstock.local.apache_kafka.cluster import format_node
from penstock.local.apache_kafka.jars import JarsUnavailableError, KafkaJars, install
from penstock.local.errors import NodeFailedError
from penstock.local.local_node import LocalNode


def _endless(path: Path) -> str:
    path.write_text("#!/bin/sh\nexec sleep 600\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The machine's programs; what is to be kept goes to a folder of the test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def test_a_format_that_takes_too_long_is_told(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(cluster, "FORMAT_TIMEOUT_S", 0.01)
    node = LocalNode(id=1, port=0, data=bin_folder / "node-1", environment={})
    slow = KafkaJars(directory=bin_folder, java=_endless(bin_folder / "java"))
    with pytest.raises(NodeFailedError, match=r"node 1 of Apache Kafka was not formatted: .* timed out"):
        format_node(slow, node)


def test_jars_that_cannot_be_had_are_told_with_what_is_missing(
    bin_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(JarsUnavailableError, match="need Java 17 or newer"):
        install()
    _endless(bin_folder / "java")
    with pytest.raises(JarsUnavailableError, match="fetched with Maven"):
        install()
    _endless(bin_folder / "mvn")
    monkeypatch.setenv("PATH", f"{bin_folder}:/usr/bin:/bin")
    monkeypatch.setattr(jars, "INSTALL_TIMEOUT_S", 0.01)
    with pytest.raises(JarsUnavailableError, match=r"Maven could not resolve Apache Kafka's jars: .* timed out"):
        install()
    assert not list((bin_folder.parent / "cache" / "penstock").iterdir())
