"""A harness that is killed (SIGKILL) leaves nothing behind: what it started ends with it, the rest goes later."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from missing_tools import need_toxiproxy, unavailable
from waiting import DEADLINE_S, wait_for

from penstock.chaos.faults.node_networks import NodeNetworks
from penstock.local.processes import ProcessId, identify, send_signal, wait_gone

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent"),
]

NAMESPACES: Final = Path("/run/netns")
TESTS: Final = """
from pathlib import Path
import select


def test_stays(penstock_cluster):
    penstock_cluster.topic()
    Path("stays").touch()
    select.select([], [], [])
"""
NETWORKS: Final = """
import select
from penstock.chaos.faults.node_networks import NodeNetworks

with NodeNetworks([1], ["client-0"]):
    print("made", flush=True)
    select.select([], [], [])
"""


def test_a_run_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    """Nodes that the nemesis started again are among them: it has a thread of its own, which ends first."""
    need_toxiproxy()
    (tmp_path / "faults.toml").write_text(
        "length_s = 600\n[[steps]]\nat_s = 0.1\nduration_s = 0.1\nfault = { kind = 'kill', selector = '1,2,3' }\n"
    )
    words = ("run", "--workload", "queue", "--schedule", "faults.toml", "--out", "run")
    command = [sys.executable, "-P", "-m", "penstock", "chaos", *words]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        try:
            history = tmp_path / "run" / "clients" / "nemesis.jsonl"
            wait_for(lambda: history.exists() and '"end"' in history.read_text(), "nodes were started again")
            left = kill_and_tell(process.pid)
        finally:
            process.kill()
    assert {name for _, name in left} >= {"toxiproxy-server"}
    # Three nodes and at least two clients.
    assert len(left) >= 6
    assert_gone(left)


def test_a_worker_of_pytest_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "test_stays.py").write_text(TESTS)
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
        try:
            wait_for((tmp_path / "stays").exists, "the test has its cluster")
            left = kill_and_tell(process.pid)
        finally:
            process.kill()
    # Three nodes and what starts them.
    assert len(left) >= 4
    assert_gone(left)


def test_networks_of_a_program_that_was_killed_go_when_others_are_made() -> None:
    with networks() as killed, networks() as alive:
        try:
            killed.kill()
            killed.wait(DEADLINE_S)
            assert namespaces_of(killed), "nothing removes them before"
            with NodeNetworks([1]):
                assert not namespaces_of(killed)
                assert len(namespaces_of(alive)) == 3
        finally:
            # In order: it removes its own.
            alive.send_signal(signal.SIGINT)
            alive.wait(DEADLINE_S)
    assert not namespaces_of(alive)


@contextmanager
def networks() -> Iterator[subprocess.Popen[str]]:
    """A program that has made some."""
    command = [sys.executable, "-P", "-c", NETWORKS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            if process.stdout.readline() != "made\n":
                told = process.stderr.read()[-200:]
                unavailable(f"{told}; run the tests as root on Linux, with nftables and iproute2 installed")
            yield process
        finally:
            process.kill()


def namespaces_of(process: subprocess.Popen[str]) -> list[str]:
    return [path.name for path in NAMESPACES.glob(f"penstock-{process.pid}-*")]


def kill_and_tell(pid: int) -> Sequence[tuple[ProcessId, str]]:
    """The processes below this one, with their names, and SIGKILL to it alone."""
    harness = identify(pid)
    assert harness is not None
    below = descendants(pid)
    assert send_signal(harness, signal.SIGKILL)
    return below


def descendants(pid: int) -> list[tuple[ProcessId, str]]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            process = identify(child)
            if process is not None:
                # One that ends meanwhile is none.
                with suppress(FileNotFoundError, ProcessLookupError):
                    name = Path(f"/proc/{child}/exe").readlink().name
                    found += [(process, name), *descendants(child)]
    return found


def assert_gone(processes: Sequence[tuple[ProcessId, str]]) -> None:
    left = [(process.pid, name) for process, name in processes if not wait_gone(process, timeout_s=DEADLINE_S)]
    for process, _ in processes:
        send_signal(process, signal.SIGKILL)
    assert not left
