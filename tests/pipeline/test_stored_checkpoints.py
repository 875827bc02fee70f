"""Jobs go on from checkpoints that version 0.1 left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset
from pipeline_here import run_here
from pipeline_process import committed_batches
from pipeline_topics import drain, topic_id
from stored_checkpoints import AFTER, BEFORE, COUNTS, TOPIC, expected_counts, fill, make_topics, settings, unpack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_table_and_the_state_of_windows_go_on_from_version_0_1(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    """Each record is in the table once, and the counts have those of before: they are in the stored state alone."""
    make_topics(bootstrap)
    noted = {TOPIC: topic_id(bootstrap, TOPIC)}
    fill(bootstrap, 0, BEFORE)
    fill(bootstrap, BEFORE, AFTER)
    for job in ("lake", "windows"):
        folder = tmp_path / job
        unpack("0.1", job, folder)
        commits = folder / "checkpoints" / f"{job}-v1" / "main" / "commits"
        before = committed_batches(commits)
        assert before >= 3
        told = dict(one.split("=", 1) for one in settings(job, folder))
        told |= {"bootstrap": bootstrap, "checkpoint": str(folder / "checkpoints"), "available_now": "true"}
        run_here(spark, job, told)
        assert committed_batches(commits) > before
    counted = {
        _text(message.key()): json.loads(_text(message.value()))["count"] for message in drain(bootstrap, COUNTS)
    }
    rows = pyarrow.dataset.dataset(str(tmp_path / "lake" / "table"), partitioning="hive").to_table(columns=["value"])
    assert sorted(row["number"] for row in rows["value"].to_pylist()) == [*range(AFTER)]
    # The table has the topic's id from its next commit on.
    assert json.loads(max(tmp_path.glob("lake/table/_penstock/manifests/*.json")).read_text())["topic_ids"] == noted
    assert counted
    assert counted == {key: count for key, count in expected_counts(AFTER).items() if key in counted}
    assert counted != {key: count for key, count in expected_counts(BEFORE).items() if key in counted}


def _text(data: bytes | None) -> str:
    assert data is not None
    return data.decode()
