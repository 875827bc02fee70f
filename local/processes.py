"""Processes of this machine, named so that a recycled pid is never taken for the process that had it before."""

import os
import select
import signal
import subprocess
from pathlib import Path

from msgspec import Struct

from ..client import clock

_PROC = Path("/proc")


class ProcessId(Struct, frozen=True, kw_only=True):
    """A pid, and what only the process that has it now can show for it."""

    pid: int
    # When it started: on Linux the boot and the clock ticks since, elsewhere the words of `ps`.
    started: str


def identify(pid: int) -> ProcessId | None:
    """The process with this pid; None without one, or for a zombie that waits to be reaped."""
    started = _started_by_proc(pid) if (_PROC / "self" / "stat").exists() else _started_by_ps(pid)
    return None if started is None else ProcessId(pid=pid, started=started)


def is_running(process: ProcessId) -> bool:
    return identify(process.pid) == process


def is_stopped(process: ProcessId) -> bool:
    """Whether the process stands still by SIGSTOP."""
    if not is_running(process):
        return False
    if (_PROC / "self" / "stat").exists():
        try:
            state = (_PROC / str(process.pid) / "stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
    else:
        state = _told_by_ps(process.pid).strip()
    return state.startswith("T")


def send_signal(process: ProcessId, signal_number: signal.Signals) -> bool:
    """Signals exactly this process; False when it is gone, even when its pid changes hands meanwhile."""
    descriptor = _open_pidfd(process.pid)
    if descriptor is None:
        # Without pidfd (not Linux, or gone already) a moment is left between look and signal; no pid is back so fast.
        if not is_running(process):
            return False
        os.kill(process.pid, signal_number)
        return True
    try:
        # The descriptor was opened first: if the process is still ours now, the descriptor is ours too.
        if not is_running(process):
            return False
        signal.pidfd_send_signal(descriptor, signal_number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def wait_gone(process: ProcessId, *, timeout_s: float) -> bool:
    """Waits until the process has ended, at most so long; returns whether it has."""
    descriptor = _open_pidfd(process.pid)
    if descriptor is None:
        return clock.wait_until(lambda: not is_running(process), timeout_s=timeout_s)
    try:
        if not is_running(process):
            return True
        # A pidfd becomes readable when its process ends.
        return bool(select.select([descriptor], [], [], timeout_s)[0])
    finally:
        os.close(descriptor)


def _open_pidfd(pid: int) -> int | None:
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # gone, or a kernel without pidfd
        return None


def _started_by_proc(pid: int) -> str | None:
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
        boot = (_PROC / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # Behind the command, which may itself hold blanks and brackets: state is the first field, the number of threads the
    # eighteenth, start time the twentieth.
    fields = stat.rpartition(")")[2].split()
    # A killed process whose thread still waits for the disk reads as a zombie, but holds its sockets and locks.
    has_ended = fields[0] in "ZX" and int(fields[17]) <= 1
    return None if has_ended else f"{boot}:{fields[19]}"


def _told_by_ps(pid: int) -> str:
    """State and start."""
    answer = subprocess.run(
        ["ps", "-o", "state=,lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    return answer.stdout


def _started_by_ps(pid: int) -> str | None:
    state, _, started = _told_by_ps(pid).strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()
