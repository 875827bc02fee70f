"""What is stored of transactions: batches, pending offsets and the markers that end them, and who reads it when."""

from __future__ import annotations

from typing import Any

from differential.case_groups import group, offsets
from differential.case_produce import read_back
from differential.case_transactions import Producer, add, begin, transactional_id, wait_over
from differential.script import TIMEOUT_MS, Run, case

from penstock.protocol.apis import ApiKey
from penstock.protocol.records import Record, write_batch

READ_COMMITTED = 1
LAST_OLD_PRODUCE = 11
LAST_OLD_END = 4


def a_batch(run: Run, one: Producer, sequence: int, *, is_transactional: bool = True, count: int = 1) -> bytes:
    return write_batch(
        [Record(number, run.base_ms, b"k", b"v") for number in range(count)],
        producer_id=one.producer_id,
        producer_epoch=one.producer_epoch,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )


def end(run: Run, one: Producer, *, is_commit: bool) -> None:
    """By the way of old clients."""
    answer = run.quiet(ApiKey.END_TXN, LAST_OLD_END, **one.fields, committed=is_commit)
    assert answer["error_code"] == 0, answer
    wait_over(run, one.transactional_id)


def produce(
    run: Run, step: str, one: Producer, topic: str, records: bytes, *, transactional_id: str | None = ""
) -> None:
    wanted = run.produce_topic(topic, {"index": 0, "records": records})
    told = one.transactional_id if transactional_id == "" else transactional_id
    run.ask(step, ApiKey.PRODUCE, transactional_id=told, acks=-1, timeout=TIMEOUT_MS, topic_data=[wanted])


@case(ApiKey.PRODUCE, versions=range(3, LAST_OLD_PRODUCE + 1))
def produce_in_transaction(run: Run) -> None:
    topic, one = run.create(), begin(run, transactional_id(run))
    produce(run, "before it is added", one, topic, a_batch(run, one, 0))
    add(run, one, topic, 0)
    produce(run, "first", one, topic, a_batch(run, one, 0))
    produce(run, "again", one, topic, a_batch(run, one, 0))
    produce(run, "second", one, topic, a_batch(run, one, 1, count=3))
    produce(run, "gap", one, topic, a_batch(run, one, 9))
    produce(run, "outside the transaction", one, topic, a_batch(run, one, 4, is_transactional=False))
    produce(run, "without an id", one, topic, a_batch(run, one, 4), transactional_id=None)
    produce(run, "older epoch", one, topic, a_batch(run, one._replace(producer_epoch=-1), 4))
    read_back(run, "while it is open", topic, isolation=READ_COMMITTED)
    end(run, one, is_commit=False)
    produce(run, "after the abort", one, topic, a_batch(run, one, 4))
    produce(run, "duplicate after the abort", one, topic, a_batch(run, one, 1, count=3))
    read_back(run, "aborted", topic, isolation=READ_COMMITTED)
    add(run, one, topic, 0)
    produce(run, "next transaction", one, topic, a_batch(run, one, 4))
    end(run, one, is_commit=True)
    read_back(run, "committed", topic, isolation=READ_COMMITTED)


@case(ApiKey.PRODUCE, versions=(12, 13))
def produce_adds_its_partition(run: Run) -> None:
    topic, one = run.create(), begin(run, transactional_id(run))
    produce(run, "not the first sequence", one, topic, a_batch(run, one, 3))
    produce(run, "first", one, topic, a_batch(run, one, 0))
    produce(run, "second", one, topic, a_batch(run, one, 1))
    run.ask("end", ApiKey.END_TXN, **one.fields, committed=False)
    wait_over(run, one.transactional_id)
    produce(run, "late", one, topic, a_batch(run, one, 2))
    run.ask("end again", ApiKey.END_TXN, **one.fields, committed=False)
    run.ask("end otherwise", ApiKey.END_TXN, **one.fields, committed=True)
    bumped = one._replace(producer_epoch=one.producer_epoch + 1)
    produce(run, "next transaction", bumped, topic, a_batch(run, bumped, 0))
    run.ask("end that comes late", ApiKey.END_TXN, **one.fields, committed=True)
    run.ask("end of the next", ApiKey.END_TXN, **bumped.fields, committed=True)
    wait_over(run, bumped.transactional_id)
    read_back(run, "stored", topic, isolation=READ_COMMITTED)


@case(ApiKey.TXN_OFFSET_COMMIT)
def commit_offsets_in_transaction(run: Run) -> None:
    name, topic, one = group(run), run.create("t", 2), begin(run, transactional_id(run))
    is_old = run.version < 5

    def add_offsets() -> None:
        if is_old:
            answer = run.quiet(ApiKey.ADD_OFFSETS_TO_TXN, **one.fields, group_id=name)
            assert answer["error_code"] == 0, answer

    def commit(step: str, *partitions: tuple[int, int, str | None], to: str = topic, **values: Any) -> None:
        wanted = {key: value for key, value in offsets(run, to, *partitions).items() if key != "topic_id"}
        run.ask(step, **{**one.fields, "group_id": name, "topics": [wanted], **values})

    def fetch(step: str, *, require_stable: bool = True) -> None:
        wanted = {"name": topic, "partition_indexes": [0, 1]}
        asked = [{"group_id": name, "member_id": None, "member_epoch": -1, "topics": [wanted]}]
        run.ask(step, ApiKey.OFFSET_FETCH, 9, groups=asked, require_stable=require_stable)

    if is_old:
        commit("before it is added", (0, 5, "m"))
    add_offsets()
    commit("two", (0, 5, "m"), (1, 6, None))
    commit("no such partition", (7, 5, ""), (0, 5, "m"))
    commit("large metadata", (0, 5, "m" * 5000))
    commit("no group", (0, 5, ""), group_id="")
    commit("older epoch", (0, 5, ""), producer_epoch=-1)
    commit("wrong generation", (0, 5, ""), generation_id=3, member_id="nobody")
    commit("wrong member", (0, 5, ""), member_id="nobody")
    commit("no such topic", (0, 5, ""), to=run.name("unknown"))
    fetch("while it is open")
    fetch("while it is open, not stable", require_stable=False)
    end(run, one, is_commit=False) if is_old else run.quiet(ApiKey.END_TXN, **one.fields, committed=False)
    wait_over(run, one.transactional_id)
    fetch("aborted")
    if is_old:
        add_offsets()
        commit("again", (0, 8, "m"))
        end(run, one, is_commit=True)
        fetch("committed")
