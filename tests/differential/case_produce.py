"""Produce: what is appended, where and as what; every batch that is refused; idempotent producers."""

from __future__ import annotations

from typing import Any

from differential.record_batches import batch, patched, raw_patched
from differential.script import TIMEOUT_MS, Run, case

from penstock.protocol.apis import ApiKey
from penstock.protocol.records import Record, write_batch

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODECS = {"none": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
HOUR_MS = 3_600_000
FIRST_WITH_IDS = 13


def produce(run: Run, step: str, name: str, records: bytes | None, partition: int = 0, *, acks: int = -1) -> None:
    topic = run.produce_topic(name, {"index": partition, "records": records})
    run.ask(step, ApiKey.PRODUCE, acks=acks, timeout=TIMEOUT_MS, topic_data=[topic])


def read_back(run: Run, step: str, name: str, *, isolation: int = 0) -> None:
    """All that was appended, as it is stored."""
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000_000}
    topics = [run.fetch_topic(name, wanted)]
    run.ask(step, ApiKey.FETCH, max_wait=1, isolation_level=isolation, topics=topics)


@case(ApiKey.PRODUCE)
def produce_appends(run: Run) -> None:
    name, other = run.create("t", 2), run.create("other")
    one = batch(run.base_ms)
    for acks in (1, -1):
        produce(run, f"acks {acks}", name, batch(run.base_ms, 3), acks=acks)
    topic = run.produce_topic(name, {"index": 0, "records": one})
    run.ask_without_answer("acks 0", ApiKey.PRODUCE, acks=0, timeout=TIMEOUT_MS, topic_data=[topic])
    lost = run.produce_topic(name, {"index": 7, "records": one})
    run.ask_without_answer("acks 0, no such partition", ApiKey.PRODUCE, acks=0, timeout=TIMEOUT_MS, topic_data=[lost])
    for acks in (2, -2, 32767):
        produce(run, f"acks {acks}", name, one, acks=acks)
    produce(run, "no such partition", name, one, 7)
    produce(run, "negative partition", name, one, -1)
    produce(run, "no such topic", run.name("unknown"), one)
    produce(run, "empty topic name", "", one)
    several = [
        run.produce_topic(name, {"index": 0, "records": one}, {"index": 1, "records": one}),
        run.produce_topic(other, {"index": 0, "records": one}, {"index": 4, "records": one}),
    ]
    run.ask("several", acks=-1, timeout=TIMEOUT_MS, topic_data=several)
    run.ask("nothing", acks=-1, timeout=TIMEOUT_MS, topic_data=[])
    run.ask("no partitions", acks=-1, timeout=TIMEOUT_MS, topic_data=[run.produce_topic(name)])
    run.ask("no time", acks=-1, timeout=0, topic_data=[topic])
    run.ask("negative time", acks=-1, timeout=-1, topic_data=[topic])
    read_back(run, "stored", name)


@case(ApiKey.PRODUCE)
def produce_codecs(run: Run) -> None:
    """Each codec to each `compression.type`: kept, or compressed anew."""
    records = [
        Record(n, run.base_ms + n, f"key {n}".encode(), b"value " * 20, (("h", b"1"), ("n", None))) for n in range(5)
    ]
    for kept in ("producer", "uncompressed", *CODECS):
        if kept == "none":
            continue
        name = run.create(kept, compression_type=kept)
        for codec, number in CODECS.items():
            if run.version < 7 and codec == "zstd":
                continue
            produce(run, f"{codec} to {kept}", name, write_batch(records, compression=number))
        read_back(run, f"stored as {kept}", name)


@case(ApiKey.PRODUCE)
def produce_zstd(run: Run) -> None:
    produce(run, "zstd", run.create(), batch(run.base_ms, compression=ZSTD))


