"""Only the process that was meant is ever signalled."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from penstock.chaos.processes import ProcessId, identify, is_running, send_signal, wait_gone


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


def test_reaped_process_is_not_signalled(child: subprocess.Popen[bytes]) -> None:
    process = identity_of(child)
    child.kill()
    child.wait()
    assert identify(child.pid) is None
    assert not send_signal(process, signal.SIGKILL)
    assert wait_gone(process, timeout_s=0)
