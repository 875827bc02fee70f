"""A client in Java that cannot be had here says what is missing and how to get it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from penstock.local.apache_kafka import java_programs
from penstock.local.apache_kafka.jars import JarsUnavailableError, KafkaJars
from penstock.local.errors import ClusterError


def test_without_java_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def install() -> KafkaJars:
        raise JarsUnavailableError("no Java (apt-get install it)")

    monkeypatch.setattr(java_programs, "install", install)
    with pytest.raises(ClusterError, match="cannot run: no Java"):
        java_programs.java_command(Path("QueueClient.java"))


def test_without_its_compiler_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(java_programs, "install", lambda: KafkaJars(directory=tmp_path / "jars", java="java"))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    source = tmp_path / "QueueClient.java"
    source.write_text("class QueueClient {}")
    with pytest.raises(ClusterError, match="apt-get install default-jdk-headless"):
        java_programs.java_command(source)
    assert not list(tmp_path.glob("penstock/client-*")), "half a program is none"