@case(ApiKey.PRODUCE)
def produce_refused(run: Run) -> None:
    name = run.create()
    good = batch(run.base_ms, 2)
    flags = {
        "control": 0x20,
        "transactional": 0x10,
        "transactional control": 0x30,
        "unused": 0x100,
        "delete horizon": 0x40,
    }
    for word, bad in {
        "flipped bit": raw_patched(good, len(good) - 2, b"\xff"),
        "wrong checksum": raw_patched(good, 17, b"\1\2\3\4"),
        "cut": good[:-5],
        "shorter than a header": good[:40],
        "one byte": good[:1],
        "length 0": raw_patched(good, 8, bytes(4)),
        "length below a header": raw_patched(good, 8, b"\0\0\0\x0a"),
        "negative length": raw_patched(good, 8, b"\xff\xff\xff\xf0"),
        "two batches": good + good,
        "trailing bytes": good + b"\0\0\0",
        "no bytes": b"",
        "magic 0": raw_patched(good, 16, b"\0"),
        "magic 1": raw_patched(good, 16, b"\1"),
        "magic 3": raw_patched(good, 16, b"\3"),
        "negative magic": raw_patched(good, 16, b"\xff"),
        "more records announced": patched(good, 57, "i", 3),
        "fewer records announced": patched(good, 57, "i", 1),
        "no records announced": patched(good, 57, "i", 0),
        "negative records announced": patched(good, 57, "i", -1),
        "last offset delta too large": patched(good, 23, "i", 7),
        "last offset delta too small": patched(good, 23, "i", 0),
        "negative last offset delta": patched(good, 23, "i", -1),
        "base offset": raw_patched(good, 0, b"\0\0\0\0\0\0\0\7"),
        "negative base offset": raw_patched(good, 0, b"\xff" * 8),
        "leader epoch": raw_patched(good, 12, b"\0\0\0\7"),
        "unknown codec": patched(good, 21, "h", 5),
        **{f"{flag} flag": patched(good, 21, "h", bits) for flag, bits in flags.items()},
    }.items():
        produce(run, word, name, bad)
    read_back(run, "stored", name)
    unopened = run.create("unopened")
    produce(run, "gzip that is none", unopened, patched(good, 21, "h", 1))
    produce(run, "records that are none", unopened, patched(good, 61, "bb", -1, -1))
    produce(run, "offset delta of a record", unopened, patched(good, 64, "b", 8))
    produce(run, "attributes of a record", unopened, patched(good, 62, "b", 1))


@case(ApiKey.PRODUCE)
def produce_times(run: Run) -> None:
    stamped = run.create("stamped", message_timestamp_type="LogAppendTime")
    produce(run, "log append time", stamped, batch(run.base_ms, 3))
    produce(run, "log append time, compressed", stamped, batch(run.base_ms, 3, compression=GZIP))
    read_back(run, "stored with log append time", stamped)
    limits = {"message_timestamp_before_max_ms": 10 * HOUR_MS, "message_timestamp_after_max_ms": HOUR_MS}
    limited = run.create("limited", **limits)
    for word, delta in (("old", -20 * HOUR_MS), ("good", 0), ("new", 10 * HOUR_MS)):
        produce(run, f"{word} within limits", limited, batch(run.base_ms + delta, 2))
        produce(run, f"{word} within limits, compressed", limited, batch(run.base_ms + delta, 2, compression=LZ4))
    mixed = [Record(n, run.base_ms + n * -6 * HOUR_MS, b"k", b"v") for n in range(4)]
    produce(run, "some too old", limited, write_batch(mixed))
    free = run.create("free")
    for word, time_ms in (("0", 0), ("1", 1), ("-1", -1)):
        produce(run, f"time {word}", free, batch(time_ms, 1))
    produce(run, "a week ahead", free, batch(run.base_ms + 24 * 7 * HOUR_MS, 2))
    produce(run, "falling times", free, write_batch([Record(n, run.base_ms - n, b"k", b"v") for n in range(3)]))
    read_back(run, "stored as sent", free)
    claims = patched(batch(run.base_ms, 2), 21, "h", 8)
    produce(run, "claims log append time", run.create("claims"), claims)
    produce(run, "claims log append time, rightly", stamped, claims)
    corrected = run.create("corrected")
    produce(run, "wrong maximum", corrected, patched(batch(run.base_ms, 2), 35, "q", run.base_ms + 100))
    produce(run, "time -2", corrected, batch(-2, 1))
    read_back(run, "stored with its maximum", corrected)


