"""A standalone cluster of Spark on the loopback: a master and workers, each a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from waiting import wait_for

_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkCluster:
    master: str
    """spark://HOST:PORT."""
    workers: tuple[Path, ...]
    """Their folders: each has one for every application that it had an executor of."""

    def executors(self) -> int:
        """How many workers have run an executor."""
        return sum(1 for folder in self.workers if any(folder.glob("app-*")))


@contextmanager
def spark_cluster(folder: Path, *, workers: int) -> Iterator[SparkCluster]:
    """One core and 1 GiB a worker; every process is ended at the end."""
    with ExitStack() as stack:
        log = stack.enter_context(_running(folder / "master", "master.Master", "--host", "127.0.0.1", "--port", "0"))
        master = _told(log, r"Starting Spark master at (spark://\S+)")
        folders = tuple(folder / f"worker-{number}" for number in range(workers))
        logs = [
            stack.enter_context(
                _running(
                    own,
                    *("worker.Worker", "--host", "127.0.0.1", "--port", "0"),
                    *("--cores", "1", "--memory", "1g", "--work-dir", str(own), master),
                )
            )
            for own in folders
        ]
        for one in logs:
            _told(one, r"(Successfully registered with master)")
        yield SparkCluster(master=master, workers=folders)


@contextmanager
def _running(folder: Path, program: str, *arguments: str) -> Iterator[Path]:
    import pyspark

    folder.mkdir(parents=True)
    home = Path(pyspark.__file__).parent
    log = folder / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}", "--webui-port", "0", *arguments],
            env={
                **os.environ,
                "SPARK_HOME": str(home),
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_LOCAL_IP": "127.0.0.1",
            },
            stdout=file,
            stderr=file,
        )
    try:
        yield log
    finally:
        process.terminate()
        try:
            process.wait(_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _told(log: Path, pattern: str) -> str:
    def found() -> list[str]:
        return re.findall(pattern, log.read_text(encoding="utf-8", errors="replace"))

    return wait_for(found, f"{pattern} in {log}")[0]
