"""The clients of a workload as processes: started, told to stop and drain, ended by their ids.

In the folder of the run lie, for each client, its history `client-N.jsonl` and what it wrote to standard error,
`client-N.stderr`.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ...client import clock
from ...local.apache_kafka.java_programs import java_command
from ...local.child_processes import start_child
from ..histories.client_history import merged
from ..histories.operation import Operation
from .client_program import NOT_CAUGHT_UP, STOPPED
from .workload import ClientProgram, Workload

_SOURCES: Final = Path(__file__).parent
STOP_TIMEOUT_S: Final = 45.0
"""Longer than the longest operation: a transaction that nothing answers."""
DRAIN_TIMEOUT_S: Final = 90.0
_KILL_TIMEOUT_S: Final = 30.0
_STDERR_TAIL: Final = 2_000


def fetch_programs(workload: Workload) -> None:
    """What its clients need from elsewhere. Raises ClusterError where this machine cannot have it."""
    for program in workload.programs:
        if program.client == "java":
            java_command(_SOURCES / f"{program.module}.java")


class ClientProcesses:
    """Clients number 0, 1, …, in the order of the workload's programs. Not safe to share between threads."""

    def __init__(
        self,
        workload: Workload,
        folder: Path,
        *,
        bootstrap: Callable[[int], str],
        topic: str,
        seed: int,
        start_ns: int,
        options: Sequence[str] = (),
        command: Callable[[int], Sequence[str]] = lambda _number: (),
    ) -> None:
        """Nothing is started yet. `bootstrap` tells the address of each client by its number, `command` what stands in
        front of its command; `options` go to all of them, as `("--pause-ms", "5")`."""
        self.workload = workload
        self._folder = folder
        self._bootstrap = bootstrap
        self._in_front = command
        self._topic = topic
        self._seed = seed
        self._start_ns = start_ns
        self._options = tuple(options)
        self._programs = [program for program in workload.programs for _ in range(program.count)]
        self._clients: list[subprocess.Popen[bytes]] = []
        self.failures: list[str] = []
        """A sentence for each client that did not end as it should."""

    def __len__(self) -> int:
        """How many clients there are."""
        return len(self._programs)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Raises ClusterError where a program of the workload needs what this machine does not have; `fetch_programs`
        says so before there is a cluster."""
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            for number, program in enumerate(self._programs):
                with self._stderr(number).open("ab") as errors:
                    self._clients.append(
                        start_child(
                            self._command(number, program),
                            stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE,
                            stderr=errors,
                        )
                    )
        except BaseException:
            self.kill()
            raise

    def drain(self, *, stop_timeout_s: float = STOP_TIMEOUT_S, drain_timeout_s: float = DRAIN_TIMEOUT_S) -> None:
        """All stop writing, a stage after the other, and only then all read to the ends. Those that take longer, in
        their stage or with reading, are killed; see `failures`."""
        for stage in sorted({program.stage for program in self._programs}):
            self._stop(
                [number for number, program in enumerate(self._programs) if program.stage == stage],
                timeout_s=stop_timeout_s,
            )
        self._tell(b"drain\n", range(len(self._clients)))
        deadline_s = clock.monotonic_s() + drain_timeout_s
        for number, client in enumerate(self._clients):
            try:
                status = client.wait(max(0.0, deadline_s - clock.monotonic_s()))
            except subprocess.TimeoutExpired:
                self._give_up(number, f"did not end within {drain_timeout_s:g} s")
                continue
            if status == NOT_CAUGHT_UP:
                self._note(number, "did not come to the ends of all partitions in time")
            elif status:
                self._note(number, f"ended with status {status}")
        self._close_pipes()

    def kill(self) -> None:
        """SIGKILL to those that are left."""
        for client in self._clients:
            if client.poll() is None:
                client.kill()
                client.wait(_KILL_TIMEOUT_S)
        self._close_pipes()

    def history(self, *, others: Sequence[Operation] = ()) -> list[Operation]:
        """What all have done, with `others` between. Raises ClusterError for a damaged file."""
        paths = (self._file(number) for number in range(len(self._programs)))
        return merged((path for path in paths if path.exists()), others=others)

    def _command(self, number: int, program: ClientProgram) -> list[str]:
        if program.client == "java":
            runs = [*java_command(_SOURCES / f"{program.module}.java")]
        else:
            runs = [sys.executable, "-P", "-m", f"{__package__}.{program.module}", "--client", program.client]
        return [
            *self._in_front(number),
            *runs,
            *("--bootstrap", self._bootstrap(number), "--topic", self._topic),
            *("--partitions", str(self.workload.topics[0].partitions if self.workload.topics else 1)),
            *("--history", str(self._file(number)), "--process", str(number), "--stride", str(len(self._programs))),
            *("--start-ns", str(self._start_ns), "--seed", str(self._seed)),
            *self._options,
            *program.options,
        ]

    def _stop(self, numbers: Sequence[int], *, timeout_s: float) -> None:
        self._tell(b"stop\n", numbers)
        deadline_s = clock.monotonic_s() + timeout_s
        for number in numbers:
            client = self._clients[number]
            if not _says(client, STOPPED.encode(), deadline_s=deadline_s) and clock.monotonic_s() >= deadline_s:
                self._give_up(number, f"did not stop within {timeout_s:g} s")

    def _tell(self, line: bytes, numbers: Sequence[int]) -> None:
        for client in (self._clients[number] for number in numbers):
            assert client.stdin is not None, "it was started with a pipe"
            try:
                client.stdin.write(line)
                client.stdin.flush()
            except BrokenPipeError:
                # It has ended, and its status is looked at.
                continue

    def _give_up(self, number: int, why: str) -> None:
        client = self._clients[number]
        client.kill()
        client.wait(_KILL_TIMEOUT_S)
        self._note(number, why)

    def _note(self, number: int, why: str) -> None:
        told = self._stderr(number).read_text(errors="replace")[-_STDERR_TAIL:].strip()
        self.failures.append(f"client {number} ({self._programs[number].module}) {why}" + (f": {told}" if told else ""))

    def _close_pipes(self) -> None:
        for client in self._clients:
            for pipe in (client.stdin, client.stdout):
                if pipe is not None and not pipe.closed:
                    try:
                        pipe.close()
                    except BrokenPipeError:
                        continue

    def _file(self, number: int) -> Path:
        return self._folder / f"client-{number}.jsonl"

    def _stderr(self, number: int) -> Path:
        return self._folder / f"client-{number}.stderr"


def _says(client: subprocess.Popen[bytes], word: bytes, *, deadline_s: float) -> bool:
    """Waits until it has written that line."""
    assert client.stdout is not None, "it was started with a pipe"
    descriptor, written = client.stdout.fileno(), b""
    while word not in written.split(b"\n"):
        if not select.select([descriptor], [], [], max(0.0, deadline_s - clock.monotonic_s()))[0]:
            return False
        data = os.read(descriptor, 4096)
        if not data:
            return False
        written += data
    return True