@case(ApiKey.PRODUCE)
def produce_sizes(run: Run) -> None:
    small = run.create("small", max_message_bytes=200, segment_bytes=1_048_576)
    at_limit = 200 - len(write_batch([Record(0, run.base_ms, b"k", b"v" * 80)])) + 80
    for word, size in (("at the limit", at_limit), ("beyond it", at_limit + 1), ("far beyond it", 10_000)):
        produce(run, word, small, write_batch([Record(0, run.base_ms, b"k", b"v" * size)]))
    squeezed = write_batch([Record(0, run.base_ms, b"k", b"v" * 10_000)], compression=GZIP)
    produce(run, "compressed below it", small, squeezed)
    opened = run.create("opened", max_message_bytes=200, compression_type="uncompressed")
    produce(run, "opened beyond it", opened, squeezed)
    read_back(run, "stored", small)
    read_back(run, "stored opened", opened)


@case(ApiKey.PRODUCE)
def produce_compacted(run: Run) -> None:
    name = run.create("compacted", cleanup_policy="compact")
    keyed, keyless = Record(0, run.base_ms, b"k", b"v"), Record(1, run.base_ms, None, b"v")
    produce(run, "with key", name, write_batch([keyed]))
    produce(run, "empty key", name, write_batch([Record(0, run.base_ms, b"", b"v")]))
    produce(run, "null value", name, write_batch([Record(0, run.base_ms, b"k", None)]))
    produce(run, "one of two without key", name, write_batch([keyed, keyless]))
    produce(
        run, "without keys", name, write_batch([Record(0, run.base_ms, None, b"v"), keyless, Record(2, 0, None, None)])
    )
    produce(run, "without keys, compressed", name, write_batch([keyed, keyless], compression=GZIP))
    read_back(run, "stored", name)


