"""What `foreachBatch` does with a batch: drop what the table has, reject bad records, write the rest in one commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession

from ..job import JobError
from .batch import Table, kept, unseen, writer_of


class TableGoneError(JobError):
    """The checkpoint has batches, and the table has nothing of them: it would lack what was read before."""


class TableSink:
    """Called with each batch of one query. The table is opened by the first, which finishes what a crash left.

    `reject` is given the rows for which `is_good` is not true, before the commit: it is done again when the process
    ends between the two, so rejected rows are delivered at least once and rows of the table once. Columns that are
    `not_stored` are for `reject` only.

    With `has_each_batch` every row of the source is a row of the table: the first batch in a process raises
    TableGoneError when it is not the checkpoint's first and the table has nothing.
    """

    def __init__(
        self,
        open_table: Callable[[SparkSession], Table],
        *,
        is_good: Column,
        reject: Callable[[DataFrame], None],
        not_stored: tuple[str, ...] = (),
        has_each_batch: bool = False,
    ) -> None:
        self._open_table = open_table
        self._is_good = is_good
        self._reject = reject
        self._not_stored = not_stored
        self._has_each_batch = has_each_batch
        self._table: Table | None = None

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        if self._table is None:
            table = self._open_table(frame.sparkSession)
            if self._has_each_batch and batch_id and not table.positions:
                raise TableGoneError(
                    f"the checkpoint goes on with batch {batch_id}, and the table has nothing: was it deleted?"
                    " With a new checkpoint everything is read into it again"
                )
            self._table = table
        table = self._table
        with kept(frame) as rows:
            batch = unseen(rows, table.positions, self._is_good, writer=writer_of(frame, batch_id))
            if batch.rejected_count:
                self._reject(batch.rejected)
            if batch.source_count:
                stored = batch.frame.drop(*self._not_stored)
                # The rows are in memory: no more tasks write them than run at a time, and so no more files are made,
                # however many partitions the source has.
                writers = frame.sparkSession.sparkContext.defaultParallelism
                table.write(replace(batch, frame=stored.coalesce(writers)))
