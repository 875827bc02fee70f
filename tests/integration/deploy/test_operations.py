"""The procedures of docs/operations.md, command by command, on nodes of this machine; none loses a record."""

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
from deploy_files import DEPLOY, ROOT
from systemctl import stop

from penstock.local.ports import find_free

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

PAGE: Final = ROOT / "docs" / "operations.md"
NODES: Final = (1, 2, 3, 4)
VOTERS: Final = (1, 2, 3)
BLOCK_TIMEOUT_S: Final = 300


def blocks() -> dict[str, list[str]]:
    """The `sh` blocks of each section, by its heading."""
    found: dict[str, list[str]] = {}
    for section in PAGE.read_text().split("\n## ")[1:]:
        heading = section.partition("\n")[0]
        found[heading] = re.findall(r"^```sh\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    return found


class Machine:
    """Where the commands run: addresses, folders and programs of the page are put in place of those of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        generator = random.Random()
        self.ports = {(node, port): find_free(generator) for node in NODES for port in (9092, 9093, 9644)}
        for name in ("bin", "etc", "run", "log", "data", "work"):
            (folder / name).mkdir()
        for node in NODES:
            (folder / "etc" / f"node-{node}.properties").write_text(self._properties(node))
        self._program("systemctl", [sys.executable, str(ROOT / "tests" / "helpers" / "systemctl.py"), str(folder)])
        self._program("penstock", [sys.executable, "-P", "-m", "penstock"])

    def run(self, block: str) -> str:
        # Addresses with a variable in them are looked up when the block runs.
        text = re.sub(r"10\.0\.0\.\$node:(\d+)", r'$(address "$node" \1)', block)
        text = self._here(text)
        cases = "".join(f"{node}:{port}) echo 127.0.0.1:{real};; " for (node, port), real in self.ports.items())
        script = f'address() {{ case "$1:$2" in {cases}esac; }}\n{text}'
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        environment["PATH"] = f"{self.folder / 'bin'}{os.pathsep}{environment['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder / "work",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=BLOCK_TIMEOUT_S,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}"
        return done.stdout

    def kill(self) -> None:
        stop(self.folder, [f"node-{node}" for node in NODES], signal.SIGKILL)

    def _here(self, text: str) -> str:
        for (node, port), real in self.ports.items():
            text = text.replace(f"10.0.0.{node}:{port}", f"127.0.0.1:{real}")
        return text.replace("/etc/penstock", f"{self.folder}/etc").replace("/var/lib/penstock", f"{self.folder}/data")

    def _properties(self, node: int) -> str:
        """The example, as the page says that it is changed for each node."""
        text = (DEPLOY / "systemd" / "server.properties").read_text()
        told = {
            "node.id": str(node),
            "listeners": f"PLAINTEXT://10.0.0.{node}:9092,CONTROLLER://10.0.0.{node}:9093",
            "cluster.secret": "drawn for this test",
            "log.dirs": f"/var/lib/penstock/node-{node}",
            "admin.listeners": f"http://10.0.0.{node}:9644",
        }
        if node not in VOTERS:
            told |= {"process.roles": "broker", "listeners": f"PLAINTEXT://10.0.0.{node}:9092"}
        for key, value in told.items():
            text, count = re.subn(rf"^{re.escape(key)}=.*$", f"{key}={value}", text, flags=re.MULTILINE)
            assert count == 1, key
        return self._here(text)

    def _program(self, name: str, command: list[str]) -> None:
        program = self.folder / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        program.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    try:
        yield made
    finally:
        made.kill()


def test_each_procedure_does_what_it_says_and_loses_no_record(machine: Machine) -> None:
    page = blocks()
    written: list[str] = []

    def write() -> None:
        written.append(f"record-{len(written)}")
        machine.run(f"echo {written[-1]} | penstock produce orders --timeout 60 --bootstrap 10.0.0.1:9092")

    def check() -> None:
        read = machine.run("penstock consume orders --quiet --timeout 60 --bootstrap 10.0.0.1:9092")
        assert read.splitlines() == written

    drawing, starting = page.pop("Install")
    cluster_id, secret = (line for line in machine.run(drawing).splitlines())
    assert len(cluster_id) == 22
    assert len(secret) == 32
    assert "leader" in machine.run(starting)
    machine.run("penstock topic create orders --partitions 1 --bootstrap 10.0.0.1:9092")
    write()
    backed_up = 0
    restore = page["Back up and restore"].pop()
    # What to do about an alert is no procedure.
    assert page.pop("Alerts") == []
    for heading, commands in page.items():
        assert commands, f"{heading} has no commands"
        if heading == "Back up and restore":
            backed_up = len(written)
        for block in commands:
            machine.run(block)
            write()
            check()
    machine.run(restore)
    # What was written after the backup is gone.
    assert 0 < backed_up < len(written)
    del written[backed_up:]
    check()
    write()
    check()


def test_files_that_the_page_installs_are_there() -> None:
    for name in re.findall(r"(?<!integration/)\bdeploy/[\w@./-]*\w", PAGE.read_text()):
        assert (ROOT / name).exists(), name
