"""Child processes that end when this process does, however it ends: by SIGKILL too.

The kernel does it (Linux: PR_SET_PDEATHSIG), as a process that is killed can end nothing. On other systems what was
started stays. The signal comes when the *thread* ends that started the child, so all are started by one thread that
lives as long as this process.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Lock
from typing import IO, Any, Final

_PR_SET_PDEATHSIG: Final = 1
# Loaded here: between fork and exec nothing may be.
_LIBC: Final = ctypes.PyDLL(None) if sys.platform == "linux" else None


class _Starter:
    """The one thread."""

    _turn: Lock
    _pool: ThreadPoolExecutor | None

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """In a forked process, which does not have the thread, and may have a lock that is held."""
        self._turn = Lock()
        self._pool = None

    def begin(self) -> ThreadPoolExecutor:
        with self._turn:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix="child-processes")
                # A thread has the namespaces of the one that makes it.
                self._pool.submit(int).result()
            return self._pool


_STARTER: Final = _Starter()
os.register_at_fork(after_in_child=_STARTER.forget)


def begin() -> None:
    """Makes the thread, before the calling one enters other namespaces."""
    _STARTER.begin()


def start_child(
    command: Sequence[str],
    *,
    stdin: int | IO[Any] | None = None,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    start_new_session: bool = False,
) -> subprocess.Popen[bytes]:
    """`subprocess.Popen` with these arguments, of a child that ends with this process. Raises OSError.

    It is in the namespaces in which `begin` was called, or this for the first time.
    """
    end = partial(end_with_parent, os.getpid())
    started = _STARTER.begin().submit(
        lambda: subprocess.Popen(
            command,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=env,
            cwd=cwd,
            start_new_session=start_new_session,
            # Calls one function of libc, and nothing that takes a lock.
            preexec_fn=end,
        )
    )
    return started.result()


def end_with_parent(parent: int) -> None:
    """In a process that was forked from the main thread, or by `start_child`: SIGKILL when that ends, or has ended."""
    if _LIBC is None:
        return
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # It ended before this was asked for.
        os.kill(os.getpid(), signal.SIGKILL)
