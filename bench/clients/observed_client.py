"""A program of this package that runs, and when it printed which event."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ...client import clock
from ...local.child_processes import start_child
from ...local.errors import ClusterError

_STOP_TIMEOUT_S: Final = 5.0
_POLL_S: Final = 0.02
_ERRORS_SHOWN: Final = 1_000


class ObservedClient:
    """Use in a `with` statement, which ends it."""

    def __init__(self, command: Sequence[str], errors: Path) -> None:
        """Standard error goes into the file `errors`."""
        self._command = command
        self._errors = errors
        self._printed_s: defaultdict[str, list[float]] = defaultdict(list)

    def __enter__(self) -> Self:
        with self._errors.open("wb") as errors:
            self._process = start_child(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
            )
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="observed")
        self._pool.submit(self._read)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        assert process.stdin is not None
        try:
            # Java's standard input does not tell that it has ended.
            process.stdin.write(b"\n")
            process.stdin.close()
            process.wait(_STOP_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired):
            process.kill()
            process.wait()
        self._pool.shutdown()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._printed_s[line.decode().strip()].append(clock.monotonic_s())

    def times_s(self, event: str) -> Sequence[float]:
        """When it printed that event, by the monotonic clock."""
        return tuple(self._printed_s[event])

    def wait_for(self, event: str, count: int, *, after_s: float, timeout_s: float) -> None:
        """Until it has printed the event so often after that time. Raises ClusterError."""
        deadline_s = clock.monotonic_s() + timeout_s
        while sum(time_s > after_s for time_s in self._printed_s[event]) < count:
            if self._process.poll() is not None or clock.monotonic_s() > deadline_s:
                said = self._errors.read_bytes()[-_ERRORS_SHOWN:].decode(errors="replace").strip()
                raise ClusterError(f"{self._command[0]} printed no {event} for {timeout_s:g} s, or has ended: {said}")
            clock.pause(_POLL_S)
