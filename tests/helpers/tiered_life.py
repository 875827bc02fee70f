"""Random lives of a partition whose closed segments go to a tier, against a plain list of the batches that it has.

Between any two steps there may be copies, deletions, moves between log directories, cuts, other leader epochs,
outages of the tier and of its metadata, damaged files that are repaired from a replica, and ends of the process or of
the power.

What is held: reads from any offset, from the tier and from the disk, give the batches that were written, byte by byte,
with the aborted transactions among them; offsets by timestamp, leader epochs and producers are those of the list; no
record goes but by DeleteRecords, a cut above the high watermark, or retention.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from random import Random

from batch_list import BatchList
from file_damage import closed_files, damage_rule, flip_bit, scrub
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from moving_disk import FIRST, SECOND
from node_disk import NOW_MS
from produced_batches import produced
from tiered_partition import TieredPartition

from penstock.chaos.simulation.virtual_loop import VirtualLoop
from penstock.protocol.batches import NO_PRODUCER_EPOCH
from penstock.protocol.ids import LeaderEpoch
from penstock.protocol.records import Record, write_batch
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig
from penstock.storage.log.rules.control_records import write_end_transaction_marker
from penstock.storage.log.rules.transaction_verification import UNVERIFIED

DIRECTORIES = st.sampled_from([FIRST, SECOND])
PLAIN, TRANSACTIONAL = (1, 2), (11, 12)


class TieredLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.loop.__enter__()
        self.random = Random(1)
        self.partition = TieredPartition(self.loop, self.random)
        self.model = BatchList()
        self.log_start_offset = 0
        self.is_begun = False
        self.value = 0

    def teardown(self) -> None:
        try:
            if self.is_begun:
                self.stop_and_start()
        finally:
            self.partition.it.end()
            self.partition.end_tasks()
            self.loop.__exit__(None, None, None)

    @property
    def log(self) -> Log:
        return self.partition.log

    @property
    def has_retention(self) -> bool:
        return self.partition.disk.config.retention_bytes >= 0

    @initialize(
        segment_bytes=st.sampled_from([400, 900, 3000]),
        interval=st.sampled_from([0, 100, 4096]),
        retention_bytes=st.sampled_from([-1, -1, 4000]),
        local_bytes=st.sampled_from([1, 1, 1500]),
    )
    def start(self, segment_bytes: int, interval: int, retention_bytes: int, local_bytes: int) -> None:
        self.partition.disk.config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            retention_ms=-1,
            retention_bytes=retention_bytes,
            remote_storage_enable=True,
            local_retention_bytes=local_bytes,
            file_delete_delay_ms=0,
        )
        self.begin()
        self.is_begun = True
        for producer in (None, *PLAIN, *TRANSACTIONAL):
            self.append(3, 60, producer, True, 0, 0)
        for producer in TRANSACTIONAL:
            self.end_transaction(producer, producer == TRANSACTIONAL[0])
        self.advance()

    # The process

    def begin(self) -> None:
        partition = self.partition
        partition.start()
        log, state = partition.log, partition.hosted.state
        partition.start_tiering()
        if log.damage is not None:
            self.repair(log.damage.offset)
        state.high_watermark = min(state.high_watermark, log.log_end_offset)
        self.lead_anew()
        # A start may know an older log start; where the tier's records below are gone, it learns that now.
        partition.go_on_tiering(1)
        if not self.has_retention:
            assert log.log_start_offset <= self.log_start_offset
        self.log_start_offset = log.log_start_offset
        self.look_at_all()

    @rule()
    def stop_and_start(self) -> None:
        self.partition.end_tasks()
        self.partition.it.stop()
        self.begin()

    @rule(
        step=st.integers(0, 120),
        is_power_lost=st.booleans(),
        action=st.sampled_from(["tier", "move", "retention", "delete"]),
    )
    def end(self, step: int, is_power_lost: bool, action: str) -> None:
        """The process ends in the middle of something."""
        it, log = self.partition.it, self.log
        log.flush()
        self.partition.files.end_process(skip=step)
        with suppress(OSError):
            match action:
                case "tier":
                    self.partition.go_on_tiering(5.0)
                case "move":
                    it.wait(3)
                case "retention":
                    self.partition.apply_local_retention()
                case "delete":
                    self.delete_records(0.5)
        # It may be offline, or have moved.
        logs = (log, *(copy for _, copy in it.replaced))
        self.log_start_offset = max(one.log_start_offset for one in logs)
        self.partition.end_tasks()
        it.kill(self.random if is_power_lost else None)
        self.begin()

    # Writing

    @rule(
        count=st.integers(1, 4),
        size=st.sampled_from([1, 60, 60, 250]),
        producer=st.sampled_from([None, None, *PLAIN, *TRANSACTIONAL]),
        has_headers=st.booleans(),
        compression=st.sampled_from([0, 0, 4]),
        age_ms=st.integers(-3000, 3000),
    )
    def append(
        self, count: int, size: int, producer: int | None, has_headers: bool, compression: int, age_ms: int
    ) -> None:
        for _ in range(4):
            self.write(count, size, producer, has_headers, compression, age_ms)

    def write(
        self, count: int, size: int, producer: int | None, has_headers: bool, compression: int, age_ms: int
    ) -> None:
        self.value += 1
        now_ms = self.partition.disk.now_ms
        headers = (("trace", b"%d" % self.value),) if has_headers else ()
        records = [
            Record(number, now_ms - age_ms + 7 * (number % 2), b"k", b"%d" % self.value + bytes(size), headers)
            for number in range(count)
        ]
        data = write_batch(
            records,
            compression=compression,
            producer_id=-1 if producer is None else producer,
            producer_epoch=-1 if producer is None else 0,
            base_sequence=-1 if producer is None else self.model.sequences().get(producer, 0),
            is_transactional=producer in TRANSACTIONAL,
        )
        if len(data) > self.partition.disk.config.segment_bytes:
            return
        log, epoch = self.log, self.partition.hosted.state.leader_epoch
        verification = UNVERIFIED if producer in TRANSACTIONAL else None
        info = log.append_as_leader(produced(data), leader_epoch=epoch, now_ms=now_ms, verification=verification)
        assert (info.first_offset, info.is_duplicate) == (self.model.end_offset, False)
        self.model.add(data, epoch, self.partition.high_watermark)

    @rule(producer=st.sampled_from(TRANSACTIONAL), is_commit=st.booleans())
    def end_transaction(self, producer: int, is_commit: bool) -> None:
        if producer not in self.model.transactions()[1]:
            return
        now_ms, epoch = self.partition.disk.now_ms, self.partition.hosted.state.leader_epoch
        marker = write_end_transaction_marker(producer, 0, is_commit=is_commit, coordinator_epoch=1, now_ms=now_ms)
        self.log.append_of_coordinator(marker, leader_epoch=epoch, now_ms=now_ms)
        self.model.add(marker, epoch, self.partition.high_watermark)

    @rule()
    def advance(self) -> None:
        """What goes on all the time where nothing fails."""
        self.commit()
        self.go_on_tiering(5.0)
        self.partition.apply_local_retention()

    @rule()
    def commit(self) -> None:
        self.partition.hosted.state.high_watermark = self.log.log_end_offset

    @rule()
    def lead_anew(self) -> None:
        state = self.partition.hosted.state
        state.is_leader = True
        state.leader_epoch += 1
        self.log.assign_leader_epoch(LeaderEpoch(state.leader_epoch))

    @rule(share=st.floats(0, 1))
    def follow_and_cut(self, share: float) -> None:
        """Another replica led meanwhile, without what was not committed."""
        partition, log = self.partition, self.log
        partition.hosted.state.is_leader = False
        offset = partition.high_watermark + int(share * (log.log_end_offset - partition.high_watermark))
        partition.disk.manager.truncate({log: offset})
        self.model.cut(offset)
        assert log.log_end_offset == self.model.end_offset
        self.go_on_tiering(0.0)
        self.lead_anew()

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        log, high_watermark = self.log, self.partition.high_watermark
        log.increment_log_start_offset(
            log.log_start_offset + int(share * (high_watermark - min(log.log_start_offset, high_watermark)))
        )
        self.log_start_offset = log.log_start_offset
        self.partition.checkpoint_log_start()

    # Time

    @rule(seconds=st.sampled_from([0.0, 0.0, 0.01, 5.0]))
    def go_on_tiering(self, seconds: float) -> None:
        self.partition.go_on_tiering(seconds)
        self.note_log_start()

    @rule()
    def apply_local_retention(self) -> None:
        self.partition.apply_local_retention()

    def note_log_start(self) -> None:
        """Retention of the tier may have moved it, to where a batch begins."""
        start = self.log.log_start_offset
        if self.has_retention:
            assert self.log_start_offset <= start <= max(self.partition.high_watermark, self.log_start_offset)
            self.log_start_offset = start
        assert start == self.log_start_offset

    @rule(path=DIRECTORIES, rate=st.sampled_from([1000.0, float("inf")]))
    def move(self, path: str, rate: float) -> None:
        self.partition.it.rate = rate
        self.partition.it.begin(path)

    @rule(seconds=st.sampled_from([0.0, 0.05, 0.3, 30.0]))
    def wait(self, seconds: float) -> None:
        self.partition.it.wait(seconds)
        self.note_log_start()

    # Faults

    @rule(calls=st.sampled_from(["", "put", "get", "delete", "any"]), share=st.sampled_from([0.3, 1.0]))
    def change_outage(self, calls: str, share: float) -> None:
        random = Random(self.random.random())

        def fails(call: str, _key: str) -> bool:
            return calls in (call, "any") and random.random() < share

        self.partition.tier.fails = fails

    @rule(failure=st.sampled_from([None, None, "before", "after"]))
    def change_metadata_outage(self, failure: str | None) -> None:
        self.partition.metadata.failure = failure

    @damage_rule
    def damage(self, is_stopped: bool, number: int, suffix: str, share: float, bit: int) -> None:
        """A file of a closed segment, while the process is down or while it runs; scrubbing finds it."""
        partition, log = self.partition, self.log
        partition.end_tasks()
        log.flush()
        paths = closed_files(log, partition.files, suffix)
        if is_stopped:
            partition.it.stop()
        else:
            partition.it.end()
        if paths:
            flip_bit(partition.files, paths[number % len(paths)], share, bit)
        if not is_stopped:
            partition.it.kill()
        partition.start()
        self.repair_scrubbed()
        partition.it.stop()
        self.begin()

    def repair_scrubbed(self) -> None:
        """Before anything is copied."""
        log = self.log
        # Recovery takes a batch that is not intact for one that was being written, above the last checkpoint.
        self.repair(log.log_end_offset if log.damage is None else log.damage.offset)
        found = scrub(self.partition.disk, self.loop)
        if found is not None:
            self.repair(found)

    @rule(number=st.integers(0, 1000), share=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
    def damage_producer_snapshot(self, number: int, share: float, bit: int) -> None:
        """Scrubbing comes to it before the process ends: nothing else tells what is in the first one."""
        partition = self.partition
        partition.end_tasks()
        paths = closed_files(self.log, partition.files, ".snapshot")
        if paths:
            flip_bit(partition.files, paths[number % len(paths)], share, bit)
        assert scrub(partition.disk, self.loop) is None
        partition.it.end()
        partition.it.kill()
        self.begin()

    @rule()
    def damage_leader_epochs(self) -> None:
        """What only the tier has is in no batch of this disk."""
        self.partition.end_tasks()
        folder = self.log.directory
        self.partition.it.stop()
        self.partition.files.write_atomically(f"{folder}/leader-epoch-checkpoint", b"0\n1\ngarbage\n")
        self.begin()

    def repair(self, offset: int) -> None:
        """As a follower does it that asks its leader."""
        log, disk = self.log, self.partition.disk
        disk.manager.truncate({log: offset})
        assert log.damage is None
        missing = self.model.since(log.log_end_offset)
        if missing:
            first = missing[0].base_offset
            if first < log.log_end_offset:
                # It has begun anew at its log start, which lies within that batch.
                disk.manager.restart(log, first, log.producers.below(first), disk.now_ms)
            assert first == log.log_end_offset
            log.append_as_follower(b"".join(one.data for one in missing), now_ms=disk.now_ms)
        log.flush()

    # What is held

    @invariant()
    def ends_are_right(self) -> None:
        if self.is_begun:
            log = self.log
            assert log.log_end_offset == self.model.end_offset
            assert log.log_start_offset <= log.local_log_start_offset <= log.log_end_offset
            assert log.tiered_end_offset <= self.partition.high_watermark

    @rule(share=st.floats(0, 1), max_bytes=st.sampled_from([1, 300, 2000, 100_000]))
    def read(self, share: float, max_bytes: int) -> None:
        start = self.log_start_offset
        self.look_at_batches(start + int(share * (self.model.end_offset - start)), max_bytes)

    @rule()
    def look_at_all(self) -> None:
        log, start = self.log, self.log_start_offset
        self.look_at_batches(start, 100_000)
        for one in self.model.since(start):
            offset = max(one.base_offset, start)
            assert log.leader_epochs.epoch_of(offset) == one.header.partition_leader_epoch, offset
        for producer_id, sequence in self.model.sequences(start).items():
            entry = log.producers.entries[producer_id]
            if producer_id not in self.model.hasty or entry.epoch != NO_PRODUCER_EPOCH:
                assert (entry.epoch, entry.next_sequence) == (0, sequence), producer_id
        is_open = self.model.transactions()[1]
        first = min(is_open.values(), default=log.log_end_offset)
        assert log.producers.last_stable_offset(log.log_end_offset) == first

    @rule(timestamp_ms=st.integers(NOW_MS - 3000, NOW_MS + 60_000))
    def look_up_by_time(self, timestamp_ms: int) -> None:
        found = self.partition.without_outage(lambda: self.partition.find_by_time(timestamp_ms))
        assert found == self.model.find(timestamp_ms, self.log_start_offset)

    def look_at_batches(self, offset: int, max_bytes: int) -> None:
        chunks = self.partition.without_outage(lambda: list(self.partition.chunks_from(offset, max_bytes)))
        assert [batch for chunk in chunks for batch in chunk.batches] == [one.data for one in self.model.since(offset)]
        for chunk in chunks:
            if chunk.aborted is not None:
                self.check_aborted(chunk.aborted, chunk.start_offset, chunk.end_offset)

    def check_aborted(self, told: Sequence[tuple[int, int]], start: int, end: int) -> None:
        ended, _ = self.model.transactions()
        aborted = [one for one in ended if one.is_aborted and one.last_offset >= start]
        needed = {(one.producer_id, one.first_offset) for one in aborted if one.first_offset < end}
        assert not needed - set(told), "aborted transactions that a consumer is not told"
        assert not set(told) - {(one.producer_id, one.first_offset) for one in aborted}, (
            "transactions that were not aborted"
        )
