"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords: positions in a partition, and cutting it."""

from __future__ import annotations

from typing import Any

from differential.record_batches import batch
from differential.script import TIMEOUT_MS, Run, case

from penstock.protocol.apis import ApiKey
from penstock.protocol.records import Record, write_batch

CONSUMER, DEBUG = -1, -2


@case(ApiKey.LIST_OFFSETS)
def list_offsets(run: Run) -> None:
    filled, empty = run.create("filled", 2), run.create("empty")
    base = run.base_ms
    run.produced(filled, batch(base, 5, step_ms=10))
    run.produced(filled, batch(base + 100, 5, step_ms=10))
    # The latest time is not at the end.
    run.produced(filled, batch(base + 30, 3, step_ms=1))
    compressed = [Record(n, base + n, b"k", b"v" * 50) for n in range(4)]
    run.produced(filled, write_batch(compressed, compression=1), 1)

    def ask(step: str, name: str, *wanted: dict[str, Any], replica: int = CONSUMER, isolation: int = 0) -> None:
        topic = {"name": name, "partitions": list(wanted)}
        run.ask(step, replica_id=replica, isolation_level=isolation, topics=[topic], timeout=TIMEOUT_MS)

    def at(timestamp: int, partition: int = 0, epoch: int = -1) -> dict[str, Any]:
        return {"partition_index": partition, "timestamp": timestamp, "current_leader_epoch": epoch}

    for isolation in (0, 1, 2, -1):
        ask(f"latest, isolation {isolation}", filled, at(-1), isolation=isolation)
    for special in (-1, -2, -3, -4, -5, -6, -7, -100, -(2**63)):
        ask(f"special {special}", filled, at(special), at(special, 1))
        ask(f"special {special} of an empty partition", empty, at(special))
    for delta in (-1, 0, 1, 5, 10, 35, 40, 41, 99, 100, 101, 140, 141, 10_000):
        ask(f"base{delta:+}", filled, at(base + delta), at(base + delta, 1))
    for timestamp in (0, 1, 2**63 - 1):
        ask(f"time {timestamp}", filled, at(timestamp), at(timestamp, 1))
        ask(f"time {timestamp} of an empty partition", empty, at(timestamp))
    for epoch in (0, 1, 100, -2):
        ask(f"epoch {epoch}", filled, at(-1, epoch=epoch), at(base, epoch=epoch))
    ask("unknown partition", filled, at(-1, 9), at(-1, -1), at(-1, 2**31 - 1))
    ask("unknown topic", run.name("unknown"), at(-1))
    ask("empty name", "", at(-1))
    ask("invalid name", "a b", at(-1))
    ask("twice", filled, at(-1), at(-2))
    ask("twice in other words", filled, at(-1), at(-1), at(-1, 1))
    ask("no partitions", filled)
    run.ask("no topics", replica_id=CONSUMER, topics=[], timeout=TIMEOUT_MS)
    once = {"name": filled, "partitions": [at(-1)]}
    run.ask("topic twice", replica_id=CONSUMER, topics=[once, once], timeout=TIMEOUT_MS)
    for replica in (DEBUG, -3, 1, 5):
        ask(f"replica {replica}", filled, at(-1), replica=replica)
    run.ask("no time", replica_id=CONSUMER, topics=[{"name": filled, "partitions": [at(-1), at(base, 1)]}], timeout=0)


@case(ApiKey.LIST_OFFSETS)
def list_offsets_log_append_time(run: Run) -> None:
    name = run.create("clocked", message_timestamp_type="LogAppendTime")
    run.produced(name, batch(run.base_ms, 3))
    for timestamp in (-3, -2, -1, run.base_ms, 2**62):
        wanted = {"name": name, "partitions": [{"partition_index": 0, "timestamp": timestamp}]}
        step = f"at {timestamp}" if timestamp != run.base_ms else "at base"
        run.ask(step, replica_id=CONSUMER, topics=[wanted], timeout=TIMEOUT_MS)


