"""A job, unchanged, on a standalone cluster of Spark: the line of `penstock pipeline submit` as it is printed."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import pyarrow.dataset
from pipeline_topics import Sent, create_topics, produce
from spark_cluster import spark_cluster

_TIMEOUT_S: Final = 600
_COUNT: Final = 3_000


def test_lake_runs_on_a_master_with_two_workers(bootstrap: str, tmp_path: Path, spark_jars: tuple[Path, ...]) -> None:
    topic = "standalone"
    create_topics(bootstrap, topic, partition_count=4)
    produce(bootstrap, topic, (Sent(value=str(number), partition=number % 4) for number in range(_COUNT)))
    printed = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "penstock",
                "pipeline",
                "submit",
                "lake",
                "--bootstrap",
                bootstrap,
                "--available-now",
            ),
            *("--checkpoint", str(tmp_path / "checkpoints"), "--jars-dir", str(spark_jars[0].parent)),
            *("--set", f"topics={topic}", "--set", f"table.location={tmp_path / 'table'}", "--master", "MASTER"),
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    ).stdout
    with spark_cluster(tmp_path / "cluster", workers=2) as cluster:
        line = shlex.split(printed.replace("MASTER", cluster.master))
        memory = ("--executor-memory", "512m", "--conf", "spark.sql.shuffle.partitions=2")
        submitted = subprocess.run(
            [line[0], *memory, *line[1:]], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, cwd=tmp_path
        )
        assert submitted.returncode == 0, submitted.stderr[-4000:]
        assert cluster.executors() == 2
    rows = pyarrow.dataset.dataset(str(tmp_path / "table"), partitioning="hive").to_table(
        columns=["partition", "offset"]
    )
    places = {*zip(rows["partition"].to_pylist(), rows["offset"].to_pylist(), strict=True)}
    assert rows.num_rows == len(places) == _COUNT
