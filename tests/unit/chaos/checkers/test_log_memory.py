"""What a replica remembers of its log is what the batches say, and nothing of what was cut off or never there."""

from __future__ import annotations

from struct import pack

from penstock.chaos.checkers.log_files import PlainLog, read_log
from penstock.chaos.checkers.log_memory import (
    AbortedRange,
    LogMemory,
    RememberedBatch,
    RememberedProducer,
    judge_memory,
    memory_of,
    read_transaction_index,
)
from penstock.protocol.records import Record, write_batch
from penstock.storage.log.rules.control_records import write_end_transaction_marker

PRODUCER = 7


def sent(offset: int, *, sequence: int, leader_epoch: int = 0) -> bytes:
    return write_batch(
        [Record(offset, 0, None, b"value")], leader_epoch=leader_epoch, producer_id=PRODUCER, producer_epoch=0,
        base_sequence=sequence, is_transactional=True,
    )  # fmt: skip


def aborted(offset: int, *, leader_epoch: int = 0) -> bytes:
    data = write_end_transaction_marker(PRODUCER, 0, is_commit=False, coordinator_epoch=0, now_ms=0)
    # Offset and leader epoch are not covered by the checksum.
    return offset.to_bytes(8, "big") + data[8:12] + leader_epoch.to_bytes(4, "big") + data[16:]


# A transaction of epoch 0 that is aborted in epoch 2, and one that is open.
LOG = read_log({0: sent(0, sequence=0) + aborted(1, leader_epoch=2), 2: sent(2, sequence=1, leader_epoch=2)})
MEMORY = LogMemory(
    leader_epochs=((0, 0), (2, 1)),
    producers={PRODUCER: RememberedProducer(0, (RememberedBatch(0, 0, 0), RememberedBatch(1, 2, 2)), 2)},
    aborted=(AbortedRange(PRODUCER, 0, 1),),
)


def judged(memory: LogMemory, log: PlainLog = LOG, *, start_offset: int = 0, end_offset: int = 3) -> list[str]:
    return list(judge_memory(log, memory, start_offset=start_offset, end_offset=end_offset))


def test_what_follows_from_the_batches_is_right() -> None:
    told = memory_of(LOG)
    assert told.leader_epochs == list(MEMORY.leader_epochs)
    assert told.producers == MEMORY.producers
    assert told.aborted == [AbortedRange(PRODUCER, 0, 1)]
    assert judged(MEMORY) == []


def test_epoch_of_a_leader_that_appended_nothing_is_right_at_the_end_alone() -> None:
    assert judged(MEMORY._replace(leader_epochs=((0, 0), (2, 1), (4, 3)))) == []
    (sentence,) = judged(MEMORY._replace(leader_epochs=((0, 0), (2, 1), (4, 5))))
    assert "leader epochs" in sentence
    (sentence,) = judged(MEMORY._replace(leader_epochs=((0, 0),)))
    assert "leader epochs" in sentence


def test_epochs_that_ended_below_the_start_are_forgotten() -> None:
    assert judged(MEMORY._replace(leader_epochs=((2, 2),)), start_offset=2) == []
    assert judged(MEMORY._replace(leader_epochs=()), start_offset=3) == []


def test_producer_is_remembered_with_its_last_six_batches_and_its_open_transaction() -> None:
    for wrong in (
        RememberedProducer(0, (RememberedBatch(1, 2, 2),), 2),
        RememberedProducer(0, (RememberedBatch(0, 0, 0), RememberedBatch(1, 2, 2)), None),
        RememberedProducer(0, (RememberedBatch(0, 0, 0), RememberedBatch(1, 2, 2), RememberedBatch(2, 3, 3)), 2),
        RememberedProducer(1, (RememberedBatch(0, 0, 0), RememberedBatch(1, 2, 2)), 2),
    ):
        (sentence,) = judged(MEMORY._replace(producers={PRODUCER: wrong}))
        assert "it remembers" in sentence
    (sentence,) = judged(MEMORY._replace(producers={}))
    assert "forgotten producer 7" in sentence
    long = read_log({0: b"".join(sent(offset, sequence=offset) for offset in range(7))})
    assert [batch.base_sequence for batch in memory_of(long).producers[PRODUCER].batches] == [1, 2, 3, 4, 5, 6]


