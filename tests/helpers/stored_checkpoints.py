"""Checkpoints that an earlier version wrote, over topics whose records are known, so that the topics can be made again.

Run as a program it writes those of this version: `python tests/helpers/stored_checkpoints.py VERSION`.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

import click
from pipeline_process import pipeline_process
from pipeline_topics import Sent, create_topics, produce

from penstock.local.cluster import LocalCluster

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "pipeline"
TOPIC: Final = "stored-checkpoint"
COUNTS: Final = "stored-checkpoint-counts"
PARTITIONS: Final = 3
BEFORE: Final = 600
"""Records that the stored checkpoint has behind it."""
AFTER: Final = 900
"""How many there are when it is continued."""
_T0_MS: Final = 1_767_225_600_000
_WINDOW_MS: Final = 600_000
_JOBS: Final = ("lake", "windows")


def settings(job: str, folder: Path) -> tuple[str, ...]:
    """What a job is told, in every version."""
    value = ("value.format=json", "value.schema=number BIGINT, at BIGINT, kind STRING")
    own = {
        "lake": (f"table.location={folder / 'table'}",),
        "windows": (
            *("event_time=at", f"window_ms={_WINDOW_MS}", "watermark_delay_ms=3600000"),
            *("group_by=kind", f"output_topic={COUNTS}"),
        ),
    }
    return (f"topics={TOPIC}", "max_offsets_per_trigger=200", *value, *own[job])


def fill(bootstrap: str, start: int, end: int) -> None:
    """Records of these numbers, each in the partition that it always has."""
    produce(bootstrap, TOPIC, (_record(number) for number in range(start, end)))


def expected_counts(end: int) -> dict[str, int]:
    """By key of the result, how many records each window has."""
    counts: Counter[str] = Counter()
    for number in range(end):
        event = _event(number)
        start_s = int(event["at"]) // _WINDOW_MS * _WINDOW_MS // 1000 - _T0_MS // 1000
        counts[f"2026-01-01T00:{start_s // 60:02d}:00.000Z|{event['kind']}"] += 1
    return dict(counts)


def make_topics(bootstrap: str) -> None:
    create_topics(bootstrap, TOPIC, partition_count=PARTITIONS)
    create_topics(bootstrap, COUNTS, configs={"cleanup.policy": "compact"})


def unpack(version: str, job: str, folder: Path) -> None:
    """Checkpoint and table of a job as a version left them behind `BEFORE` records."""
    with tarfile.open(GOLDEN / f"{job}-{version}.tar.gz") as archive:
        archive.extractall(folder, filter="data")


def record(version: str) -> None:
    """Writes the archives of all jobs."""
    with tempfile.TemporaryDirectory() as folder, LocalCluster(Path(folder) / "cluster", node_count=3) as cluster:
        make_topics(cluster.bootstrap)
        fill(cluster.bootstrap, 0, BEFORE)
        for job in _JOBS:
            own = Path(folder) / job
            with pipeline_process(
                job,
                bootstrap=cluster.bootstrap,
                folder=own,
                settings=settings(job, own),
                options=("--available-now",),
            ) as process:
                process.wait()
            _pack(own, GOLDEN / f"{job}-{version}.tar.gz")
            click.echo(f"{job}: {(GOLDEN / f'{job}-{version}.tar.gz').stat().st_size:,} bytes")


def _pack(folder: Path, path: Path) -> None:
    """Hidden files are checksums of Hadoop's local file system, and are packed, too: it compares them."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=9) as archive:
        for name in ("checkpoints", "table"):
            if (folder / name).exists():
                archive.add(folder / name, arcname=name, filter=_nameless)
    path.write_bytes(buffer.getvalue())


def _nameless(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def _record(number: int) -> Sent:
    return Sent(key=str(number), value=json.dumps(_event(number)), partition=number % PARTITIONS)


def _event(number: int) -> dict[str, int | str]:
    return {"number": number, "at": _T0_MS + number * 7919 % 3_600_000, "kind": "ab"[number % 2]}


if __name__ == "__main__":
    record(sys.argv[1])