@case(ApiKey.PRODUCE)
def produce_idempotently(run: Run) -> None:
    name, other = run.create("t"), run.create("other")
    first, second, third = run.producer_id(), run.producer_id(), run.producer_id()
    for producer in (first, second, third):
        run.names.number("producer_id", producer)

    def send(
        step: str, sequence: int, count: int = 1, *, producer: int = first, epoch: int = 0, topic: str = name
    ) -> None:
        data = batch(run.base_ms, count, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
        produce(run, step, topic, data)

    send("first", 0, 3)
    send("duplicate", 0, 3)
    send("next", 3)
    send("gap", 10)
    send("back", 2)
    send("overlap", 2, 3)
    send("longer than the duplicate", 0, 4)
    send("shorter than the duplicate", 0, 2)
    for sequence in range(4, 10):
        send(f"sequence {sequence}", sequence)
    send("duplicate of the last but four", 5)
    send("duplicate of the last but five", 4)
    send("duplicate long gone", 0, 3)
    send("does not begin with 0", 5, producer=second)
    send("begins with 0", 0, producer=second, epoch=5)
    send("older epoch", 1, producer=second, epoch=4)
    send("newer epoch, sequence goes on", 1, producer=second, epoch=6)
    send("newer epoch", 0, producer=second, epoch=6)
    send("negative epoch", 0, producer=second, epoch=-1)
    send("negative sequence", -1, producer=third)
    send("least sequence", -(2**31), producer=third)
    send("unknown producer", 0, producer=10**12)
    send("negative producer", 0, producer=-2)
    send("sequence without a producer", 0, producer=-1, epoch=0)
    send("nearly the last sequence", 2**31 - 2, 1, producer=10**12 + 1)
    send("wraps", 2**31 - 1, 3, producer=10**12 + 1)
    send("after the wrap", 2, 1, producer=10**12 + 1)
    send("elsewhere", 0, topic=other)
    data = batch(run.base_ms, 1, producer_id=first, producer_epoch=0, base_sequence=10)
    again = batch(run.base_ms, 1, producer_id=first, producer_epoch=0, base_sequence=11)
    produce(run, "two idempotent batches at once", name, data + again)
    read_back(run, "stored", name)
    partitions = [{"name": one, "partition_indexes": [0, 7, -1]} for one in (name, other)]
    run.ask("producers", ApiKey.DESCRIBE_PRODUCERS, topics=partitions)
    stamped = run.create("stamped", message_timestamp_type="LogAppendTime")
    send("stamped", 0, topic=stamped, producer=third)
    send("stamped again", 0, topic=stamped, producer=third)


@case(ApiKey.INIT_PRODUCER_ID)
def init_producer_id(run: Run) -> None:
    def init(step: str, **values: Any) -> None:
        run.ask(step, **{"transactional_id": None, "transaction_timeout": 60_000, **values})

    run.producer_id()
    init("first")
    init("second")
    for timeout in (0, -1, 2**31 - 1):
        init(f"timeout {timeout}", transaction_timeout=timeout)
    init("with an id", producer_id=5, producer_epoch=0)
    init("with an id alone", producer_id=5, producer_epoch=-1)
    init("with an epoch alone", producer_id=-1, producer_epoch=3)
    init("least id", producer_id=-5, producer_epoch=-5)
    init("empty transactional id", transactional_id="")


@case(ApiKey.DESCRIBE_PRODUCERS)
def describe_producers(run: Run) -> None:
    run.ask("nothing", topics=[])
    name = run.create("t", 2)
    run.ask("no partitions", topics=[{"name": name, "partition_indexes": []}])
    run.ask("no producers", topics=[{"name": name, "partition_indexes": [0, 1, 2]}])
    run.ask("partition twice", topics=[{"name": name, "partition_indexes": [0, 0]}])
    run.ask("unknown", topics=[{"name": run.name("unknown"), "partition_indexes": [0]}])
    run.ask("bad names", topics=[{"name": bad, "partition_indexes": [0]} for bad in ("", "a b", "x" * 250, ".")])


@case(ApiKey.ALTER_REPLICA_LOG_DIRS)
def alter_replica_log_dirs(run: Run) -> None:
    name = run.create("t", 2)
    here = run.quiet(ApiKey.DESCRIBE_LOG_DIRS, topics=[{"topic": name, "partitions": [0]}])["results"][0]["log_dir"]

    def alter(step: str, path: str, topic: str, *partitions: int) -> None:
        run.ask(step, dirs=[{"path": path, "topics": [{"name": topic, "partitions": list(partitions)}]}])

    alter("where it is", here, name, 0)
    alter("both where they are", here, name, 0, 1)
    alter("unknown directory", "/nowhere", name, 0)
    alter("unknown partition", here, name, 9)
    alter("unknown topic", here, run.name("unknown"), 0)
    alter("no partitions", here, name)
    run.ask("nothing", dirs=[])


@case(ApiKey.DESCRIBE_LOG_DIRS)
def describe_log_dirs(run: Run) -> None:
    name, empty = run.create("t", 2), run.create("empty")
    run.produced(name, batch(run.base_ms, 5))

    def describe(step: str, *topics: dict[str, Any]) -> None:
        run.ask(step, topics=list(topics), only_own=True)

    describe("both partitions", {"topic": name, "partitions": [0, 1]})
    describe("two topics", {"topic": name, "partitions": [0]}, {"topic": empty, "partitions": [0]})
    describe("unknown partition", {"topic": name, "partitions": [0, 9, -1]})
    describe("unknown topic", {"topic": run.name("unknown"), "partitions": [0]})
    describe("partition twice", {"topic": name, "partitions": [0, 0]})
    describe("topic twice", {"topic": name, "partitions": [0]}, {"topic": name, "partitions": [1]})
    describe("no partitions", {"topic": name, "partitions": []})
    describe("nothing")
    run.ask("everything", topics=None, only_own=True)
