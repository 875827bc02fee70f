"""The procedures of docs/operations.md, command by command, on nodes of this machine; none loses a record."""

from __future__ import annotations

import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from deploy_files import DEPLOY, ROOT
from missing_tools import unavailable
from operations_page import PAGE, installation, procedures
from systemctl import stop
from waiting import wait_for

from penstock.client.admin import Admin
from penstock.local.ports import find_free

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

FOLDERS: Final = {
    "/etc/penstock": "etc",
    "/etc/systemd/system": "units",
    "/usr/lib/sysusers.d": "root/usr/lib/sysusers.d",
    "/var/lib/penstock": "data",
}
NODES: Final = (1, 2, 3, 4)
VOTERS: Final = (1, 2, 3)
BLOCK_TIMEOUT_S: Final = 300
DRAIN_ENDED: Final = "The drain until a restart has ended"


class Machine:
    """Where the commands run: addresses, folders and programs of the page are put in place of those of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        generator = random.Random()
        self.ports = {(node, port): find_free(generator) for node in NODES for port in (9092, 9093, 9644)}
        for name in ("bin", "run", "log", "work", *FOLDERS.values()):
            (folder / name).mkdir(parents=True)
        for node in NODES:
            (folder / "etc" / f"node-{node}.properties").write_text(self.properties(node))
        self.program("systemctl", [sys.executable, str(ROOT / "tests" / "helpers" / "systemctl.py"), str(folder)])
        self.program("penstock", [sys.executable, "-P", "-m", "penstock"])
        # The clone: what is installed comes from there, and what is written does not go there.
        (folder / "work" / "deploy").symlink_to(DEPLOY)

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
        stop(self.folder, ["penstock", *(f"node-{node}" for node in NODES)], signal.SIGKILL)

    def replica_counts(self) -> dict[int, int]:
        """Of each registered node, as node 1 knows it."""
        with Admin(f"http://127.0.0.1:{self.ports[1, 9644]}") as admin:
            return {one.node_id: one.replica_count for one in admin.list_nodes().nodes}

    def _here(self, text: str) -> str:
        for (node, port), real in self.ports.items():
            text = text.replace(f"10.0.0.{node}:{port}", f"127.0.0.1:{real}")
        for there, here in FOLDERS.items():
            text = text.replace(there, f"{self.folder}/{here}")
        return text

    def properties(self, node: int) -> str:
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

    def program(self, name: str, command: list[str]) -> None:
        program = self.folder / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        program.chmod(0o755)


def has_line(log: Path) -> bool:
    return DRAIN_ENDED in log.read_text()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    try:
        yield made
    finally:
        made.kill()


def test_each_procedure_does_what_it_says_and_loses_no_record(machine: Machine) -> None:
    page = procedures(PAGE.read_text())
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
    machine.run("penstock topic create payments --partitions 8 --bootstrap 10.0.0.1:9092")
    write()
    backed_up = 0
    restore = page["Back up and restore"].pop()
    # What to do about an alert is no procedure.
    assert page.pop("Alerts") == []
    # Its commands are Apache Kafka's.
    assert page.pop("Log directories") == []
    # It needs an object store (`test_tiered_storage.py`).
    assert page.pop("Tiered storage") == []
    for heading, commands in page.items():
        assert commands, f"{heading} has no commands"
        if heading == "Back up and restore":
            backed_up = len(written)
        for block in commands:
            machine.run(block)
            if heading == "Move a partition between clusters":
                moved = machine.run("penstock consume orders-moved --quiet --timeout 60 --bootstrap 10.0.0.1:9092")
                assert moved.splitlines() == written
            write()
            check()
            if "reassign apply" in block:
                assert machine.replica_counts()[4] > 0
        if heading == "Scale out":
            assert 4 not in machine.replica_counts()
        if heading == "Restart all nodes":
            for node in VOTERS:
                log = machine.folder / "log" / f"node-{node}"
                # The unit drains what it stops, and the node that comes back ends that.
                wait_for(partial(has_line, log), f"the drain of node {node} has ended")
    machine.run(restore)
    # What was written after the backup is gone.
    assert 0 < backed_up < len(written)
    del written[backed_up:]
    check()
    write()
    check()


def test_a_machine_is_installed_line_by_line_and_its_node_starts(machine: Machine) -> None:
    sysusers = shutil.which("systemd-sysusers")
    if sysusers is None:
        unavailable("systemd-sysusers is not installed (Debian: apt-get install systemd)")
    root = machine.folder / "root"
    (root / "etc").mkdir()
    machine.program("systemd-sysusers", [sysusers, f"--root={root}"])
    properties = machine.folder / "etc" / "server.properties"
    for line in installation(PAGE.read_text()):
        # The group is one of the new system, whose files are below `root` here.
        machine.run(line.replace("-g penstock", f"-g {os.getgid()}"))
        if properties.exists():
            # As an operator edits it, who has drawn a secret.
            properties.write_text(machine.properties(1).replace("/data/node-1", "/data"))
    assert re.search(r"^penstock:.*:/var/lib/penstock:", (root / "etc" / "passwd").read_text(), re.MULTILINE)
    for unit in ("penstock.service", "penstock@.service"):
        assert (machine.folder / "units" / unit).read_bytes() == (DEPLOY / "systemd" / unit).read_bytes()
    assert properties.stat().st_mode & 0o777 == 0o640
    log = machine.folder / "log" / "penstock"
    wait_for(lambda: "no quorum: 1 of 3 voters" in log.read_text(), "the node runs and waits for the others")


def test_files_that_the_page_installs_are_there() -> None:
    for name in re.findall(r"(?<!integration/)\bdeploy/[\w@./-]*\w", PAGE.read_text()):
        assert (ROOT / name).exists(), name
