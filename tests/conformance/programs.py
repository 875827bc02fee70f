"""Runs other people's programs: their output in a file, and nothing of them left when the time is over."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def run_program(
    command: Sequence[str | Path],
    *,
    log: Path,
    timeout_s: float,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> int | None:
    """The exit status of a program whose output is appended to `log`; None when it was killed because it did not end.

    `environment` is added to this program's own, without `CI`: what suites leave out on build machines is wanted here.
    Raises OSError when the program cannot be started.
    """
    own = {name: value for name, value in os.environ.items() if name != "CI"}
    with log.open("ab") as output:
        # A session of its own: what the program starts goes with it.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**own, **(environment or {})},
            start_new_session=True,
        )
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def tail(log: Path, size_bytes: int = 2000) -> str:
    """The end of what a program printed."""
    return log.read_bytes()[-size_bytes:].decode(errors="replace").strip()
