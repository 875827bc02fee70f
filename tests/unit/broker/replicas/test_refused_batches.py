"""Batches that came before their partition, which anyone may send: what is kept of them, and for how long."""

from uuid import UUID

import pytest

from penstock.broker.replicas.rules.refused_batches import AbsentPartition, RefusedBatches, RefusedByAbsence
from penstock.protocol.batches import BatchHeader, read_header
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import TopicId
from penstock.protocol.records import Record, write_batch

UNKNOWN = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
TOPIC_ID = TopicId(UUID(int=1))


def batch(producer_id: int, sequence: int) -> BatchHeader:
    written = write_batch([Record(0, 0, b"k", b"v")], producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
    return read_header(written, 0)


def remembered(taken: RefusedBatches, producers: range, now_ms: int = 0) -> list[int]:
    """Those whose second batch is not taken for the first one."""
    found = []
    for producer_id in producers:
        try:
            taken.check(batch(producer_id, 1), {}, now_ms)
        except KafkaError:
            found.append(producer_id)
    return found


@pytest.mark.parametrize("named", ["t", TOPIC_ID])
def test_every_producer_that_was_ahead_of_the_metadata_is_remembered(named: str | UUID) -> None:
    absent = RefusedByAbsence()
    for producer_id in range(100):
        absent.note((named, 0), batch(producer_id, 0), UNKNOWN, 0)
    assert remembered(absent.take("t", TOPIC_ID, 1), range(100)) == []
    assert remembered(absent.take("t", TOPIC_ID, 0), range(100)) == list(range(100))
    assert remembered(absent.take("t", TOPIC_ID, 0), range(100)) == []


@pytest.mark.parametrize("name", ["", "..", "a/b", "x" * 250, "\U0001f600" * 8_000])
def test_what_cannot_become_a_topic_is_not_kept(name: str) -> None:
    absent = RefusedByAbsence()
    absent.note((name, 0), batch(1, 0), UNKNOWN, 0)
    assert remembered(absent.take(name, TOPIC_ID, 0), range(2)) == []


def test_what_was_given_up_is_dropped_with_the_next_that_comes() -> None:
    absent = RefusedByAbsence()
    for number in range(100):
        absent.note((f"t{number}", 0), batch(1, 0), UNKNOWN, 0)
    absent.note(("t0", 0), batch(2, 0), UNKNOWN, 5_000)
    absent.note(("t", 0), batch(1, 0), UNKNOWN, 5_001)
    kept: list[AbsentPartition] = [(f"t{number}", 0) for number in range(100) if absent.take(f"t{number}", TOPIC_ID, 0)]
    assert kept == [("t0", 0)]
    assert absent.take("t", TOPIC_ID, 0)


def test_of_too_many_the_oldest_partition_is_forgotten() -> None:
    absent = RefusedByAbsence()
    for number in range(11):
        for producer_id in range(1_000):
            absent.note((f"t{number}", 0), batch(producer_id, 0), UNKNOWN, 0)
    counts = [len(absent.take(f"t{number}", TOPIC_ID, 0)) for number in range(11)]
    assert counts == [0] + [1_000] * 10
