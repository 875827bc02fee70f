"""A writer never writes a record twice, whichever other writer there is, was or will be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from copied_records import Copied, differences, records_of
from pipeline_topics import create_topics, drain

from penstock.pipeline.connector.admin_clients import describe_topics
from penstock.pipeline.connector.deadline import Deadline
from penstock.pipeline.mirroring import partition_writer
from penstock.pipeline.mirroring.errors import MirrorError
from penstock.pipeline.mirroring.partition_writer import PartitionWriter
from penstock.pipeline.mirroring.record_columns import RecordColumns
from penstock.pipeline.mirroring.rules.source_partition import SourcePartition
from penstock.pipeline.mirroring.rules.write_plan import TopicRoute, WritePlan

DEADLINE_S = 60.0
WHOLE = 100
"""Records of a transaction."""


@pytest.fixture
def plan(bootstrap: str, request: pytest.FixtureRequest) -> WritePlan:
    """As a driver has it that has just begun: the writer finds out by itself what there is."""
    name = str(request.node.name).replace("_", "-")
    create_topics(bootstrap, f"{name}-source", f"{name}-target", partition_count=1)
    create_topics(bootstrap, f"{name}-map", partition_count=4, configs={"cleanup.policy": "compact"})
    properties = {"bootstrap.servers": bootstrap}
    found = describe_topics(properties, [f"{name}-source", f"{name}-target"], Deadline(DEADLINE_S))
    route = TopicRoute(
        source_topic_id=str(found[f"{name}-source"].topic_id),
        source_partition_count=1,
        target_topic=f"{name}-target",
        target_topic_id=str(found[f"{name}-target"].topic_id),
        target_partition_count=1,
    )
    return WritePlan(
        transactional_prefix=name,
        map_topic=f"{name}-map",
        map_offsets=(0,) * 4,
        positions={},
        routes={("east", f"{name}-source"): route},
        sources={"east": properties},
        sink=properties,
        transaction_records=WHOLE,
    )


def place(plan: WritePlan) -> SourcePartition:
    ((cluster, topic),) = plan.routes
    return SourcePartition(cluster=cluster, topic=topic, partition=0)


def records(offsets: Sequence[int]) -> RecordColumns:
    return RecordColumns(
        offsets=[*offsets],
        timestamps_ms=[1_000 + offset for offset in offsets],
        keys=[None] * len(offsets),
        values=[b"%d" % offset for offset in offsets],
        headers=[[]] * len(offsets),
        size_bytes=10 * len(offsets),
    )


def assert_copied(plan: WritePlan, offsets: Sequence[int]) -> None:
    (route,) = plan.routes.values()
    wanted = [Copied(0, None, b"%d" % offset, (), 1_000 + offset) for offset in offsets]
    found = drain(plan.sink["bootstrap.servers"], route.target_topic, count=len(wanted))
    assert differences(wanted, records_of(found)) == []


def test_a_batch_that_is_done_again_writes_nothing(plan: WritePlan) -> None:
    """Its task was killed after the commit; the plan of the next task knows nothing of it."""
    first, again = (PartitionWriter(plan, place(plan)) for _ in range(2))
    for writer in (first, again):
        writer.add(records(range(250)))
        writer.finish()
    assert (first.written, first.skipped, first.next_offset) == (250, 0, 250)
    assert (again.written, again.skipped, again.next_offset) == (0, 250, 250)
    assert_copied(plan, range(250))


def test_what_a_task_left_uncommitted_is_written_by_the_next(plan: WritePlan) -> None:
    first = PartitionWriter(plan, place(plan))
    first.add(records(range(WHOLE)))
    first.add(records(range(WHOLE, WHOLE + 50)))
    # It is gone, with fifty records that no transaction has.
    second = PartitionWriter(plan, place(plan))
    second.add(records(range(250)))
    second.finish()
    assert (second.written, second.skipped) == (150, WHOLE)
    assert_copied(plan, range(250))


def test_a_writer_that_was_taken_for_dead_adds_nothing(plan: WritePlan) -> None:
    """It is fenced, looks where the position is now, and leaves out what the other has written."""
    zombie = PartitionWriter(plan, place(plan))
    zombie.add(records(range(WHOLE)))
    heir = PartitionWriter(plan, place(plan))
    heir.add(records(range(250)))
    heir.finish()
    zombie.add(records(range(WHOLE, 200)))
    zombie.finish()
    assert (zombie.written, zombie.skipped) == (WHOLE, 100)
    assert_copied(plan, range(250))


def test_two_writers_that_take_turns_write_each_record_once(plan: WritePlan) -> None:
    """As two drivers of one name would, each of which goes through all batches."""
    writers = [PartitionWriter(plan, place(plan)) for _ in range(2)]
    for start in range(0, 500, WHOLE):
        for writer in writers:
            writer.add(records(range(start, start + WHOLE)))
    for writer in writers:
        writer.finish()
    assert sum(writer.written for writer in writers) == 500
    assert_copied(plan, range(500))


def test_a_fatal_error_that_python_has_lost_is_found_again(plan: WritePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    flush = partition_writer._Deliveries.flush
    lost: list[BaseException] = []

    def losing(self: Any, producer: Producer, deadline: Deadline) -> dict[int, int]:
        try:
            return flush(self, producer, deadline)
        except (KafkaException, SystemError) as fatal:
            lost.append(fatal)
            raise SystemError("returned NULL without setting an exception") from None

    monkeypatch.setattr(partition_writer._Deliveries, "flush", losing)
    zombie, heir = (PartitionWriter(plan, place(plan)) for _ in range(2))
    zombie.add(records(range(WHOLE)))
    heir.add(records(range(200)))
    heir.finish()
    zombie.add(records(range(WHOLE, 300)))
    zombie.finish()
    assert len(lost) == 1
    assert (zombie.written, zombie.skipped) == (200, 100)
    assert_copied(plan, range(300))


def test_an_error_that_is_not_the_clients_ends_the_writer(plan: WritePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> dict[int, int]:
        raise SystemError("not the client's")

    writer = PartitionWriter(plan, place(plan))
    writer.add(records(range(WHOLE)))
    monkeypatch.setattr(partition_writer._Deliveries, "flush", broken)
    with pytest.raises(SystemError, match="not the client's"):
        writer.add(records(range(WHOLE, 200)))
    assert_copied(plan, range(WHOLE))


def test_gaps_in_the_source_are_none_in_the_copy(plan: WritePlan) -> None:
    offsets = [offset for offset in range(300) if offset % 7]
    writer = PartitionWriter(plan, place(plan))
    writer.add(records(offsets))
    writer.finish()
    assert_copied(plan, offsets)


def test_a_transaction_that_takes_too_long_is_written_in_parts(
    plan: WritePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = PartitionWriter._send

    def slow(writer: PartitionWriter, producer: Producer, some: RecordColumns, *more: Any) -> None:
        if len(some) > 300:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        send(writer, producer, some, *more)

    monkeypatch.setattr(PartitionWriter, "_send", slow)
    writer = PartitionWriter(plan, place(plan))
    writer.add(records(range(1_000)))
    writer.finish()
    assert (writer.written, writer.transactions) == (1_000, 4)
    assert_copied(plan, range(1_000))


def test_a_topic_that_is_gone_ends_the_writer(plan: WritePlan) -> None:
    unknown = SourcePartition(cluster="east", topic="nowhere", partition=0)
    with pytest.raises(MirrorError, match="no target"):
        PartitionWriter(plan, unknown)


def test_a_writer_that_does_not_look_for_its_position_is_found(
    plan: WritePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison of these tests sees what it is for."""
    monkeypatch.setattr(partition_writer, "position_of", lambda _partition, _records, before: before)
    for _ in range(2):
        writer = PartitionWriter(plan, place(plan))
        writer.add(records(range(50)))
        writer.finish()
    (route,) = plan.routes.values()
    wanted = [Copied(0, None, b"%d" % offset, (), 1_000 + offset) for offset in range(50)]
    found = records_of(drain(plan.sink["bootstrap.servers"], route.target_topic, count=100))
    assert len(differences(wanted, found)) == 50
