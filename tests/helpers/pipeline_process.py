"""A job as its user runs it: `penstock pipeline run` in a process, whose driver and JVM can be killed at any batch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from waiting import wait_for

_START_TIMEOUT_S: Final = 240.0
_LAST_CHARACTERS: Final = 4000
QUICK_SOURCE: Final = {"source_kafka.request.timeout.ms": "3000", "source_kafka.default.api.timeout.ms": "3000"}
"""Java's admin client waits that long for a leader that is gone before it asks who leads now."""
# A JVM that lives for a minute compiles with its first compiler alone, and one thread collects its garbage.
_SHORT_LIFE: Final = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


class PipelineProcess:
    """A driver and the JVM that is its child."""

    def __init__(self, arguments: Sequence[str], *, folder: Path, commits: Path) -> None:
        """`folder` is where it runs and tells what it has to say; `commits` is that of its main query's checkpoint."""
        self._log = folder / f"told-{len([*folder.glob('told-*')])}"
        self._commits = commits
        with self._log.open("wb") as file:
            # A group of its own: what it has started ends with it, whatever happens to it.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "penstock", "pipeline", "run", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd=folder,
                env={**os.environ, **_SHORT_LIFE},
                start_new_session=True,
            )

    @property
    def told(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def wait_batches(self, count: int) -> None:
        """Until so many batches have been committed in all runs together. AssertionError when it ends before."""

        def is_there() -> bool:
            return committed_batches(self._commits) >= count or self._process.poll() is not None

        wait_for(is_there, lambda: f"{count} batches of {self._commits}; {self._last()}", timeout_s=_START_TIMEOUT_S)
        assert committed_batches(self._commits) >= count, self._last()

    def kill(self) -> None:
        """SIGKILL of driver and JVM at once."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def terminate(self) -> None:
        """SIGTERM to the driver alone, as a supervisor sends it."""
        self._process.terminate()

    def wait(self, *, status: int = 0) -> None:
        """Until it ends by itself. AssertionError for another exit status."""
        found = self._process.wait()
        assert found == status, f"exit status {found}; {self._last()}"

    def _last(self) -> str:
        return self.told[-_LAST_CHARACTERS:]


@contextmanager
def pipeline_process(
    job: str, *, bootstrap: str, folder: Path, settings: Sequence[str] = (), options: Sequence[str] = (), name: str = ""
) -> Iterator[PipelineProcess]:
    """`job` with its checkpoint below `folder`, on two threads; `settings` are `key=value`, `options` those of the
    command. It is killed at the end if it still runs."""
    checkpoint = folder / "checkpoints"
    own = (*settings, *((f"name={name}",) if name else ()))
    arguments = (
        *(job, "--bootstrap", bootstrap, "--checkpoint", str(checkpoint), "--master", "local[2]"),
        *(word for setting in own for word in ("--set", setting)),
        *("--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=2"),
        *options,
    )
    folder.mkdir(parents=True, exist_ok=True)
    process = PipelineProcess(arguments, folder=folder, commits=checkpoint / f"{name or job}-v1" / "main" / "commits")
    try:
        yield process
    finally:
        process.kill()


def committed_batches(commits: Path) -> int:
    """How many batches a checkpoint says are done."""
    return sum(1 for entry in commits.iterdir() if entry.name.isdigit()) if commits.is_dir() else 0
