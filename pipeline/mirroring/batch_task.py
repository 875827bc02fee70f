"""What a task does with its part of a batch: one source partition after the other, each by a writer of its own.

Spark's Kafka source has one task for each source partition as long as neither `minPartitions` nor
`maxRecordsPerPartition` is set: two tasks of one source partition would leave out each other's records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from .partition_writer import PartitionWriter
from .record_columns import columns_of
from .rules.source_partition import SourcePartition
from .rules.write_plan import WritePlan

REPORT_SCHEMA: Final = (
    "cluster string, topic string, partition int,"
    " next_offset bigint, written bigint, skipped bigint, transactions bigint"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of the records of one source partition."""

    partition: SourcePartition
    next_offset: int | None
    written: int
    skipped: int
    """In the sink already."""
    transactions: int


def write_batches(batches: Iterable[pa.RecordBatch], plan: WritePlan) -> Iterator[pa.RecordBatch]:
    """One row of `REPORT_SCHEMA` for each source partition. Raises MirrorError, RequestError."""
    writer: PartitionWriter | None = None
    reports = []
    try:
        for batch in batches:
            for partition, records in columns_of(batch):
                if writer is None or writer.partition != partition:
                    if writer is not None:
                        reports.append(_finished(writer))
                    writer = PartitionWriter(plan, partition)
                writer.add(records)
        if writer is not None:
            reports.append(_finished(writer))
    finally:
        if writer is not None:
            writer.close()
    yield pa.RecordBatch.from_pydict(
        {
            "cluster": pa.array([one.partition.cluster for one in reports], pa.string()),
            "topic": pa.array([one.partition.topic for one in reports], pa.string()),
            "partition": pa.array([one.partition.partition for one in reports], pa.int32()),
            "next_offset": pa.array([one.next_offset for one in reports], pa.int64()),
            "written": pa.array([one.written for one in reports], pa.int64()),
            "skipped": pa.array([one.skipped for one in reports], pa.int64()),
            "transactions": pa.array([one.transactions for one in reports], pa.int64()),
        }
    )


def reports_of(table: pa.Table) -> list[Report]:
    return [
        Report(
            partition=SourcePartition(cluster=row["cluster"], topic=row["topic"], partition=row["partition"]),
            next_offset=row["next_offset"],
            written=row["written"],
            skipped=row["skipped"],
            transactions=row["transactions"],
        )
        for row in table.to_pylist()
    ]


def _finished(writer: PartitionWriter) -> Report:
    writer.finish()
    return Report(
        partition=writer.partition,
        next_offset=writer.next_offset,
        written=writer.written,
        skipped=writer.skipped,
        transactions=writer.transactions,
    )
