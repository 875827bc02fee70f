"""`check`: the verdict on a history that outgrows one machine, or on topics of numbered records.

A history is judged as `penstock chaos judge` judges its file, key by key. Topics are read as a stream: each batch adds
what it shows to a folder, by its number, so that one that is done again replaces itself; when the query has ended the
verdict is made of all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ...chaos.checkers.finding import Verdict
from ...chaos.checkers.verdict_text import EXIT_CODES, told
from ..config import JobConfig
from ..job import Job, JobError
from ..source import read_topics, started
from ..tables.batch import new_token
from ..tables.table_folder import HIDDEN, TableFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from ...chaos.histories.operation import History


class CheckConfig(JobConfig, frozen=True, kw_only=True):
    output: str
    """A folder or URI for the verdict, and for what batches of topics show."""
    bootstrap: str = ""
    history: str = ""
    """A file of a history, as it is or compressed (.gz); either this or topics."""
    workload: str = ""
    """Judge the history as one of this workload, whatever its header says."""
    whole_max: int = 5_000_000
    """The most operations of a checker that needs all of them on one machine; more are refused."""
    cycles_max: int = 2_000_000
    """The most operations among which cycles are searched on one machine; beyond it the run is invalid."""
    sequence: str = "cast(key as string)"
    """SQL over topic, partition, offset, timestamp, key, value and headers: whose numbers these are, in a partition."""
    number: str = "cast(value as string)"
    """SQL as well: the number of a record."""
    first_number: int = 0
    """Of each sequence; -1: that of its first record."""
    mirror_topic: str = ""
    """Compare the one topic with this one, in the cluster that is written, instead of looking for numbers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        has_topics = bool(self.topics or self.topic_pattern)
        if bool(self.history) == has_topics:
            raise ValueError("either `history` or `topics` is to be checked")
        if has_topics and not self.bootstrap:
            raise ValueError("`bootstrap` is missing: the cluster that has the topics")
        if self.mirror_topic and len(self.topics) != 1:
            raise ValueError("with `mirror_topic`, `topics` is the one topic that is mirrored there")
        if self.first_number < -1:
            raise ValueError(f"`first_number` is at least 0, or -1, not {self.first_number}")


def build(spark: SparkSession, config: CheckConfig) -> StreamingQuery:
    if config.history:
        folder, _, name = config.history.rpartition("/")
        _check_file(spark, config.history, name)
        # A stream of files is of a folder; the file is all that is in its batch.
        lines = spark.readStream.option("pathGlobFilter", _literal(name)).text(folder or ".")
        batches = lines.writeStream.foreachBatch(lambda rows, _: _judge_history(rows, config))
        # Each run judges the file as it is now: a checkpoint of before would know its name, and leave it out.
        once = msgspec.structs.replace(config, available_now=True)
        return started(JOB, once, batches, part=f"history-{new_token(spark)}")
    if config.mirror_topic:
        return started(JOB, config, _digests(spark, config).writeStream.foreachBatch(_Batches(config).write))
    from ..checking.topic_frame import numbered

    records = numbered(read_topics(spark, config), config.sequence, config.number)
    return started(JOB, config, records.writeStream.foreachBatch(_Batches(config).judge))


def conclude(spark: SparkSession, config: CheckConfig) -> int:
    """The exit status of `penstock chaos judge`: 0 valid, 3 anomalies, 4 when nothing is shown. Raises JobError."""
    if config.history:
        verdict = _read_verdict(spark, config)
    else:
        verdict = _judge_topics(spark, config)
        _write_verdict(spark, config, verdict)
    sys.stdout.write(f"{told(verdict)}\n")
    return EXIT_CODES[verdict.valid]


class _Batches:
    """What batches show, in a folder for each. The first one empties it of what another checkpoint has left."""

    def __init__(self, config: CheckConfig) -> None:
        self._folder = _batches(config)
        self._first_number = None if config.first_number < 0 else config.first_number

    def judge(self, records: DataFrame, batch: int) -> None:
        from ..checking.topic_frame import judged_batch

        before = records.sparkSession.read.parquet(f"{self._folder}/batch={batch - 1}") if batch else None
        self.write(judged_batch(records, before, self._first_number), batch)

    def write(self, rows: DataFrame, batch: int) -> None:
        if not batch:
            TableFolder(rows.sparkSession, self._folder).delete("")
        rows.write.mode("overwrite").parquet(f"{self._folder}/batch={batch}")


