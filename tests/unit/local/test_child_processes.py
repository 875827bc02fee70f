"""Children end with the process that started them, and with no thread of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from waiting import DEADLINE_S, wait_for

from penstock.local.child_processes import start_child
from penstock.local.processes import ProcessId, identify, is_running, send_signal, wait_gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")

SLEEPS = (sys.executable, "-S", "-E", "-c", "import time; time.sleep(600)")
# Starts a child in a thread that ends, forks another process that starts one too, and tells the ids.
PARENT = """
import os, sys, time
from threading import Thread
from penstock.local.child_processes import start_child

started = []

def start():
    started.append(start_child(sys.argv[1:]).pid)

thread = Thread(target=start)
thread.start()
thread.join()
reader, writer = os.pipe()
forked = os.fork()
if forked == 0:
    start()
    os.write(writer, str(started[-1]).encode())
    time.sleep(600)
print(*started, os.read(reader, 20).decode(), forked, flush=True)
time.sleep(600)
"""


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-P", "-c", PARENT, *SLEEPS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        yield process
        process.kill()


def test_a_child_ends_when_its_parent_is_killed_and_not_with_the_thread_that_asked_for_it(
    parent: subprocess.Popen[str],
) -> None:
    assert parent.stdout is not None
    child, grandchild, forked = map(identity_of, map(int, parent.stdout.readline().split()))
    try:
        assert is_running(child)
        assert is_running(grandchild)
        parent.kill()
        assert wait_gone(child, timeout_s=DEADLINE_S)
        assert is_running(grandchild), "it is another process's child"
    finally:
        assert send_signal(forked, signal.SIGKILL)
    assert wait_gone(grandchild, timeout_s=DEADLINE_S)


def identity_of(pid: int) -> ProcessId:
    found = identify(pid)
    assert found is not None
    return found


def test_a_child_outlives_the_thread_that_asked_for_it() -> None:
    started: list[subprocess.Popen[bytes]] = []
    with ThreadPoolExecutor(1) as asking:
        asking.submit(lambda: started.append(start_child(SLEEPS))).result()
    (child,) = started
    # One that is told after it would have ended first.
    other = start_child(SLEEPS)
    try:
        other.send_signal(signal.SIGTERM)
        assert other.wait(DEADLINE_S) == -signal.SIGTERM
        assert child.poll() is None
    finally:
        child.kill()
        child.wait(DEADLINE_S)


def test_a_child_has_the_streams_and_the_folder_that_it_was_given(tmp_path: Path) -> None:
    command = [sys.executable, "-S", "-E", "-c", "import os; print(input(), os.getcwd(), os.environ['ONE'])"]
    child = start_child(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path, env={"ONE": "1"}, start_new_session=True
    )
    output, _ = child.communicate(b"line\n", timeout=DEADLINE_S)
    assert output.decode().split() == ["line", str(tmp_path), "1"]


def test_a_program_that_is_not_there_is_told() -> None:
    with pytest.raises(FileNotFoundError):
        start_child(["/no/such/program"])
    wait_for(lambda: start_child([sys.executable, "-S", "-c", ""]).wait(DEADLINE_S) == 0, "others are started")
