"""Only the process that was meant is ever signalled."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client import clock
from penstock.local.processes import ProcessId, identify, is_running, send_signal, wait_gone
from penstock.protocol.structs import replace


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-S", "-E", "-c", "input()"], stdin=subprocess.PIPE)
    with process:
        yield process
        process.kill()


def identity_of(child: subprocess.Popen[bytes]) -> ProcessId:
    found = identify(child.pid)
    assert found is not None
    return found


def test_identity_stays_while_the_process_runs(child: subprocess.Popen[bytes]) -> None:
    assert identify(child.pid) == identity_of(child)
    assert is_running(identity_of(child))


def test_process_with_another_start_time_is_not_signalled(child: subprocess.Popen[bytes]) -> None:
    before = replace(identity_of(child), started="another boot:1")
    assert not is_running(before)
    assert not send_signal(before, signal.SIGKILL)
    assert wait_gone(before, timeout_s=0)
    assert child.poll() is None


def test_signalled_process_is_gone_even_before_it_is_reaped(child: subprocess.Popen[bytes]) -> None:
    process = identity_of(child)
    assert not wait_gone(process, timeout_s=0)
    assert send_signal(process, signal.SIGKILL)
    assert wait_gone(process, timeout_s=30)
    assert not is_running(process)
    assert child.wait() == -signal.SIGKILL


# Ends the first thread only: the system call that C's pthread_exit ends in, and a second thread that stays.
FIRST_THREAD_ENDS = """
import ctypes, platform, sys, threading
threading.Thread(target=sys.stdin.readline).start()
sys.stdout.write("started\\n")
sys.stdout.flush()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads end on their own in Linux")
def test_process_is_there_while_one_of_its_threads_is() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FIRST_THREAD_ENDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"started\n"
        process = identity_of(child)
        stat = Path(f"/proc/{child.pid}/stat")
        assert clock.wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z", timeout_s=30)
        assert is_running(process)
        assert not wait_gone(process, timeout_s=0)
        assert send_signal(process, signal.SIGKILL)
        assert wait_gone(process, timeout_s=30)


def test_reaped_process_is_not_signalled(child: subprocess.Popen[bytes]) -> None:
    process = identity_of(child)
    child.kill()
    child.wait()
    assert identify(child.pid) is None
    assert not send_signal(process, signal.SIGKILL)
    assert wait_gone(process, timeout_s=0)
