"""docs/security.md, block by block, in an empty folder: what it promises is refused is refused."""

from __future__ import annotations

import os
import random
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from deploy_files import ROOT
from waiting import wait_for

from penstock.local.ports import find_free

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

PAGE: Final = ROOT / "docs" / "security.md"
_BLOCK: Final = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PORTS: Final = (8080, 9092, 9093, 9094)
BLOCK_TIMEOUT_S: Final = 60
START: Final = "penstock start "


class Reader:
    """Who follows the page. A block that starts a node has a terminal of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        generator = random.Random()
        self._ports = {port: find_free(generator) for port in _PORTS}
        programs = folder / "bin"
        programs.mkdir()
        program = programs / "penstock"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m penstock "$@"\n')
        program.chmod(0o755)
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")},
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        }
        self.log = folder / "log"
        self.node: subprocess.Popen[bytes] | None = None

    def follow(self, block: str) -> str:
        text = re.sub(r"\b(localhost|127\.0\.0\.1):(\d+)", lambda one: f"{one[1]}:{self._ports[int(one[2])]}", block)
        if text.startswith(START):
            self._start(shlex.split(text))
            return ""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", _checked(text)],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=BLOCK_TIMEOUT_S,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{self.log.read_text() if self.log.exists() else ''}"
        return done.stdout

    def _start(self, command: list[str]) -> None:
        with self.log.open("wb") as log:
            self.node = subprocess.Popen(
                command, cwd=self.folder, env=self._environment, stdout=log, stderr=subprocess.STDOUT
            )
        ready = f"curl --silent --fail --insecure https://localhost:{self._ports[8080]}/ready"

        def is_ready() -> bool:
            assert self.node is not None
            assert self.node.poll() is None, self.log.read_text()
            return subprocess.run(shlex.split(ready), stdout=subprocess.DEVNULL, check=False).returncode == 0

        wait_for(is_ready, "the node of the page")

    def stop(self) -> None:
        if self.node is not None:
            self.node.send_signal(signal.SIGTERM)
            self.node.wait(60)


def _checked(text: str) -> str:
    """A line that begins with `!` is to fail, which bash itself does not take for an error."""
    return re.sub(r"^! (.*)$", r"if \1; then echo 'it was not refused'; exit 1; fi", text, flags=re.MULTILINE)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    one = Reader(tmp_path)
    try:
        yield one
    finally:
        one.stop()


def test_every_block_does_what_the_page_says(reader: Reader) -> None:
    blocks = _BLOCK.findall(PAGE.read_text())
    told = [reader.follow(block) for block in blocks]
    everything = "".join(told)
    assert "one order" in everything
    log = reader.log.read_text()
    assert "Principal = User:ada is Denied operation = CREATE" in log
    secrets = [
        path for path in (reader.folder / "secrets").iterdir() if path.name in ("admin", "ada", "cluster", "tokens")
    ]
    assert len(secrets) == 4
    for path in secrets:
        secret = path.read_text().strip()
        assert secret not in log
        assert secret not in everything
