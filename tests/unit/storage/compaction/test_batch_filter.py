"""What is left of one batch, by what follows it in the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import pytest

from penstock.protocol.batches import LOG_APPEND_TIME_FLAG, BatchHeader, assemble, is_crc_valid, read_header
from penstock.protocol.errors import CorruptData
from penstock.protocol.records import Record, read_records, write_batch
from penstock.storage.compaction.rules.batch_filter import BatchFilter, LastBatch, last_batch_of, open_table
from penstock.storage.compaction.rules.cleaned_transactions import CleanedTransactions
from penstock.storage.compaction.rules.latest_offsets import LatestOffsets
from penstock.storage.log.rules.aborted_transaction import AbortedTransaction
from penstock.storage.log.rules.config import LogConfig
from penstock.storage.log.rules.control_records import write_end_transaction_marker
from penstock.storage.log.rules.producer_entry import BatchMetadata, ProducerEntry
from penstock.storage.log.rules.record_batch import StoredBatch

NOW_MS = 1_700_000_000_000
RETENTION_MS = 86_400_000
LEADER_EPOCH = 3
PRODUCER = 7
LONG_KEY = b"a key of more than the 32 bytes of a hash"


def stored(batch: bytes) -> StoredBatch:
    return StoredBatch(0, read_header(batch, 0), memoryview(batch), 0)


def batch_of(
    *records: tuple[bytes | None, bytes | None],
    base_offset: int = 100,
    compression: int = 0,
    producer_id: int = -1,
    is_transactional: bool = False,
    age_ms: int = 0,
    leader_epoch: int = LEADER_EPOCH,
) -> StoredBatch:
    rows = [
        Record(base_offset + i, NOW_MS - age_ms + i, key, value, (("h", b"%d" % i),))
        for i, (key, value) in enumerate(records)
    ]
    return stored(
        write_batch(
            rows,
            compression=compression,
            leader_epoch=leader_epoch,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=40 if producer_id >= 0 else -1,
            is_transactional=is_transactional,
        )
    )


def marker(*, is_commit: bool, offset: int = 100, epoch: int = 0) -> StoredBatch:
    data = write_end_transaction_marker(PRODUCER, epoch, is_commit=is_commit, coordinator_epoch=1, now_ms=NOW_MS)
    return stored(assemble(read_header(data, 0)._replace(base_offset=offset, partition_leader_epoch=3), data[61:]))


def latest_of(*batches: StoredBatch, start_offset: int = 0, end_offset: int = 1000) -> LatestOffsets:
    latest = LatestOffsets(start_offset, max_bytes=1 << 20)
    for batch in batches:
        latest.add(open_table(batch), start_offset)
    latest.end_offset = end_offset
    return latest


def filter_of(
    latest: LatestOffsets,
    *,
    aborted: Sequence[AbortedTransaction] = (),
    last_batches: Mapping[int, LastBatch] | None = None,
    now_ms: int = NOW_MS,
    config: LogConfig | None = None,
) -> BatchFilter:
    config = config or LogConfig(delete_retention_ms=RETENTION_MS)
    made = BatchFilter(latest, CleanedTransactions(aborted), last_batches or {}, now_ms=now_ms, config=config)
    # What a batch is that begins its leader epoch has a test of its own.
    made.keep(batch_of((b"first", b""), base_offset=0))
    return made


def read(data: bytes | None) -> tuple[BatchHeader, list[Record]]:
    assert data
    header = read_header(data, 0)
    assert header.size_bytes == len(data)
    assert is_crc_valid(data, 0, header)
    return header, list(read_records(data, header))


@pytest.mark.parametrize("compression", [0, 1, 2, 3, 4])
def test_records_with_a_later_one_go_and_the_others_stay_as_they_are(compression: int) -> None:
    batch = batch_of((b"a", b"1"), (LONG_KEY, b"2"), (b"b", b"3"), (b"a", b"4"), compression=compression)
    before = {record.offset: record for record in read_records(batch.data, batch.header)}
    later = batch_of((LONG_KEY, b"5"), base_offset=200)
    kept = filter_of(latest_of(batch, later)).keep(batch)
    header, records = read(kept.data)
    assert (records, kept.record_count) == ([before[102], before[103]], 2)
    assert header._replace(batch_length=0, crc=0) == batch.header._replace(batch_length=0, crc=0, record_count=2)


@pytest.mark.parametrize(
    ("compression", "low", "high"),
    [
        (1, LogConfig(compression_gzip_level=1), LogConfig(compression_gzip_level=9)),
        (3, LogConfig(compression_lz4_level=9), LogConfig(compression_lz4_level=12)),
        (4, LogConfig(compression_zstd_level=-5), LogConfig(compression_zstd_level=19)),
    ],
)
def test_what_is_left_is_compressed_at_the_level_of_the_topic(
    compression: int, low: LogConfig, high: LogConfig
) -> None:
    rows = [(b"%d" % number, b"%d %d" % (number, number * number) * 9) for number in range(400)]
    batch = batch_of(*rows, compression=compression)
    latest = latest_of(batch, batch_of((b"7", b""), base_offset=900))
    small, large = (read(filter_of(latest, config=config).keep(batch).data) for config in (high, low))
    assert small[0].batch_length < large[0].batch_length
    assert small[1] == large[1]


def test_the_largest_timestamp_is_of_what_is_left() -> None:
    batch = batch_of((b"a", b"1"), (b"b", b"2"))
    header, _ = read(filter_of(latest_of(batch, batch_of((b"b", b""), base_offset=200))).keep(batch).data)
    assert header.max_timestamp == NOW_MS


def test_the_brokers_own_timestamp_stays() -> None:
    plain = batch_of((b"a", b"1"), (b"b", b"2"))
    attributes = plain.header.attributes | LOG_APPEND_TIME_FLAG
    batch = stored(assemble(plain.header._replace(attributes=attributes, max_timestamp=NOW_MS + 50), plain.data[61:]))
    header, records = read(filter_of(latest_of(batch, batch_of((b"b", b""), base_offset=200))).keep(batch).data)
    assert (header.max_timestamp, records[0].timestamp_ms) == (NOW_MS + 50, NOW_MS + 50)


def test_a_batch_without_anything_to_remove_is_not_touched() -> None:
    batch = batch_of((b"a", b"1"), (b"b", b"2"))
    assert filter_of(latest_of(batch)).keep(batch) == (None, 2)


def test_a_batch_of_which_nothing_is_left_is_gone() -> None:
    batch = batch_of((b"a", b"1"))
    assert filter_of(latest_of(batch, batch_of((b"a", b"2"), base_offset=200))).keep(batch) == (b"", 0)


def test_what_is_behind_the_keys_that_are_known_stays() -> None:
    batch = batch_of((b"a", b"1"), base_offset=300)
    later = batch_of((b"a", b"2"), base_offset=400)
    assert filter_of(latest_of(later, end_offset=300)).keep(batch) == (None, 1)


def test_records_before_the_dirty_part_count_for_no_key() -> None:
    straddling = batch_of((b"a", b"1"), (b"b", b"2"), (b"a", b"3"))
    latest = LatestOffsets(102, max_bytes=1 << 20)
    latest.add(open_table(straddling), 102)
    latest.end_offset = 1000
    assert latest.key_count == 1
    _, records = read(filter_of(latest).keep(straddling).data)
    assert [record.offset for record in records] == [101, 102]


def test_records_without_a_key_go() -> None:
    batch = batch_of((None, b"1"), (b"a", b"2"), (None, b"3"))
    _, records = read(filter_of(latest_of(batch)).keep(batch).data)
    assert [record.offset for record in records] == [101]


def test_a_short_key_that_is_the_hash_of_a_long_one_is_another_key() -> None:
    from hashlib import blake2b

    short = blake2b(LONG_KEY, digest_size=32).digest()
    batch = batch_of((LONG_KEY, b"1"))
    latest = latest_of(batch, batch_of((short, b"2"), base_offset=200))
    assert filter_of(latest).keep(batch) == (None, 1)


# Tombstones


def test_a_tombstone_is_given_its_horizon_and_goes_when_that_is_over_kip_534() -> None:
    batch = batch_of((b"a", b"1"), (b"b", None), compression=4)
    kept = filter_of(latest_of(batch)).keep(batch)
    header, records = read(kept.data)
    assert header.delete_horizon_ms == NOW_MS + RETENTION_MS
    assert records == list(read_records(batch.data, batch.header))
    assert header.max_timestamp == batch.header.max_timestamp

    again = stored(kept.data or b"")
    nothing_new = LatestOffsets(1000, max_bytes=1 << 20)
    assert filter_of(nothing_new, now_ms=NOW_MS + RETENTION_MS - 1).keep(again) == (None, 2)
    late, left = read(filter_of(nothing_new, now_ms=NOW_MS + RETENTION_MS).keep(again).data)
    assert left == records[:1]
    assert late.delete_horizon_ms == header.delete_horizon_ms


def test_a_tombstone_that_a_later_record_follows_goes_at_once() -> None:
    batch = batch_of((b"a", None), (b"b", b"1"))
    header, records = read(filter_of(latest_of(batch, batch_of((b"a", b"2"), base_offset=200))).keep(batch).data)
    assert [record.offset for record in records] == [101]
    assert header.delete_horizon_ms is None


def test_timestamps_far_from_the_horizon_stay() -> None:
    batch = batch_of((b"a", None), age_ms=NOW_MS)
    _, records = read(filter_of(latest_of(batch)).keep(batch).data)
    assert records[0].timestamp_ms == 0


# Leader epochs


def test_the_header_of_the_first_batch_of_a_leader_epoch_stays() -> None:
    """It is where a replica that fetches what is left learns of the epoch."""
    batches = [
        batch_of((b"a", b"1"), base_offset=offset, leader_epoch=epoch) for offset, epoch in ((0, 2), (10, 2), (20, 4))
    ]
    cleaning = BatchFilter(
        latest_of(*batches, batch_of((b"a", b""), base_offset=200)),
        CleanedTransactions([]),
        {},
        now_ms=NOW_MS,
        config=LogConfig(),
    )
    kept = [cleaning.keep(batch).data for batch in batches]
    assert [read(data)[0].partition_leader_epoch if data else None for data in kept] == [2, None, 4]
    assert [read(data)[1] for data in (kept[0], kept[2])] == [[], []]


# Producers


def test_the_header_of_a_producers_last_batch_stays() -> None:
    batch = batch_of((b"a", b"1"), (b"b", b"2"), producer_id=PRODUCER, compression=3)
    latest = latest_of(batch, batch_of((b"a", b""), (b"b", b""), base_offset=200))
    header, records = read(filter_of(latest, last_batches={PRODUCER: LastBatch(0, 101, 101)}).keep(batch).data)
    assert records == []
    assert (header.base_offset, header.last_offset, header.base_sequence, header.last_sequence) == (100, 101, 40, 41)
    assert (header.producer_id, header.partition_leader_epoch, header.compression) == (PRODUCER, LEADER_EPOCH, 0)
    empty = stored(assemble(header, b""))
    assert filter_of(latest, last_batches={PRODUCER: LastBatch(0, 101, 101)}).keep(empty) == (None, 0)
    assert filter_of(latest, last_batches={PRODUCER: LastBatch(0, 205, 205)}).keep(empty) == (b"", 0)


@pytest.mark.parametrize(
    ("last_offset", "committed_offset", "stays"),
    [(300, 101, True), (300, 205, False), (300, None, True), (101, 50, True)],
)
def test_the_header_of_a_producers_last_committed_batch_stays(
    last_offset: int, committed_offset: int | None, stays: bool
) -> None:
    """What was written behind it may be cut."""
    batch = batch_of((b"a", b"1"), (b"b", b"2"), producer_id=PRODUCER)
    latest = latest_of(batch, batch_of((b"a", b""), (b"b", b""), base_offset=200))
    last = LastBatch(0, last_offset, committed_offset)
    assert bool(filter_of(latest, last_batches={PRODUCER: last}).keep(batch).data) == stays


def test_what_may_be_cut_of_a_producer_is_told_by_its_batches() -> None:
    batches = [BatchMetadata(number, number, offset, offset, 0) for number, offset in enumerate((10, 20, 30))]
    entry = ProducerEntry(PRODUCER, epoch=3, batches=batches)
    assert last_batch_of(entry, stable_offset=31) == LastBatch(3, 30, 30)
    assert last_batch_of(entry, stable_offset=30) == LastBatch(3, 30, 20)
    assert last_batch_of(entry, stable_offset=10) == LastBatch(3, 30, None)
    assert last_batch_of(ProducerEntry(PRODUCER, epoch=3), stable_offset=10) == LastBatch(3, None, None)


def test_the_header_of_the_last_batch_of_a_segment_stays() -> None:
    batch = batch_of((b"a", b"1"))
    batch_filter = filter_of(latest_of(batch, batch_of((b"a", b"2"), base_offset=200)))
    batch_filter.segment_end = 101
    header, records = read(batch_filter.keep(batch).data)
    assert (header.next_offset, records) == (101, [])


# Transactions


ABORTED = AbortedTransaction(PRODUCER, 100, 110, 100)


def test_aborted_records_go_and_their_marker_stays_as_long_as_there_is_a_batch() -> None:
    batch = batch_of((b"a", b"1"), producer_id=PRODUCER, is_transactional=True)
    end = marker(is_commit=False, offset=110)
    batch_filter = filter_of(latest_of(batch), aborted=[ABORTED])
    assert batch_filter.keep(batch) == (b"", 0)
    assert batch_filter.keep(end) == (None, 1)
    assert batch_filter.transactions.retained == [ABORTED]

    # The next time there is none: the marker has its horizon, and then goes.
    batch_filter = filter_of(latest_of(), aborted=[ABORTED])
    kept = batch_filter.keep(end)
    header, _ = read(kept.data)
    assert header.delete_horizon_ms == NOW_MS + RETENTION_MS
    assert header.is_control
    assert batch_filter.transactions.retained == []
    over = filter_of(latest_of(), aborted=[ABORTED], now_ms=NOW_MS + RETENTION_MS)
    assert over.keep(stored(kept.data or b"")) == (b"", 0)


def test_the_marker_of_a_commit_stays_as_long_as_there_is_a_batch() -> None:
    batch = batch_of((b"a", b"1"), producer_id=PRODUCER, is_transactional=True)
    batch_filter = filter_of(latest_of(batch))
    assert batch_filter.keep(batch) == (None, 1)
    assert batch_filter.keep(marker(is_commit=True, offset=110)) == (None, 1)
    header, _ = read(filter_of(latest_of()).keep(marker(is_commit=True, offset=110)).data)
    assert header.delete_horizon_ms == NOW_MS + RETENTION_MS


def test_the_last_marker_of_a_producer_stays_for_its_epoch() -> None:
    end = marker(is_commit=True, epoch=4)
    horizon = read(filter_of(latest_of()).keep(end).data)[0]
    late = stored(assemble(horizon, end.data[61:]))
    now_ms = NOW_MS + RETENTION_MS
    header, records = read(
        filter_of(latest_of(), last_batches={PRODUCER: LastBatch(4, None, None)}, now_ms=now_ms).keep(late).data
    )
    assert (header.producer_epoch, header.is_control, records) == (4, True, [])
    assert filter_of(latest_of(), last_batches={PRODUCER: LastBatch(5, None, None)}, now_ms=now_ms).keep(late) == (
        b"",
        0,
    )


# What cannot be


def test_records_that_are_not_what_the_header_says_are_corrupt() -> None:
    batch = batch_of((b"a", b"1"), (b"b", b"2"))
    for damaged in (
        assemble(batch.header._replace(record_count=3), batch.data[61:]),
        assemble(batch.header._replace(record_count=1), batch.data[61:]),
        assemble(batch.header._replace(last_offset_delta=0), batch.data[61:]),
        assemble(batch.header, batch.data[61:-1]),
        assemble(batch.header, b"\x02\x00" + batch.data[63:]),
        assemble(batch.header._replace(record_count=-1), b""),
    ):
        with pytest.raises(CorruptData):
            filter_of(latest_of()).keep(stored(damaged))


@pytest.mark.parametrize("seed", range(20))
def test_of_batches_that_were_taken_in_exactly_the_latest_records_of_their_keys_are_left(seed: int) -> None:
    random = Random(seed)
    batches: list[StoredBatch] = []
    offset = 10
    for _ in range(12):
        count = random.choice((1, 3, 40, 200))
        keys = [random.choice((LONG_KEY + b"%d", b"%d", b"%d")) % random.randrange(150) for _ in range(count)]
        has_other_kinds = random.random() < 0.2
        rows = [
            # Lengths of one, two and three bytes; headers make a record longer than its value.
            (None if has_other_kinds and number % 9 == 4 else key, bytes(random.choice((0, 9, 300, 20_000))))
            if not (has_other_kinds and number % 7 == 3)
            else (key, None)
            for number, key in enumerate(keys)
        ]
        batches.append(batch_of(*rows, base_offset=offset, compression=random.choice((0, 4))))
        # Elsewhere a batch of a transaction that was aborted.
        offset += count + random.choice((0, 0, 5))
    if random.random() < 0.5:
        # Compaction has been here before.
        before = filter_of(latest_of(*batches[:4]))
        kept = [(batch, before.keep(batch).data) for batch in batches[:4]]
        left = [batch if data is None else stored(data) for batch, data in kept if data is None or data]
        batches = [*left, *batches[4:]]
    start_offset = random.choice((0, batches[2].header.base_offset, batches[2].header.last_offset))
    records = [list(read_records(batch.data, batch.header)) for batch in batches]
    last = {record.key: record.offset for one in records for record in one if record.offset >= start_offset}
    filtering = filter_of(latest_of(*batches, start_offset=start_offset, end_offset=offset))
    for batch, before_it in zip(batches, records, strict=True):
        data = filtering.keep(batch).data
        kept_records = before_it if data is None else read(data)[1] if data else []
        expected = [
            record for record in before_it if record.key is not None and last.get(record.key, -1) <= record.offset
        ]
        assert kept_records == expected, f"seed {seed}, the batch at {batch.header.base_offset}"


def test_a_batch_between_two_that_were_taken_in_is_looked_at_by_its_keys() -> None:
    before, between, behind = (
        batch_of((key, b"1"), base_offset=at) for key, at in ((b"a", 10), (b"b", 20), (b"c", 30))
    )
    filtering = filter_of(latest_of(before, behind))
    assert [filtering.keep(batch).record_count for batch in (before, between, behind)] == [1, 1, 1]
