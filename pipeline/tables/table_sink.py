"""What `foreachBatch` does with a batch: drop what the table has, reject bad records, write the rest in one commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession

from ..job import JobError
from .batch import Batch, Table, kept, unseen, writer_of
from .source_ids import SourceIds


class TableGoneError(JobError):
    """The checkpoint has batches, and the table has nothing of them: it would lack what was read before."""


class TableSink:
    """Called with each batch of one query. The table is opened by the first, which finishes what a crash left.

    `reject` is given the rows for which `is_good` is not true, before the commit: it is done again when the process
    ends between the two, so rejected rows are delivered at least once and rows of the table once. Columns that are
    `not_stored` are for `reject` only.

    With `has_each_batch` every row of the source is a row of the table: the first batch in a process raises
    TableGoneError when it is not the checkpoint's first and the table has nothing.

    With `source` the table notes the ids of its topics, and a batch of a topic that was made anew ends the query before
    anything of it is written.
    """

    def __init__(
        self,
        open_table: Callable[[SparkSession], Table],
        *,
        is_good: Column,
        reject: Callable[[DataFrame], None],
        not_stored: tuple[str, ...] = (),
        has_each_batch: bool = False,
        source: SourceIds | None = None,
    ) -> None:
        self._open_table = open_table
        self._is_good = is_good
        self._reject = reject
        self._not_stored = not_stored
        self._has_each_batch = has_each_batch
        self._source = source
        self._table: Table | None = None

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        spark = frame.sparkSession
        if self._table is None:
            table = self._open_table(spark)
            if self._has_each_batch and batch_id and not table.positions:
                raise TableGoneError(
                    f"the checkpoint goes on with batch {batch_id}, and the table has nothing: was it deleted?"
                    " With a new checkpoint everything is read into it again"
                )
            self._table = table
            if self._source:
                # Before rows are read: they are of this topic, or of a later one.
                self._source.ask(spark, ())
        table = self._table
        with kept(frame) as rows:
            batch = self._unseen(table, rows, writer_of(frame, batch_id))
            # A pattern may have brought topics that were not there before.
            if self._source and self._source.ask(spark, batch.positions.keys()):
                batch = self._unseen(table, rows, batch.writer)
            if batch.rejected_count:
                self._reject(batch.rejected)
            if batch.source_count:
                stored = batch.frame.drop(*self._not_stored)
                # The rows are in memory: no more tasks write them than run at a time, and so no more files are made,
                # however many partitions the source has.
                writers = spark.sparkContext.defaultParallelism
                table.write(replace(batch, frame=stored.coalesce(writers)))

    def _unseen(self, table: Table, rows: DataFrame, writer: str) -> Batch:
        source = self._source
        positions = source.remaining(table.positions, table.topic_ids) if source else table.positions
        batch = unseen(rows, positions, self._is_good, writer=writer)
        topic_ids = source.following(batch.positions, table.topic_ids) if source else {}
        return replace(batch, topic_ids=topic_ids)
