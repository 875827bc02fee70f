"""What processes use, by Linux: CPU time and resident memory, living descendants included."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import clock_gettime
from typing import Final

from ..client import clock

_PROC: Final = Path("/proc")
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_MIB: Final = 1024 * 1024
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_PROCESS_CLOCK: Final = 2
# The field of /proc/PID/stat behind the command, of which the state is the first.
_RESIDENT_PAGES: Final = 21


@dataclass(slots=True, kw_only=True)
class Usage:
    """What went by in one measured stretch. CPU of the brokers is None where their processes are not known."""

    seconds: float = 0.0
    broker_cpu_s: float | None = None
    client_cpu_s: float = 0.0
    others_cores: float | None = None
    """Cores that neither the brokers nor this client had: the load of others."""


@contextmanager
def measured(pids: Iterable[int]) -> Iterator[Usage]:
    """Measures what happens inside; the value is filled in at the end."""
    roots = tuple(pids)
    usage = Usage()
    broker_s, client_s, busy_s = cpu_s(roots), _own_cpu_s(), _busy_s()
    start_s = clock.monotonic_s()
    yield usage
    usage.seconds = clock.monotonic_s() - start_s
    usage.client_cpu_s = _own_cpu_s() - client_s
    if roots:
        usage.broker_cpu_s = cpu_s(roots) - broker_s
        others_s = _busy_s() - busy_s - usage.client_cpu_s - usage.broker_cpu_s
        usage.others_cores = max(0.0, others_s / usage.seconds)


def cpu_s(pids: Iterable[int]) -> float:
    """User and system time that these processes and their living descendants have had."""
    return sum(map(_cpu_s, _descendants(pids)))


def resident_mib(pids: Iterable[int]) -> float:
    """Resident memory of these processes and their living descendants; what they share counts for each."""
    fields = (_stat(pid) for pid in _descendants(pids))
    return sum(int(field[_RESIDENT_PAGES]) for field in fields if field) * _PAGE_BYTES / _MIB


def proportional_mib(pids: Iterable[int]) -> float:
    """The same, of which what several processes share counts once: each has its part of it (PSS)."""
    return sum(map(_proportional_kib, _descendants(pids))) / 1024


def open_files(pids: Iterable[int]) -> int:
    """Descriptors of these processes and their living descendants."""
    count = 0
    for pid in _descendants(pids):
        with suppress(OSError):  # gone meanwhile
            count += sum(1 for _ in (_PROC / str(pid) / "fd").iterdir())
    return count


def load_average() -> float:
    """Of the last minute."""
    return os.getloadavg()[0]


def _descendants(pids: Iterable[int]) -> set[int]:
    found: set[int] = set()
    waiting = list(pids)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting.extend(_children(pid))
    return found


def _children(pid: int) -> list[int]:
    try:
        threads = list((_PROC / str(pid) / "task").iterdir())
        return [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:  # gone meanwhile
        return []


def _cpu_s(pid: int) -> float:
    """By the process's own clock, which `clock_getcpuclockid(3)` numbers so: /proc counts in ticks of 10 ms."""
    try:
        return clock_gettime(~pid << 3 | _PROCESS_CLOCK)
    except OSError:  # gone meanwhile
        return 0.0


def _proportional_kib(pid: int) -> int:
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:  # gone meanwhile
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def _stat(pid: int) -> list[str]:
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _own_cpu_s() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


def _busy_s() -> float:
    """CPU time of the whole machine, without idle, waiting for the disk, and time stolen by the host."""
    if not (_PROC / "stat").exists():
        return 0.0
    user, nice, system, _idle, _wait, interrupt, soft_interrupt, *_ = (
        int(field) for field in (_PROC / "stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + interrupt + soft_interrupt) / _TICKS_PER_S
