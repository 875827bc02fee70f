"""The life of a job: claimed, run, stopped, gone on with, and refused where its checkpoint is another's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow.dataset
import pytest
from pipeline_process import committed_batches, pipeline_process
from pipeline_topics import Sent, create_topics, produce

from penstock.pipeline.config import JobConfig
from penstock.pipeline.job import Job, JobError
from penstock.pipeline.running.runner import StopRequest, run
from penstock.pipeline.source import read_topics, started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class _CopyConfig(JobConfig, frozen=True, kw_only=True):
    folder: str


def _build(spark: SparkSession, config: _CopyConfig) -> StreamingQuery:
    rows = read_topics(spark, config).selectExpr("partition", "offset", "cast(value as string) as value")
    return started(_COPY, config, rows.writeStream.format("parquet").option("path", config.folder))


_COPY = Job(name="copy", help="Into files.", config_type=_CopyConfig, state_version=1, build=_build)


def _run(spark: SparkSession, config: _CopyConfig, *, job: Job[_CopyConfig] = _COPY) -> int:
    return run(spark, job, config, stop=StopRequest(), stop_timeout_s=30)


@pytest.fixture
def config(bootstrap: str, tmp_path: Path, request: pytest.FixtureRequest) -> _CopyConfig:
    topic = str(request.node.name).replace("_", "-")
    create_topics(bootstrap, topic)
    produce(bootstrap, topic, (Sent(value=str(number)) for number in range(300)))
    return _CopyConfig(
        bootstrap=bootstrap,
        checkpoint=str(tmp_path / "checkpoint"),
        folder=str(tmp_path / "table"),
        topics=(topic,),
        available_now=True,
        max_offsets_per_trigger=100,
    )


def test_a_job_goes_on_where_it_ended(spark: SparkSession, config: _CopyConfig) -> None:
    assert _run(spark, config) == 0
    produce(config.bootstrap, config.topics[0], (Sent(value=str(number)) for number in range(300, 400)))
    assert _run(spark, config) == 0
    values = sorted(int(row.value) for row in spark.read.parquet(config.folder).collect())
    assert values == [*range(400)]


def test_a_stop_ends_a_job_that_would_go_on_for_ever_after_its_batch(spark: SparkSession, config: _CopyConfig) -> None:
    stop = StopRequest()
    endless = msgspec.structs.replace(config, available_now=False)

    def build(session: SparkSession, config: _CopyConfig) -> StreamingQuery:
        query = _build(session, config)
        stop.set()
        return query

    job = Job(name="copy", help="", config_type=_CopyConfig, state_version=1, build=build)
    assert run(spark, job, endless, stop=stop, stop_timeout_s=60) == 0
    assert not spark.streams.active
    assert _run(spark, config) == 0
    assert spark.read.parquet(config.folder).count() == 300


def test_a_checkpoint_of_another_source_is_refused(spark: SparkSession, config: _CopyConfig) -> None:
    _run(spark, config)
    with pytest.raises(JobError, match="source"):
        _run(spark, msgspec.structs.replace(config, topics=("other",)))


def test_a_checkpoint_of_another_job_is_refused(spark: SparkSession, config: _CopyConfig) -> None:
    _run(spark, config)
    other = Job(name="other", help="", config_type=_CopyConfig, state_version=1, build=_build)
    with pytest.raises(JobError, match="job 'copy'"):
        _run(spark, msgspec.structs.replace(config, name="copy"), job=other)


def test_a_checkpoint_of_another_state_version_is_refused(spark: SparkSession, config: _CopyConfig) -> None:
    _run(spark, config)
    raised = Job(name="copy", help="", config_type=_CopyConfig, state_version=2, build=_build)
    with pytest.raises(JobError, match="copy-v1 of another state version"):
        _run(spark, config, job=raised)


def test_a_start_that_failed_binds_the_checkpoint_to_nothing(spark: SparkSession, config: _CopyConfig) -> None:
    """What was wrong with it can be put right."""

    def refuse(_session: SparkSession, _config: _CopyConfig) -> StreamingQuery:
        raise JobError("there is no such field")

    misspelled = msgspec.structs.replace(config, topics=("misspelled",))
    with pytest.raises(JobError, match="no such field"):
        _run(spark, misspelled, job=Job(name="copy", help="", config_type=_CopyConfig, state_version=1, build=refuse))
    assert _run(spark, config) == 0
    with pytest.raises(JobError, match="source"):
        _run(spark, misspelled)


def test_a_query_that_fails_is_a_sentence(spark: SparkSession, config: _CopyConfig) -> None:
    Path(config.folder).write_text("a file where a folder is to be")
    with pytest.raises(JobError, match=r"copy cannot start: .*Parent path is not a directory"):
        _run(spark, config)


def test_sigterm_finishes_the_batch_and_the_next_run_goes_on(bootstrap: str, tmp_path: Path) -> None:
    topic = "stopped"
    create_topics(bootstrap, topic)
    produce(bootstrap, topic, (Sent(value=str(number)) for number in range(3_000)))
    settings = (f"topics={topic}", f"table.location={tmp_path / 'table'}", "max_offsets_per_trigger=100")
    commits = tmp_path / "checkpoints" / "lake-v1" / "main" / "commits"
    with pipeline_process("lake", bootstrap=bootstrap, folder=tmp_path, settings=settings) as process:
        process.wait_batches(2)
        process.terminate()
        process.wait()
        assert "stopping after this batch" in process.told
        assert "lake: ended" in process.told
        # Not "Exception": Spark logs one about a task of the next batch that was cut short while it stops.
        assert "Traceback" not in process.told
    rows = pyarrow.dataset.dataset(str(tmp_path / "table"), partitioning="hive").count_rows()
    done = committed_batches(commits)
    assert 2 <= done < 31
    # The next batch may have begun, and been committed by the table, before the query was stopped.
    offsets = commits.with_name("offsets")
    assert rows in {
        reached(offsets / str(batch), topic) for batch in (done - 1, done) if (offsets / str(batch)).exists()
    }


def reached(batch: Path, topic: str) -> int:
    """How many records a topic has up to the end of a batch, by Spark's log of offsets."""
    ends: dict[str, int] = json.loads(batch.read_text().splitlines()[-1])[topic]
    return sum(ends.values())