def test_more_may_be_remembered_of_what_is_deleted_but_not_of_what_was_cut_off() -> None:
    rest = read_log({2: sent(2, sequence=1, leader_epoch=2)})
    deleted = MEMORY._replace(leader_epochs=((2, 2),))
    assert judged(deleted, rest, start_offset=2) == []
    other = {8: RememberedProducer(3, (RememberedBatch(9, 1, 1),), 1), **MEMORY.producers}
    assert judged(deleted._replace(producers=other), rest, start_offset=2) == []
    cut = {8: RememberedProducer(3, (RememberedBatch(9, 3, 3),), None), **MEMORY.producers}
    (sentence,) = judged(deleted._replace(producers=cut), rest, start_offset=2)
    assert "of producer 8" in sentence


def test_transaction_index_has_the_aborted_transactions_and_no_others() -> None:
    (sentence,) = judged(MEMORY._replace(aborted=()))
    assert "lacks" in sentence
    stray = AbortedRange(PRODUCER, 2, 4)
    (sentence,) = judged(MEMORY._replace(aborted=(*(MEMORY.aborted or ()), stray)))
    assert "which its batches have not" in sentence
    assert judged(MEMORY._replace(aborted=None)) == []


def test_a_transaction_may_have_begun_before_the_first_batch_that_is_left() -> None:
    left = read_log({5: sent(5, sequence=3) + aborted(6)})
    known = LogMemory(((0, 5),), {PRODUCER: RememberedProducer(0, (RememberedBatch(3, 5, 5),), None)}, None)
    for first_offset in (2, 5):
        memory = known._replace(aborted=(AbortedRange(PRODUCER, first_offset, 6),))
        assert judged(memory, left, start_offset=5, end_offset=7) == []
    for wrong in (AbortedRange(PRODUCER + 1, 2, 6), AbortedRange(PRODUCER, 2, 5)):
        (sentence, *_) = judged(known._replace(aborted=(wrong,)), left, start_offset=5, end_offset=7)
        assert "lacks" in sentence


def test_of_a_compacted_log_that_was_cut_the_last_batch_of_a_producer_may_be_compacted() -> None:
    log = read_log({0: sent(0, sequence=0) + write_batch([Record(4, 0, b"key", b"value")])}, is_compacted=True)

    def judged_compacted(last: RememberedBatch) -> list[str]:
        known = LogMemory(((0, 0),), {PRODUCER: RememberedProducer(0, (RememberedBatch(0, 0, 0), last), 0)}, None)
        found = judge_memory(
            log, known, start_offset=0, end_offset=5, is_compacted=True,
            was_appended=lambda one: one.base_sequence == 2,
        )  # fmt: skip
        return list(found)

    assert judged_compacted(RememberedBatch(2, 3, 3)) == []
    cut_off, never_there = RememberedBatch(2, 5, 5), RememberedBatch(1, 3, 3)
    assert "it remembers" in judged_compacted(cut_off)[0]
    assert "it remembers" in judged_compacted(never_there)[0]


def test_log_with_a_gap_is_none() -> None:
    gap = read_log({0: sent(0, sequence=0), 2: sent(2, sequence=1)})
    (sentence,) = judged(MEMORY, gap)
    assert "segment 2 follows offset 1" in sentence


def test_log_ends_where_its_batches_end() -> None:
    (sentence,) = judged(MEMORY, end_offset=4)
    assert sentence == "its batches end at 3, before 4"
    assert judged(LogMemory((), {}, ()), read_log({4: b""}), start_offset=4, end_offset=4) == []


def test_transaction_index_is_read_entry_by_entry() -> None:
    data = pack(">hqqqq", 0, PRODUCER, 0, 1, 2)
    assert read_transaction_index([data, b"", data]) == 2 * [AbortedRange(PRODUCER, 0, 1)]
