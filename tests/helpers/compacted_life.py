"""Random lives of a compacted partition on a disk that fails, against a plain list of the records that were written.

What is held: what is left was written, at its offset; a consumer that reads to the end knows the latest value of each
key, and nothing that was deleted or aborted; producers are known as before; nothing that was committed is missing
because the process, or the power, ended in the middle, or because a file was damaged that another replica has.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from file_damage import OtherReplica, closed_files, damage_rule, flip_bit, scrub
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from node_disk import NodeDisk
from produced_batches import produced

from penstock.chaos.simulation.virtual_loop import VirtualLoop
from penstock.protocol.batches import HEADER_SIZE, iterate_headers
from penstock.protocol.records import Record, read_records, write_batch
from penstock.storage.compaction.compactor import ExecutorCompactor
from penstock.storage.directories.log_cleaner import LogCleaner, LogCleanerConfig
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig
from penstock.storage.log.rules.control_records import write_end_transaction_marker
from penstock.storage.log.rules.file_names import CLEANED, SWAP

TOPIC: Final = "table"
DELETE_RETENTION_MS: Final = 10_000
KEYS: Final = ("a", "b", "c", "a key that is so long that only its hash is kept in memory")
PLAIN, TRANSACTIONAL = (1, 2), (11, 12)


@dataclass(frozen=True, slots=True)
class Written:
    key: bytes
    value: bytes | None
    timestamp_ms: int
    is_aborted: bool


class CompactedLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.loop.__enter__()
        self.disk = NodeDisk(self.loop)
        self.random = Random(1)
        # By offset.
        self.written: dict[int, Written] = {}
        self.producers: dict[int, int | None] = {}
        self.sequences: dict[int, int] = {}
        self.open_since: dict[int, int] = {}
        self.value = 0
        self.config = LogCleanerConfig()
        self.log: Log
        # Above this a loss of power may take what there is.
        self.flushed = 0

    def teardown(self) -> None:
        self.loop.__exit__(None, None, None)

    @initialize(
        segment_bytes=st.sampled_from([300, 700, 3000]),
        interval=st.sampled_from([0, 100, 4096]),
        map_bytes=st.sampled_from([500, 1500, 1 << 20]),
    )
    def start(self, segment_bytes: int, interval: int, map_bytes: int) -> None:
        self.disk.config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            cleanup_policy=frozenset({"compact"}),
            min_cleanable_dirty_ratio=0.0,
            delete_retention_ms=DELETE_RETENTION_MS,
        )
        self.config = LogCleanerConfig(log_cleaner_dedupe_buffer_size=map_bytes)
        self.begin()

    def begin(self) -> None:
        self.start_process()
        assert self.log.damage is None
        self.cleaner = LogCleaner(
            self.disk.manager,
            self.disk.files,
            self.loop,
            ExecutorCompactor(self.disk.files, self.loop),
            config=lambda: self.config,
            steady_clock_ms=lambda: self.disk.now_ms,
            stable_offset_of=lambda log: log.last_stable_offset(log.log_end_offset),
        )

    def start_process(self) -> None:
        self.disk.start()
        self.log = self.disk.log(TOPIC)

    def stop_process(self) -> None:
        self.disk.stop()

    def kill_process(self, random: Random | None = None) -> None:
        """With `random` the power is lost, too."""
        self.disk.files.heal()
        if random is None:
            self.disk.files.kill()
        else:
            self.disk.files.crash(random)

    # Writing

    @rule(
        keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=4),
        has_values=st.booleans(),
        producer=st.sampled_from([None, *PLAIN]),
        compression=st.sampled_from([0, 0, 0, 4]),
        age_ms=st.integers(-3000, 3000),
    )
    def append(self, keys: list[str], has_values: bool, producer: int | None, compression: int, age_ms: int) -> None:
        for _ in range(3):
            self.write(keys, has_values, producer, compression, age_ms)

    @rule(keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=3), producer=st.sampled_from(TRANSACTIONAL))
    def append_in_transaction(self, keys: list[str], producer: int) -> None:
        end = self.log.log_end_offset
        self.write(keys, True, producer, 0, 0)
        if self.log.log_end_offset > end:
            self.open_since.setdefault(producer, end)

    @rule(producer=st.sampled_from(TRANSACTIONAL), is_commit=st.booleans())
    def end_transaction(self, producer: int, is_commit: bool) -> None:
        since = self.open_since.pop(producer, None)
        if since is None:
            return
        marker = write_end_transaction_marker(
            producer, 0, is_commit=is_commit, coordinator_epoch=1, now_ms=self.disk.now_ms
        )
        self.log.append_of_coordinator(marker, leader_epoch=0, now_ms=self.disk.now_ms)
        if not is_commit:
            for offset, record in self.written.items():
                if offset >= since and self.producers[offset] == producer:
                    self.written[offset] = replace(record, is_aborted=True)

    def write(self, keys: list[str], has_values: bool, producer: int | None, compression: int, age_ms: int) -> None:
        self.value += 1
        value = b"%d" % self.value if has_values else None
        timestamp_ms = self.disk.now_ms - age_ms
        records = [Record(i, timestamp_ms + i % 2, key.encode(), value) for i, key in enumerate(keys)]
        data = write_batch(
            records,
            compression=compression,
            producer_id=-1 if producer is None else producer,
            producer_epoch=-1 if producer is None else 0,
            base_sequence=-1 if producer is None else self.sequences.get(producer, 0),
            is_transactional=producer in TRANSACTIONAL,
        )
        if len(data) > self.disk.config.segment_bytes:
            return
        verification = None
        if producer in TRANSACTIONAL:
            verification = self.log.producers.begin_verification(
                producer, 0, self.sequences.get(producer, 0), has_epoch_bumps=False, now_ms=self.disk.now_ms
            )
        info = self.log.append_as_leader(
            produced(data), leader_epoch=0, now_ms=self.disk.now_ms, verification=verification
        )
        assert not info.is_duplicate
        for record in records:
            offset = info.first_offset + record.offset
            self.written[offset] = Written(record.key or b"", record.value, record.timestamp_ms, False)
            self.producers[offset] = producer
        if producer is not None:
            self.sequences[producer] = self.sequences.get(producer, 0) + len(keys)

    # Time and the cleaner

    @rule(seconds=st.integers(1, 30))
    def wait(self, seconds: int) -> None:
        self.disk.skew_ms += seconds * 1000

    @rule()
    def clean(self) -> None:
        end = self.log.log_end_offset
        while self.loop.run(self.cleaner.clean_dirtiest()):
            pass
        assert self.cleaner.uncleanable == {}
        assert self.log.log_end_offset == end
        names = self.disk.names(self.log.directory)
        assert not [name for name in names if name.endswith((CLEANED, SWAP))]

    @rule()
    def flush(self) -> None:
        self.log.flush()

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        log = self.log
        start = log.log_start_offset
        log.increment_log_start_offset(start + int(share * (log.log_end_offset - start)))
        while log.delete_old_segments(log.log_end_offset, self.disk.now_ms):
            pass

    # Ends and damage

    @rule()
    def stop_and_start(self) -> None:
        self.stop_process()
        self.begin()

    @rule(step=st.integers(0, 60), is_power_lost=st.booleans())
    def end_while_cleaning(self, step: int, is_power_lost: bool) -> None:
        self.log.flush()
        self.disk.files.end_process(skip=step)
        with suppress(OSError):
            self.loop.run(self.cleaner.clean_dirtiest())
        self.kill_process(self.random if is_power_lost else None)
        self.begin()

    @damage_rule
    def damage(self, is_stopped: bool, number: int, suffix: str, share: float, bit: int) -> None:
        """A file of a closed segment; scrubbing finds it, and another replica has what was in it."""
        log, files = self.log, self.disk.files
        log.flush()
        paths = closed_files(log, files, suffix)
        other = OtherReplica(log)
        if is_stopped:
            self.stop_process()
        if paths:
            flip_bit(files, paths[number % len(paths)], share, bit, has_gaps=True)
        if not is_stopped:
            self.kill_process()
        self.start_process()
        # Recovery takes a batch that is not intact for one that was being written, above the last checkpoint.
        other.repair(
            self.disk, self.log, self.log.log_end_offset if self.log.damage is None else self.log.damage.offset
        )
        found = scrub(self.disk, self.loop)
        if found is not None:
            other.repair(self.disk, self.log, found)
        self.stop_process()
        self.begin()

    # What is held

    @invariant()
    def nothing_is_made_up_and_nothing_missing(self) -> None:
        if not hasattr(self, "log"):
            return
        log, start = self.log, self.log.log_start_offset
        found, aborted = self.read()
        for offset, record in found.items():
            written = self.written[offset]
            assert (record.key, record.value, record.timestamp_ms) == (
                written.key,
                written.value,
                written.timestamp_ms,
            ), offset
        assert not [offset for offset in found if self.written[offset].is_aborted and offset not in aborted]
        assert not [offset for offset in aborted if not self.written[offset].is_aborted]
        expected = self.table(
            {offset: one for offset, one in self.written.items() if offset >= start and not one.is_aborted}
        )
        seen = self.table({offset: self.written[offset] for offset in found if offset not in aborted})
        assert seen == expected
        assert log.log_end_offset > max(self.written, default=-1)
        for producer, sequence in self.sequences.items():
            assert log.producers.entries[producer].next_sequence == sequence, producer

    def table(self, records: dict[int, Written]) -> dict[bytes, tuple[int, bytes]]:
        table: dict[bytes, tuple[int, bytes]] = {}
        for offset in sorted(records):
            record = records[offset]
            if record.value is None:
                table.pop(record.key, None)
            else:
                table[record.key] = offset, record.value
        return table

    def read(self) -> tuple[dict[int, Record], set[int]]:
        """All records by offset, and the offsets of those that a read_committed consumer leaves out."""
        log = self.log
        position = log.log_start_offset
        found: dict[int, Record] = {}
        left_out: set[int] = set()
        pending = sorted(log.aborted_transactions(position, log.log_end_offset), key=lambda one: one.first_offset)
        aborting: set[int] = set()
        while position < log.log_end_offset:
            data = log.read(position, max_bytes=1 << 20, end_offset=log.log_end_offset, min_one_batch=True)
            chunk = b"".join(piece.read(0, piece.size) for piece in data.slices)
            assert len(chunk) >= HEADER_SIZE, f"a read at {position} of {log.log_end_offset} gives nothing"
            for at, header in iterate_headers(chunk):
                position = max(position, header.next_offset)
                while pending and pending[0].first_offset <= header.last_offset:
                    aborting.add(pending.pop(0).producer_id)
                records = list(read_records(chunk[at:], header))
                if header.is_control:
                    aborting.discard(header.producer_id)
                    continue
                for record in records:
                    if record.offset < log.log_start_offset:
                        continue
                    found[record.offset] = record
                    if header.is_transactional and header.producer_id in aborting:
                        left_out.add(record.offset)
        return found, left_out
