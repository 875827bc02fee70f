"""Of nodes that are processes of any kind: which of them ended by themselves."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import wait_for

from penstock.local.local_node import LocalNode
from penstock.local.node_watch import NodeWatch
from penstock.local.processes import send_signal

STOP_S = 30.0
# Says so before it sleeps, and takes SIGTERM for the wish to end.
LASTS = "print('its last line', flush=True); import signal; signal.sigwait([signal.SIGTERM])"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[LocalNode]:
    one = LocalNode(id=2, port=1, data=tmp_path / "node-2", environment={}, command=(sys.executable, "-c", LASTS))
    yield one
    one.kill()


def start(node: LocalNode) -> None:
    """Once it runs its program."""
    before = said(node)
    node.start()
    wait_for(lambda: said(node) > before, "the process runs")


def said(node: LocalNode) -> int:
    return node.log.read_text().count("its last line") if node.log.exists() else 0


def crash(node: LocalNode) -> None:
    """Behind the back of what started it."""
    assert node.process is not None
    assert send_signal(node.process, signal.SIGKILL)
    wait_for(lambda: not node.is_running, "it is gone")


def test_a_process_that_ends_by_itself_is_seen_and_told_once(node: LocalNode) -> None:
    told: list[int] = []
    start(node)
    with NodeWatch(lambda: [node], on_end=told.append) as watch:
        assert not watch.ends
        crash(node)
        wait_for(lambda: told == [2], "its end is seen by the watch alone")
        (end,) = watch.ends
        assert (end.node_id, end.exit_status) == (2, -signal.SIGKILL)
        assert "exit status -9" in end.sentence
        assert end.log_tail == "  its last line"
    assert told == [2]
    assert len(watch.ends) == 1


@pytest.mark.parametrize("end", [LocalNode.kill, lambda node: node.stop(timeout_s=STOP_S)], ids=["kill", "stop"])
def test_a_process_that_was_told_to_end_did_not_end_by_itself(node: LocalNode, end: object) -> None:
    assert callable(end)
    watch = NodeWatch(lambda: [node])
    for _ in range(2):
        start(node)
        end(node)
        assert not watch.ends


def test_an_end_before_the_node_was_told_to_end_stays_one(node: LocalNode) -> None:
    start(node)
    crash(node)
    node.kill()
    watch = NodeWatch(lambda: [node])
    assert len(watch.ends) == 1


def test_a_process_that_crashes_after_a_restart_is_another_end(node: LocalNode) -> None:
    watch = NodeWatch(lambda: [node])
    for count in (1, 2):
        start(node)
        crash(node)
        assert len(watch.ends) == count
    start(node)
    node.kill()
    assert len(watch.ends) == 2


def test_what_goes_wrong_with_the_one_that_is_told_is_not_lost(node: LocalNode) -> None:
    def fail(_node_id: int) -> None:
        raise LookupError("no such proxy")

    start(node)
    watch = NodeWatch(lambda: [node], on_end=fail)
    watch.__enter__()
    crash(node)
    wait_for(lambda: watch._done is not None and watch._done.done(), "the watch has told it")
    with pytest.raises(LookupError, match="no such proxy"):
        watch.__exit__(None, None, None)
