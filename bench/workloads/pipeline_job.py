"""A job of the pipeline over a topic that is full: the rate of its batches, and CPU of brokers and of Spark.

The first batches are not counted: the JVM compiles for the first minute, with half of its CPU, and what it has compiled
when a batch begins depends on how long the batch before has taken. A batch has ended when its checkpoint says so, which
is looked at from outside.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final

import click

from ...client import clock
from ..payloads import values
from ..target import Target
from ..topics import leaders, new_topic, stored_records
from ..usage import cpu_s, measured
from ..wire import ProduceFrame, Socket, batch
from .prepared import BATCH_BYTES

_TIMEOUT_S: Final = 600.0
_GB: Final = 1e9
_SIZE_BYTES: Final = 1024
# Beside its value: lengths, timestamp and offset of a record in a batch.
_RECORD_OVERHEAD: Final = 8
_LAST_LINES: Final = 10


def pipeline_job(
    target: Target, *, job: str, partitions: int, batch_records: int, warm_up_batches: int, batches: int
) -> Mapping[str, float | None]:
    """Runs `job` in batches of about `batch_records` records of 1 KiB: some that are not counted, then `batches`."""
    last = warm_up_batches + batches
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder, ExitStack() as stack:
        source = stack.enter_context(new_topic(target, partitions))
        count = _fill(target, source, partitions, batch_records * last)
        told = stack.enter_context((Path(folder) / "told").open("w+", encoding="utf-8"))
        process = _started(target, job, source, Path(folder), -(-count // last), told)
        try:
            commits = Path(folder) / "checkpoints" / f"{job}-v1" / "main" / "commits"
            _wait(process, commits, warm_up_batches, told)
            spark_s = cpu_s((process.pid,))
            first = _committed(commits)
            with measured(target.pids) as usage:
                _wait(process, commits, last, told)
            spark_s = cpu_s((process.pid,)) - spark_s
        finally:
            _end(process)
    size_gb = count / last * (last - first) * _SIZE_BYTES / _GB
    return {
        "job_mb_per_s": size_gb * 1000 / usage.seconds,
        "job_batch_ms": usage.seconds * 1000 / (last - first),
        "job_broker_cpu_s_per_gb": None if usage.broker_cpu_s is None else usage.broker_cpu_s / size_gb,
        "job_spark_cpu_s_per_gb": spark_s / size_gb,
    }


def _fill(target: Target, topic: str, partitions: int, records: int) -> int:
    per_batch = min(BATCH_BYTES // (_SIZE_BYTES + _RECORD_OVERHEAD), -(-records // partitions))
    data = batch(values(_SIZE_BYTES)[:per_batch])
    rounds = -(-records // (per_batch * partitions))
    with ExitStack() as stack:
        for address, own in leaders(target, topic).items():
            connection = stack.enter_context(Socket(address))
            request = ProduceFrame.of(topic, dict.fromkeys(own, data))
            for _ in range(rounds):
                connection.send(request.data)
                request.check(connection.receive_answer())
    count = rounds * per_batch * partitions
    stored = stored_records(target, topic, partitions)
    if stored != count:
        raise click.ClickException(f"{target.name}: of {count} acknowledged records {stored} are there.")
    return count


def _started(
    target: Target, job: str, topic: str, folder: Path, batch_records: int, told: IO[str]
) -> subprocess.Popen[bytes]:
    settings: Sequence[str] = (
        f"topics={topic}",
        f"max_offsets_per_trigger={batch_records}",
        *((f"table.location={folder / 'table'}",) if job == "lake" else ()),
    )
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "penstock", "pipeline", "run", job),
            *("--bootstrap", target.bootstrap, "--checkpoint", str(folder / "checkpoints"), "--available-now"),
            *(word for setting in settings for word in ("--set", setting)),
            *("--master", "local[2]", "--conf", "spark.ui.enabled=false"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=told,
        stderr=told,
        cwd=folder,
        start_new_session=True,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kills driver and JVM, which writes to the folder as long as it lives."""

    def is_gone() -> bool:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return True
        process.poll()
        return False

    clock.wait_until(is_gone, timeout_s=_TIMEOUT_S)
    process.wait()


def _wait(process: subprocess.Popen[bytes], commits: Path, count: int, told: IO[str]) -> None:
    def is_there() -> bool:
        return _committed(commits) >= count or process.poll() is not None

    if not clock.wait_until(is_there, timeout_s=_TIMEOUT_S) or _committed(commits) < count:
        told.seek(0)
        last = told.read().splitlines()[-_LAST_LINES:]
        raise click.ClickException("The job did not come to an end:\n" + "\n".join(last))


def _committed(commits: Path) -> int:
    return sum(1 for entry in commits.glob("*") if entry.name.isdigit()) if commits.is_dir() else 0
