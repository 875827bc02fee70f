"""Random lives of a partition on a disk that fails, against a plain list of batches.

What is held: reads, lookups by time, leader epochs and producers equal what the list says; nothing that was flushed is
ever lost; after a loss of power the log is a beginning of what was written; after a failed append it is as before.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from struct import iter_unpack
from typing import Final
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from node_disk import open_directories
from produced_batches import produced

from penstock.protocol.batches import HEADER_SIZE, iterate_headers, read_header
from penstock.protocol.errors import ConfigError, ErrorCode, KafkaError
from penstock.protocol.ids import BrokerEpoch, NodeId, TopicId
from penstock.protocol.records import Record, write_batch
from penstock.storage.directories.log_closing import start_offset_to_checkpoint
from penstock.storage.directories.log_directories import LogDirectories
from penstock.storage.directories.log_manager import LogManager
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig

pytestmark = pytest.mark.thorough

NOW: Final = 1_700_000_000_000
TOPIC_ID: Final = TopicId(UUID("b2698a74-0e10-8d65-9981-c07acf362664"))
FOLDER: Final = "/data/events-0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch of the model; `data` are the bytes as they must be stored."""

    base_offset: int
    timestamps: tuple[int, ...]
    data: bytes

    @property
    def next_offset(self) -> int:
        return self.base_offset + len(self.timestamps)

    @property
    def leader_epoch(self) -> int:
        return read_header(self.data, 0).partition_leader_epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """All batches that were ever in the log in a row, the deleted ones too, and where a log without any would end."""

    start_offset: int = 0
    batches: tuple[Batch, ...] = ()

    @property
    def end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start_offset

    def cut_at(self, offset: int) -> "Version":
        """Without the batches that end after `offset`."""
        return replace(self, batches=tuple(batch for batch in self.batches if batch.next_offset <= offset))

    def from_offset(self, offset: int) -> list[Batch]:
        return [batch for batch in self.batches if batch.next_offset > offset]


def stored(log: Log, start_offset: int, max_bytes: int = 1 << 20) -> bytes:
    """What is read from `start_offset` to the end, by as many reads as it takes."""
    found = b""
    while start_offset < log.log_end_offset:
        data = log.read(start_offset, max_bytes=max_bytes, end_offset=log.log_end_offset, min_one_batch=True)
        chunk = b"".join(piece.read(0, piece.size) for piece in data.slices)
        position = 0
        while position + HEADER_SIZE <= len(chunk):
            header = read_header(chunk, position)
            if position + header.size_bytes > len(chunk):
                break
            position += header.size_bytes
            start_offset = header.next_offset
        assert position, f"a read at {start_offset} of {log.log_end_offset} gives {len(chunk)} bytes"
        found += chunk[:position]
    return found


class LogLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.random = Random(1)
        self.files = MemoryFiles(now_ms=lambda: NOW)
        # Of all lives: what is set aside after each crash needs a name of its own.
        self.random = Random(1)
        self.config = LogConfig()
        self.now_ms = NOW
        self.leader_epoch = 0
        self.sequences: dict[int, int] = {}
        # What the log is, and what else it might be after a loss of power.
        self.current = Version()
        self.others: list[Version] = []
        self.log_start_offset = 0
        # Below this nothing may be lost.
        self.flushed = 0
        # Below this nothing deleted may come back.
        self.checkpointed_start = 0
        self.manager: LogManager
        self.log: Log

    @initialize(segment_bytes=st.sampled_from([300, 700, 5000]), interval=st.sampled_from([0, 100, 4096]))
    def start(self, segment_bytes: int, interval: int) -> None:
        self.config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=interval, retention_ms=-1)
        self.load()

    def teardown(self) -> None:
        try:
            if hasattr(self, "log"):
                self.stop_and_start()
        finally:
            self.loop.close()

    # Processes

    def load(self) -> None:
        directories = LogDirectories(self.files, ["/data"], node_id=NodeId(1), random=self.random)
        self.manager = LogManager(self.files, directories, random=self.random, steady_clock_ms=lambda: self.now_ms)
        open_directories(self.manager, "cluster")
        self.loop.run_until_complete(
            self.manager.load(self.loop, config_of=lambda _: self.config, is_stray=lambda *_: False)
        )
        error = self.manager.directories[0].error
        if error is not None:
            raise error
        self.log = self.manager.get_or_create("events", 0, TOPIC_ID, self.config)
        assert self.log.damage is None

    def close(self) -> None:
        self.loop.run_until_complete(self.manager.close(self.loop, broker_epoch=BrokerEpoch(5)))
        self.manager.directories.unlock()
        assert self.manager.directories[0].is_online
        self.note_flush(self.current.end_offset)
        self.checkpointed_start = self.log_start_offset
        self.check_index_files()

    def stop_and_start(self) -> None:
        self.close()
        self.load()
        assert self.log.recovery_point == self.log.log_end_offset
        assert self.log.log_start_offset == self.log_start_offset
        self.check_everything()

    def settle(self, *, is_exact: bool = False) -> None:
        """After a start that was not clean: the log must be one of those that it may be, and the model is that one."""
        log = self.log
        candidates = [self.current] if is_exact else [self.current, *self.others]
        start = log.log_start_offset
        # The checkpoint may know a log start that a truncation went below: then the log begins anew there.
        written_start = self.manager.directories[0].checkpointed["log-start-offset-checkpoint"].get(("events", 0), 0)
        if self.flushed or log.log_end_offset:
            assert self.checkpointed_start <= start <= max(self.log_start_offset, written_start)
        else:
            # The log was never synced, and with its folder even its name is lost: it begins anew.
            self.checkpointed_start = 0
        found = stored(log, start)
        for version in candidates:
            begun = version.cut_at(log.log_end_offset)
            if begun.end_offset == log.log_end_offset or (not begun.from_offset(start) and not found):
                data = b"".join(batch.data for batch in begun.from_offset(start))
                if data == found:
                    break
        else:
            ends = [(version.start_offset, version.end_offset) for version in candidates]
            raise AssertionError(f"[{start}, {log.log_end_offset}) is no beginning of {ends}")
        if is_exact:
            assert begun == self.current
            assert log.log_end_offset == max(begun.end_offset, written_start)
        assert log.log_end_offset >= self.flushed, "flushed batches are lost"
        self.current = begun
        if begun.end_offset != log.log_end_offset:
            # All that was left lay below the log start: the log begins anew there.
            self.current = Version(start_offset=log.log_end_offset)
        self.log_start_offset = start
        self.sequences = {pid: entry[1] for pid, entry in self.expected_producers().items()}
        # What recovery found is synced before a reader sees it.
        self.note_flush(self.current.end_offset)
        assert log.recovery_point == log.log_end_offset
        self.check_everything()

    # What may be called a change

    def replace_current(self, version: Version) -> None:
        self.others.append(self.current)
        self.current = version

    def note_flush(self, end_offset: int) -> None:
        if self.current.batches:
            self.flushed = max(self.flushed, end_offset)
        if end_offset == self.current.end_offset:
            self.others = []

    # Rules: appending

    @rule(
        count=st.integers(1, 4),
        size=st.sampled_from([1, 50, 200]),
        producer=st.sampled_from([None, None, 1, 2, 3]),
        age_ms=st.integers(-5000, 5000),
        compression=st.sampled_from([0, 0, 4]),
    )
    def append(self, count: int, size: int, producer: int | None, age_ms: int, compression: int) -> None:
        self.try_append(self.make(count, size, producer, age_ms, compression), producer)

    def make(self, count: int, size: int, producer: int | None, age_ms: int, compression: int = 0) -> bytes:
        records = [Record(i, self.now_ms - age_ms + 7 * (i % 2), b"k", bytes([i]) * size) for i in range(count)]
        if producer is None:
            return write_batch(records, compression=compression)
        return write_batch(
            records,
            compression=compression,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=self.sequences.get(producer, 0),
        )

    def try_append(self, data: bytes, producer: int | None) -> None:
        header = read_header(data, 0)
        if header.size_bytes > self.config.segment_bytes:
            with pytest.raises(KafkaError) as raised:
                self.log.append_as_leader(produced(data), leader_epoch=self.leader_epoch, now_ms=self.now_ms)
            assert raised.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
            return
        info = self.log.append_as_leader(produced(data), leader_epoch=self.leader_epoch, now_ms=self.now_ms)
        assert (info.first_offset, info.is_duplicate) == (self.current.end_offset, False)
        self.note_append(data, producer)

    def note_append(self, data: bytes, producer: int | None) -> None:
        header = read_header(data, 0)
        base = self.current.end_offset
        first = header.base_timestamp
        timestamps = tuple(first + 7 * (i % 2) for i in range(header.record_count))
        head = base.to_bytes(8, "big") + data[8:12] + self.leader_epoch.to_bytes(4, "big")
        batch = Batch(base_offset=base, timestamps=timestamps, data=head + data[16:])
        self.current = replace(self.current, batches=(*self.current.batches, batch))
        if producer is not None:
            self.sequences[producer] = header.last_sequence + 1

    @rule(producer=st.sampled_from([1, 2, 3]))
    def append_the_last_batch_again(self, producer: int) -> None:
        mine = [b for b in self.current.batches if read_header(b.data, 0).producer_id == producer]
        if mine and len(mine[-1].data) <= self.config.segment_bytes and producer in self.producers_that_must_be_known():
            info = self.log.append_as_leader(
                produced(bytes(8) + mine[-1].data[8:]), leader_epoch=self.leader_epoch, now_ms=self.now_ms
            )
            assert info.is_duplicate
            assert (info.first_offset, info.last_offset) == (mine[-1].base_offset, mine[-1].next_offset - 1)

    @rule(producer=st.sampled_from([1, 2, 3]), gap=st.integers(1, 3))
    def append_out_of_order(self, producer: int, gap: int) -> None:
        if producer in self.producers_that_must_be_known():
            data = write_batch(
                [Record(0, self.now_ms, b"k", b"v")],
                producer_id=producer,
                producer_epoch=0,
                base_sequence=self.sequences[producer] + gap,
            )
            with pytest.raises(KafkaError) as raised:
                self.log.append_as_leader(produced(data), leader_epoch=self.leader_epoch, now_ms=self.now_ms)
            assert raised.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    @rule(count=st.integers(1, 3), size=st.sampled_from([10, 100]))
    def replicate(self, count: int, size: int) -> None:
        """Batches come as the leader has them, in one piece."""
        sent = b""
        for _ in range(count):
            self.note_append(self.make(2, size, None, 0), None)
            sent += self.current.batches[-1].data
        self.log.append_as_follower(sent + sent[:20], now_ms=self.now_ms)

    @rule()
    def begin_leader_epoch(self) -> None:
        self.leader_epoch += 1

    @rule(segment_bytes=st.sampled_from([300, 700, 5000]), interval=st.sampled_from([0, 100, 4096]))
    def change_config(self, segment_bytes: int, interval: int) -> None:
        self.config = replace(self.config, segment_bytes=segment_bytes, index_interval_bytes=interval)
        self.manager.update_config("events", self.config)

    # Rules: cutting

    @rule(part=st.floats(0, 1))
    def truncate(self, part: float) -> None:
        log = self.log
        offset = log.log_start_offset + round(part * (log.log_end_offset - log.log_start_offset))
        version = self.current.cut_at(offset)
        self.manager.truncate({log: offset})
        self.replace_current(version)
        self.after_truncation()

    @rule(gap=st.integers(0, 5))
    def truncate_fully(self, gap: int) -> None:
        offset = self.log.log_end_offset + gap
        self.manager.directories[0].limit_recovery_points({("events", 0): 0})
        self.log.truncate_fully_and_start_at(offset)
        self.replace_current(Version(start_offset=offset))
        self.log_start_offset = offset
        self.after_truncation()

    def after_truncation(self) -> None:
        self.flushed = min(self.flushed, self.current.end_offset)
        self.log_start_offset = self.log.log_start_offset
        self.checkpointed_start = min(self.checkpointed_start, self.log_start_offset)
        self.sequences = {pid: entry[1] for pid, entry in self.expected_producers().items()}

    @rule(part=st.floats(0, 1))
    def increment_log_start(self, part: float) -> None:
        log = self.log
        offset = log.log_start_offset + round(part * (log.log_end_offset - log.log_start_offset))
        log.increment_log_start_offset(offset)
        self.log_start_offset = offset

    @rule(part=st.floats(0, 1), keep_bytes=st.sampled_from([-1, 0, 500, 2000]))
    def delete_old_segments(self, part: float, keep_bytes: int) -> None:
        log = self.log
        high_watermark = log.log_start_offset + round(part * (log.log_end_offset - log.log_start_offset))
        log.config = replace(self.config, retention_bytes=keep_bytes)
        size = log.size_bytes
        count = log.delete_old_segments(high_watermark, self.now_ms)
        log.config = self.config
        assert self.log_start_offset <= log.log_start_offset <= max(high_watermark, self.log_start_offset)
        assert (count > 0) == (log.size_bytes < size) or size == 0
        self.log_start_offset = log.log_start_offset
        self.now_ms += self.config.file_delete_delay_ms

    # Rules: flushing

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.log.log_end_offset
        self.note_flush(self.current.end_offset)

    @rule(part=st.floats(0, 1))
    def append_while_syncing(self, part: float) -> None:
        end_offset = self.current.end_offset
        to_sync = self.log.files_to_sync(end_offset)
        done = round(part * len(to_sync))
        for file in to_sync[:done]:
            file.sync()
        self.try_append(self.make(2, 50, None, 0), None)
        for file in to_sync[done:]:
            file.sync()
        self.log.mark_flushed(end_offset)
        assert self.log.recovery_point >= end_offset - 1
        if end_offset and not self.others:
            self.flushed = max(self.flushed, end_offset)

    @rule()
    def checkpoint(self) -> None:
        directory = self.manager.directories[0]
        directory.write_offsets("recovery-point-offset-checkpoint", {("events", 0): self.log.recovery_point})
        start_offset = start_offset_to_checkpoint(self.log)
        if start_offset is not None:
            directory.write_offsets("log-start-offset-checkpoint", {("events", 0): start_offset})
            self.checkpointed_start = start_offset

    # Rules: ending

    @rule()
    def restart(self) -> None:
        self.stop_and_start()

    @rule(seed=st.integers(0, 2**32))
    def restart_and_lose_power(self, seed: int) -> None:
        """What a clean stop synced must do, without anything else that it wrote."""
        self.close()
        self.files.crash(Random(seed))
        self.load()
        self.settle()
        assert self.log.log_end_offset == self.current.end_offset

    @rule()
    def kill(self) -> None:
        self.files.kill()
        self.load()
        self.settle(is_exact=True)

    @rule(seed=st.integers(0, 2**32))
    def lose_power(self, seed: int) -> None:
        self.files.crash(Random(seed))
        self.load()
        self.settle()

    @rule(seed=st.integers(0, 2**32), operations=st.integers(0, 30), is_power_lost=st.booleans())
    def fail_while_loading(self, seed: int, operations: int, is_power_lost: bool) -> None:
        """The disk fails in the middle of a recovery, which then begins anew."""
        random = Random(seed)
        self.files.crash(random)
        syncs = self.files.operation_counts["sync"]
        self.files.fail(skip=operations, count=None)
        # ConfigError: no log directory can be used.
        with suppress(OSError, ConfigError):
            self.load()
        self.files.heal()
        if is_power_lost or self.files.operation_counts["sync"] > syncs:
            self.files.crash(random)
        else:
            self.files.kill()
        self.load()
        self.settle()

    # Rules: failing

    @rule(room=st.integers(0, 400), producer=st.sampled_from([None, 1, 2]))
    def append_to_a_full_disk(self, room: int, producer: int | None) -> None:
        self.files.capacity_bytes = self.files.total_bytes("/data") - self.files.free_bytes("/data") + room
        data = self.make(2, 50, producer, 0)
        try:
            self.try_append(data, producer)
        except OSError:
            self.check_everything()
            self.files.capacity_bytes = None
            self.try_append(data, producer)
        self.files.capacity_bytes = None

    @rule(
        seed=st.integers(0, 2**32),
        operations=st.integers(0, 8),
        action=st.sampled_from(["append", "flush", "truncate", "delete"]),
        is_power_lost=st.booleans(),
    )
    def fail_and_restart(self, seed: int, operations: int, action: str, is_power_lost: bool) -> None:
        """The disk fails for good in the middle of something: the log goes offline, and is opened by a new process."""
        flushed = self.flushed
        syncs = self.files.operation_counts["sync"]
        middle = (self.log.log_start_offset + self.log.log_end_offset) // 2
        if action == "truncate":
            self.manager.directories[0].limit_recovery_points({("events", 0): 0})
        self.files.fail(skip=operations, count=None)
        try:
            match action:
                case "append":
                    self.append(2, 200, None, 0, 0)
                case "flush":
                    self.flush()
                case "truncate":
                    self.others.append(self.current.cut_at(middle))
                    self.flushed = min(flushed, self.others[-1].end_offset)
                    self.log.truncate_to(middle)
                    self.others[-1] = self.current
                    self.current = self.current.cut_at(middle)
                    self.after_truncation()
                case "delete":
                    self.log.increment_log_start_offset(middle)
                    self.log_start_offset = middle
                    self.log.delete_old_segments(middle, self.now_ms)
        except OSError:
            pass
        self.files.heal()
        # After a failed sync a new process alone finds bytes in the page cache that no sync will ever write.
        is_power_lost = is_power_lost or self.files.operation_counts["sync"] > syncs
        if is_power_lost:
            self.files.crash(Random(seed))
        else:
            self.files.kill()
        self.load()
        self.settle()

    # What must hold

    def producers_that_must_be_known(self) -> dict[int, tuple[int, int, int]]:
        return {pid: entry for pid, entry in self.expected_producers().items() if entry[2] >= self.log_start_offset}

    def expected_producers(self) -> dict[int, tuple[int, int, int]]:
        """Producer id → epoch, next sequence, last offset."""
        expected = {}
        for batch in self.current.batches:
            header = read_header(batch.data, 0)
            if header.producer_id >= 0:
                expected[header.producer_id] = (
                    header.producer_epoch,
                    header.last_sequence + 1,
                    batch.next_offset - 1,
                )
        return expected

    @invariant()
    def ends_are_right(self) -> None:
        if hasattr(self, "log"):
            assert self.log.log_end_offset == self.current.end_offset
            assert self.log.log_start_offset == self.log_start_offset
            assert self.log.recovery_point <= self.log.log_end_offset

    @rule(part=st.floats(0, 1), max_bytes=st.integers(1, 2000))
    def read(self, part: float, max_bytes: int) -> None:
        start = self.log_start_offset + round(part * (self.current.end_offset - self.log_start_offset))
        found = stored(self.log, start, max_bytes)
        assert found == b"".join(batch.data for batch in self.current.from_offset(start))

    @rule(timestamp=st.integers(NOW - 6000, NOW + 6000))
    def look_up_by_time(self, timestamp: int) -> None:
        expected = next(
            (
                (batch.base_offset + i, time)
                for batch in self.current.from_offset(self.log_start_offset)
                for i, time in enumerate(batch.timestamps)
                if time >= timestamp and batch.base_offset + i >= self.log_start_offset
            ),
            None,
        )
        found = self.log.offset_for_timestamp(timestamp, self.log.log_end_offset)
        assert (None if found is None else (found.offset, found.timestamp)) == expected

    @rule()
    def check_everything(self) -> None:
        log = self.log
        batches = self.current.from_offset(self.log_start_offset)
        assert stored(log, self.log_start_offset) == b"".join(batch.data for batch in batches)
        for batch in batches:
            offset = max(batch.base_offset, self.log_start_offset)
            started = [epoch for epoch, start_offset in log.leader_epochs.entries if start_offset <= offset]
            assert started[-1] == batch.leader_epoch
        producers = {p.producer_id: p for p in log.producers.active(self.now_ms)}
        expected = self.expected_producers()
        for producer_id, (epoch, next_sequence, last_offset) in self.producers_that_must_be_known().items():
            producer = producers[producer_id]
            assert (producer.epoch, producer.last_sequence + 1) == (epoch, next_sequence)
            assert producer.last_batch is not None
            assert producer.last_batch.last_offset == last_offset
        for producer_id, producer in producers.items():
            assert expected[producer_id][:2] == (producer.epoch, producer.last_sequence + 1)

    def check_index_files(self) -> None:
        """What lies in the folder of a closed log, read without the code that wrote it."""
        names = self.files.list_directory(FOLDER)
        for name in names:
            if not name.endswith(".log"):
                continue
            base = int(name.removesuffix(".log"))
            data = self.files.read(f"{FOLDER}/{name}")
            last_offsets = {position: header.last_offset for position, header in iterate_headers(data)}
            times = {header.last_offset: header.max_timestamp for _, header in iterate_headers(data)}
            index = self.read_if_any(f"{FOLDER}/{base:020d}.index")
            entries = [(base + relative, position) for relative, position in iter_unpack(">ii", index)]
            assert entries == sorted(set(entries))
            assert all(last_offsets[position] == offset for offset, position in entries)
            time_index = self.read_if_any(f"{FOLDER}/{base:020d}.timeindex")
            time_entries = [(time, base + relative) for time, relative in iter_unpack(">qi", time_index)]
            assert time_entries == sorted(set(time_entries))
            for time, offset in time_entries:
                assert time == max(t for o, t in times.items() if o <= offset)
            if times:
                assert time_entries[-1][0] == max(times.values())

    def read_if_any(self, path: str) -> bytes:
        return self.files.read(path) if self.files.exists(path) else b""


TestLogLife = LogLife.TestCase
TestLogLife.settings = settings(stateful_step_count=40)