def _digests(spark: SparkSession, config: CheckConfig) -> DataFrame:
    from ..checking.mirror_frame import MIRROR, SOURCE, digests

    there = msgspec.structs.replace(
        config, topics=(config.mirror_topic,), source_kafka=config.sink_kafka, starting_offsets="earliest"
    )
    mirror = read_topics(spark, there, bootstrap=config.sink_bootstrap)
    return digests(read_topics(spark, config), SOURCE).unionByName(digests(mirror, MIRROR))


def _judge_history(rows: DataFrame, config: CheckConfig) -> None:
    from ..checking.history_judge import Bounds, judge_history

    rows = rows.persist()
    try:
        history = _history(rows, config)
        verdict = judge_history(rows, history, Bounds(whole_max=config.whole_max, cycles_max=config.cycles_max))
    finally:
        rows.unpersist()
    _write_verdict(rows.sparkSession, config, verdict)


def _history(rows: DataFrame, config: CheckConfig) -> History:
    """The events for what goes through them one after the other: from the file if the driver sees it."""
    from ...chaos.histories.history_file import open_history
    from ...chaos.histories.operation import History
    from ..checking.history_frame import FrameHistory

    path = Path(config.history)
    opened = open_history(path) if path.is_file() else FrameHistory(rows).opened()
    if not config.workload:
        return opened
    return History(msgspec.structs.replace(opened.header, workload=config.workload), opened.operations)


def _judge_topics(spark: SparkSession, config: CheckConfig) -> Verdict:
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions

    from ..checking.mirror_frame import verdict_of_mirror
    from ..checking.number_sequence import NumberSequence
    from ..checking.topic_frame import FOUND, STATE
    from ..checking.topic_verdict import Counted, Place, verdict_of

    try:
        rows = spark.read.parquet(_batches(config))
        if config.mirror_topic:
            return verdict_of_mirror(rows, config.topics[0])
    except AnalysisException:
        # No batch has written anything.
        return verdict_of((), ())
    places = ("topic", "partition", "sequence")
    newest = rows.agg(functions.max("batch")).collect()[0][0]
    states = rows.where((functions.col("what") == STATE) & (functions.col("batch") == newest)).orderBy(*places)
    found = rows.where(functions.col("what") == FOUND).orderBy(*places, "batch")

    def decoded(frame: DataFrame, kind: type[Any]) -> Iterator[tuple[Place, Any]]:
        decode = msgspec.json.Decoder(kind).decode
        for row in frame.toLocalIterator():
            yield Place(row.topic, row.partition, row.sequence), decode(row.told)

    return verdict_of(decoded(states, NumberSequence), decoded(found, Counted))


def _check_file(spark: SparkSession, history: str, name: str) -> None:
    """Raises JobError: without a batch nothing would be judged, and a verdict of before would be printed."""
    if name.startswith(HIDDEN):
        raise JobError(f"Spark leaves out files whose names begin with _ or a dot, as {name}: give it another name")
    if not TableFolder(spark, history).exists(""):
        raise JobError(f"There is no file {history}")


def _literal(name: str) -> str:
    """A pattern of Hadoop's that stands for this name."""
    return "".join(f"\\{character}" if character in "*?[]{}\\" else character for character in name)


def _batches(config: CheckConfig) -> str:
    return f"{config.output.rstrip('/')}/batches"


def _verdict_folder(config: CheckConfig) -> str:
    return f"{config.output.rstrip('/')}/verdict"


def _write_verdict(spark: SparkSession, config: CheckConfig, verdict: Verdict) -> None:
    text = msgspec.json.encode(verdict).decode()
    spark.createDataFrame([(text,)], "value string").coalesce(1).write.mode("overwrite").text(_verdict_folder(config))


def _read_verdict(spark: SparkSession, config: CheckConfig) -> Verdict:
    from pyspark.errors import AnalysisException

    try:
        lines: Sequence[Any] = spark.read.text(_verdict_folder(config)).collect()
    except AnalysisException as error:
        raise JobError(f"{config.history} has no line, so there is no verdict on it") from error
    return msgspec.json.decode(lines[0].value, type=Verdict)


JOB: Final = Job(
    name="check",
    help="The verdict on a history or on topics of numbered records that outgrow one machine.",
    config_type=CheckConfig,
    state_version=1,
    build=build,
    conclude=conclude,
)
