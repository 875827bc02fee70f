"""Nodes that are forked from a process which has loaded their code: processes as any other."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from waiting import wait_for

from penstock.chaos.faults.node_faults import NodeFaults
from penstock.local.errors import NodeFailedError
from penstock.local.local_node import LocalNode
from penstock.local.preloaded_nodes import NODE, PreloadedNodes, PreloadedStart
from penstock.local.processes import identify

PROGRAM = """
import signal, sys

loads = []


def load():
    loads.append(1)


def load_more():
    loads.append(2)


def run(*arguments):
    print(*arguments, len(loads), flush=True)
    if arguments[0] == "wait":
        signal.pause()
    if arguments[0] == "break":
        raise ValueError("broken")
    return int(arguments[0])
"""


@pytest.fixture
def preloaded(tmp_path: Path) -> Iterator[PreloadedNodes]:
    (tmp_path / "program_of_test.py").write_text(PROGRAM)
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    nodes = PreloadedNodes("program_of_test", {**os.environ, "PYTHONPATH": path})
    yield nodes
    nodes.end()


def start(preloaded: PreloadedNodes, tmp_path: Path, *arguments: str, ends_with_this: bool = True) -> int:
    log = tmp_path / f"{arguments[0]}.log"
    return preloaded.start(arguments, log, title=("penstock", "start", *arguments), ends_with_this=ends_with_this)


def test_each_is_a_process_that_says_how_it_ended(preloaded: PreloadedNodes, tmp_path: Path) -> None:
    pids = [start(preloaded, tmp_path, *arguments) for arguments in (("0",), ("3", "x"), ("break",), ("wait",))]
    assert len({*pids, preloaded.pid}) == 5
    wait_for(lambda: not any(map(identify, pids[:3])), "three of them end")
    assert [preloaded.exit_status(pid) for pid in pids] == [0, 3, 1, None]
    assert (tmp_path / "3.log").read_text() == "3 x 1\n"
    assert (tmp_path / "break.log").read_text().endswith("ValueError: broken\n")
    os.kill(pids[3], signal.SIGKILL)
    wait_for(lambda: identify(pids[3]) is None, "the last one ends")
    assert preloaded.exit_status(pids[3]) == -signal.SIGKILL


def test_a_log_that_cannot_be_written_is_named(preloaded: PreloadedNodes, tmp_path: Path) -> None:
    (tmp_path / "wait.log").mkdir()
    with pytest.raises(NodeFailedError, match=r"wait\.log cannot be written: Is a directory"):
        start(preloaded, tmp_path, "wait")
    assert isinstance(start(preloaded, tmp_path, "0"), int)


def test_much_that_the_process_says_does_not_stop_it(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(f"import sys\n{PROGRAM}\nsys.stderr.write('x' * 1_000_000)\n")
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    nodes = PreloadedNodes("loud", {**os.environ, "PYTHONPATH": path})
    try:
        assert isinstance(start(nodes, tmp_path, "0"), int)
    finally:
        nodes.end()


def test_more_is_loaded_before_the_next_node(preloaded: PreloadedNodes, tmp_path: Path) -> None:
    preloaded.load("load_more")
    pid = start(preloaded, tmp_path, "0")
    wait_for(lambda: identify(pid) is None, "its end")
    assert (tmp_path / "0.log").read_text() == "0 2\n"


def test_what_does_not_load_says_why_when_a_node_is_started(preloaded: PreloadedNodes, tmp_path: Path) -> None:
    preloaded.load("load_nothing")
    with pytest.raises(NodeFailedError, match="has no attribute 'load_nothing'"):
        start(preloaded, tmp_path, "0")


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="only Linux shows the command line in a file")
def test_each_shows_its_own_command_line(preloaded: PreloadedNodes, tmp_path: Path) -> None:
    pid = start(preloaded, tmp_path, "wait", "long" * 10)
    shown = Path(f"/proc/{pid}/cmdline")
    wait_for(lambda: shown.read_bytes().startswith(b"penstock"), "the command line is its own")
    assert shown.read_bytes().rstrip(b"\0").split(b"\0") == [b"penstock", b"start", b"wait", b"long" * 10]


@pytest.mark.parametrize("ends_with_this", [False, True])
def test_those_that_do_not_end_with_the_process_go_on(
    preloaded: PreloadedNodes, tmp_path: Path, *, ends_with_this: bool
) -> None:
    pid = start(preloaded, tmp_path, "wait", ends_with_this=ends_with_this)
    wait_for(lambda: (tmp_path / "wait.log").exists() and (tmp_path / "wait.log").read_text() != "", "it runs")
    preloaded.end()
    if ends_with_this:
        wait_for(lambda: identify(pid) is None, "it ends")
    else:
        assert identify(pid) is not None
        os.kill(pid, signal.SIGKILL)


def test_what_has_ended_starts_no_node_and_knows_of_none(preloaded: PreloadedNodes, tmp_path: Path) -> None:
    pid = start(preloaded, tmp_path, "0")
    preloaded.end()
    assert not preloaded.is_running
    assert preloaded.exit_status(pid) is None
    with pytest.raises(NodeFailedError, match="the process that starts nodes has ended"):
        start(preloaded, tmp_path, "1")


def test_a_node_that_leaves_its_starter_keeps_how_it_ended_and_is_started_by_its_command(
    preloaded: PreloadedNodes, tmp_path: Path
) -> None:
    node = LocalNode(id=1, port=0, data=tmp_path / "node-1", environment={}, command=(sys.executable, "-c", "exit(7)"))
    node.start_by = PreloadedStart(preloaded=preloaded, arguments_of=lambda _: ["wait"], ends_with_this=True)
    node.start()
    node.kill()
    node.leave_starter()
    preloaded.end()
    assert node.exit_status == -signal.SIGKILL
    node.start()
    wait_for(lambda: not node.is_running, "it ends")
    assert node.exit_status == 7


def test_a_module_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    preloaded = PreloadedNodes("module_that_is_not_there", os.environ)
    with pytest.raises(NodeFailedError, match="No module named 'module_that_is_not_there'"):
        start(preloaded, tmp_path, "0")
    preloaded.end()


@pytest.mark.thorough
@pytest.mark.parametrize("module", [NODE, "penstock.chaos.faults.faulty_node"])
def test_a_node_that_cannot_start_leaves_its_sentence_in_its_own_log_and_is_gone(tmp_path: Path, module: str) -> None:
    preloaded = PreloadedNodes(module, os.environ)
    try:
        node = LocalNode(id=1, port=0, data=tmp_path / "node-1", environment={})
        orders = [] if module == NODE else [str(NodeFaults(node).orders_path)]
        arguments = [*orders, str(node.properties)]
        node.start_by = PreloadedStart(preloaded=preloaded, arguments_of=lambda _: arguments, ends_with_this=True)
        node.properties.write_text("node.id=nothing\n")
        with suppress(NodeFailedError):
            # It may have ended by the time that it is looked at.
            node.start()
        wait_for(lambda: node.log.exists() and node.log.read_text().endswith("\n"), "the node says why")
        wait_for(lambda: not node.is_running, "the node ends")
        assert node.log.read_text().count("penstock: ") == 1
        assert "node.id" in node.failure("ended").sentence
    finally:
        preloaded.end()
