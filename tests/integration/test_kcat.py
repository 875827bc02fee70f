"""kcat, unchanged, against one node."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

DEADLINE_S = 60


def run(kcat: Path, bootstrap: str, *arguments: str, stdin: str = "") -> str:
    result = subprocess.run(
        [str(kcat), "-b", bootstrap, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_produce_consume_and_offsets(kcat: Path, bootstrap: str, topic: str) -> None:
    lines = [f"k{i % 5}:value {i}" for i in range(200)]
    run(kcat, bootstrap, "-P", "-t", topic, "-p", "0", "-K", ":", "-H", "origin=test", stdin="\n".join(lines) + "\n")
    output = run(kcat, bootstrap, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-f", "%o %k:%s %h\\n")
    assert output.splitlines() == [f"{i} {line} origin=test" for i, line in enumerate(lines)]
    tail = run(kcat, bootstrap, "-C", "-t", topic, "-p", "0", "-o", "-3", "-e", "-q")
    assert tail.splitlines() == [line.split(":")[1] for line in lines[-3:]]
    assert "offset 200" in run(kcat, bootstrap, "-Q", "-t", f"{topic}:0:-1")


def test_metadata_listing(kcat: Path, bootstrap: str, topic: str) -> None:
    run(kcat, bootstrap, "-P", "-t", topic, stdin="first\n")
    listing = json.loads(run(kcat, bootstrap, "-L", "-J"))
    assert topic in {entry["topic"] for entry in listing["topics"]}
    assert len(listing["brokers"]) == 1