@case(ApiKey.OFFSET_FOR_LEADER_EPOCH)
def offset_for_leader_epoch(run: Run) -> None:
    filled, empty = run.create("filled"), run.create("empty")
    run.produced(filled, batch(run.base_ms, 5))

    def ask(step: str, name: str, epoch: int, current: int = -1, partition: int = 0, replica: int = CONSUMER) -> None:
        wanted = {"partition": partition, "current_leader_epoch": current, "leader_epoch": epoch}
        run.ask(step, replica_id=replica, topics=[{"topic": name, "partitions": [wanted]}])

    for epoch in (0, 1, 99, -1, -2, 2**31 - 1, -(2**31)):
        ask(f"epoch {epoch}", filled, epoch)
        ask(f"epoch {epoch} of an empty partition", empty, epoch)
    for current in (0, 1, 99, -2):
        ask(f"current {current}", filled, 0, current)
    ask("unknown partition", filled, 0, partition=4)
    ask("negative partition", filled, 0, partition=-1)
    ask("unknown topic", run.name("unknown"), 0)
    ask("empty name", "", 0)
    for replica in (DEBUG, 1, 7, -3):
        ask(f"replica {replica}", filled, 0, replica=replica)
    run.ask("nothing", replica_id=CONSUMER, topics=[])
    run.ask("no partitions", replica_id=CONSUMER, topics=[{"topic": filled, "partitions": []}])
    wanted = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
    run.ask("twice", replica_id=CONSUMER, topics=[{"topic": filled, "partitions": [wanted, wanted]}])


@case(ApiKey.DELETE_RECORDS)
def delete_records(run: Run) -> None:
    filled, compacted = run.create("filled", 2), run.create("compacted", cleanup_policy="compact")
    both = run.create("both", cleanup_policy="compact,delete")
    neither = run.create("neither", cleanup_policy="")
    empty = run.create("empty")
    for name in (filled, compacted, both, neither):
        run.produced(name, batch(run.base_ms, 5))
        run.produced(name, batch(run.base_ms, 5))

    def delete(step: str, name: str, *offsets: int, partition: int = 0, timeout: int = TIMEOUT_MS) -> None:
        wanted = [{"partition_index": partition, "offset": offset} for offset in offsets]
        run.ask(step, topics=[{"name": name, "partitions": wanted}], timeout=timeout)

    for offset in (0, 3, 3, 2, 5, 11, -2, -(2**63), 2**63 - 1):
        step = f"below {offset}"
        delete(step if step not in run.steps else f"{step} again", filled, offset)
    for special in (-2, -1, -4):
        partitions = [{"partition_index": 0, "timestamp": special}]
        topics = [{"name": filled, "partitions": partitions}]
        run.ask(f"offset {special} then", ApiKey.LIST_OFFSETS, replica_id=CONSUMER, topics=topics)
    fetched = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    run.ask("fetch of what is gone", ApiKey.FETCH, topics=[run.fetch_topic(filled, fetched)], max_wait=1)
    fetched = {"partition": 0, "fetch_offset": 5, "partition_max_bytes": 1000}
    run.ask("fetch of the rest", ApiKey.FETCH, topics=[run.fetch_topic(filled, fetched)], max_wait=1)
    delete("all", filled, -1)
    delete("all again", filled, -1)
    delete("all of an empty partition", empty, -1)
    delete("0 of an empty partition", empty, 0)
    delete("1 of an empty partition", empty, 1)
    delete("compacted", compacted, 3)
    delete("compacted and deleted", both, 3)
    delete("no policy", neither, 3)
    delete("unknown partition", filled, 3, partition=7)
    delete("negative partition", filled, 3, partition=-1)
    delete("unknown topic", run.name("unknown"), 3)
    delete("empty name", "", 3)
    delete("internal topic", "__cluster_metadata", 3)
    delete("twice", filled, 3, 4)
    delete("no partitions", filled)
    delete("no time", filled, 3, timeout=0, partition=1)
    delete("negative time", filled, 3, timeout=-1, partition=1)
    run.ask("nothing", topics=[], timeout=TIMEOUT_MS)
