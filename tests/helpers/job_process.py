"""A job in a process of its own, as an operator runs it, and its end by SIGKILL: of the driver and of its JVM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from waiting import wait_for

from penstock.local.local_node import environment_without_properties
from penstock.local.processes import ProcessId, identify, send_signal

TIMEOUT_S = 240.0
"""A session of Spark on a busy machine, and its batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProcess:
    """`checkpoint` is the folder that the job was given, `query` the name of the query's folder in it."""

    process: subprocess.Popen[bytes]
    log: Path
    checkpoint: Path
    query: str

    @property
    def committed(self) -> int:
        """Batches that Spark has written down as done, of all lives on this checkpoint."""
        return committed_batches(self.checkpoint, self.query)

    def wait_committed(self, count: int) -> None:
        """Raises AssertionError with the end of the log when the process ends before."""

        def is_done() -> bool:
            assert self.process.poll() is None, f"the job ended with {self.process.returncode}: {self.tail()}"
            return self.committed >= count

        wait_for(is_done, lambda: f"{count} batches, not {self.committed}: {self.tail()}", timeout_s=TIMEOUT_S)

    def kill(self) -> None:
        """SIGKILL to the driver and to all that it started, which is the JVM."""
        pids = [self.process.pid, *descendants(self.process.pid)]
        assert len(pids) > 1, "a driver without a JVM"
        found: list[ProcessId] = [one for pid in pids if (one := identify(pid)) is not None]
        for one in found:
            send_signal(one, signal.SIGKILL)
        self.process.wait()

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]


@contextmanager
def job_process(
    job: str, folder: Path, options: Mapping[str, str], *, life: int, settings: Mapping[str, str] | None = None
) -> Iterator[JobProcess]:
    """Runs until it is killed; what still runs at the end is."""
    checkpoint = folder / "checkpoint"
    log = folder / f"{job}-{life}.log"
    spark = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", **(settings or {})}
    command = [
        *(sys.executable, "-m", "penstock", "pipeline", "run", job, "--master", "local[2]"),
        *("--checkpoint", str(checkpoint)),
        *(part for key, value in options.items() for part in ("--set", f"{key}={value}")),
        *(part for key, value in spark.items() for part in ("--conf", f"{key}={value}")),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment_without_properties(os.environ)
        )
    try:
        yield JobProcess(process=process, log=log, checkpoint=checkpoint, query=f"{job}-v1/main")
    finally:
        if process.poll() is None:
            left = [process.pid, *descendants(process.pid)]
            for one in [one for pid in left if (one := identify(pid)) is not None]:
                send_signal(one, signal.SIGKILL)
            process.wait()


def committed_batches(checkpoint: Path, query: str) -> int:
    folder = checkpoint / query / "commits"
    return sum(1 for one in folder.iterdir() if one.name.isdigit()) if folder.exists() else 0


def descendants(pid: int) -> list[int]:
    """Processes that a process started, and those that they did."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(part) for part in path.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        for child in children:
            found += [child, *descendants(child)]
    return found
