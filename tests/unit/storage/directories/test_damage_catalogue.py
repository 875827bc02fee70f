"""Each kind of file, damaged in each way, at rest and while the log is open: what is found, what is made anew, and that
nothing is read but what was written. The table is in docs/guarantees.md."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest
from node_disk import NOW_MS, NodeDisk, node_disk
from produced_batches import produced

from penstock.protocol.batches import HEADER_SIZE, iterate_headers
from penstock.protocol.errors import CorruptData, KafkaError
from penstock.protocol.records import Record, write_batch
from penstock.storage.directories.log_scrubber import LogScrubber, LogScrubberConfig
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.aborted_transaction import AbortedTransaction
from penstock.storage.log.rules.config import LogConfig
from penstock.storage.log.rules.control_records import write_end_transaction_marker
from penstock.storage.scrubbing.rules.scrub_job import DamagedPart
from penstock.storage.scrubbing.scrubber import ExecutorScrubber

CONFIG = LogConfig(segment_bytes=1200, index_interval_bytes=150)
FOLDER = "/data/events-0"


@dataclass
class World:
    disk: NodeDisk
    told: list[int] = field(default_factory=list)
    """Offsets at which damage was reported."""
    repaired: list[Log] = field(default_factory=list)
    scrubber: LogScrubber = field(init=False)

    def __post_init__(self) -> None:
        self.disk.config = CONFIG
        self.disk.start()
        self.open_scrubber()

    def open_scrubber(self) -> None:
        self.scrubber = LogScrubber(
            self.disk.manager,
            self.disk.loop,
            ExecutorScrubber(self.disk.files, self.disk.loop),
            config=LogScrubberConfig(),
            on_damage=self._confirm,
            on_repaired=self.repaired.append,
        )

    def _confirm(self, log: Log, offset: int) -> None:
        # As a partition does.
        with pytest.raises((CorruptData, OSError)):
            log.check(offset, 1)
        self.told.append(offset)

    def scrub(self) -> None:
        self.disk.loop.run(self.scrubber.scrub_all())

    @property
    def log(self) -> Log:
        found = self.disk.manager.get("events", 0)
        assert found is not None
        return found

    @property
    def bases(self) -> list[int]:
        return [int(name[:20]) for name in self.disk.names(FOLDER) if name.endswith(".log")]

    def restart(self, *, is_clean: bool) -> None:
        if not is_clean:
            self.disk.files.remove("/data/.kafka_cleanshutdown")
        self.disk.start()
        self.open_scrubber()


def write(log: Log) -> None:
    """Two leader epochs, a producer whose transactions are aborted and committed, in several segments."""
    sequence = 0
    for number in range(48):
        epoch = 3 if number < 20 else 5
        if number % 6 == 5:
            marker = write_end_transaction_marker(
                7, 0, is_commit=number % 12 == 11, coordinator_epoch=0, now_ms=NOW_MS + number
            )
            log.append_of_coordinator(marker, leader_epoch=epoch, now_ms=NOW_MS)
            continue
        is_transactional = number % 6 in (2, 3, 4)
        batch = write_batch(
            [Record(0, NOW_MS + number, b"k", b"value %d" % number + b"." * 20)],
            producer_id=7 if is_transactional else -1,
            producer_epoch=0 if is_transactional else -1,
            base_sequence=sequence if is_transactional else -1,
            is_transactional=is_transactional,
        )
        verification = None
        if is_transactional:
            verification = log.producers.begin_verification(7, 0, sequence, has_epoch_bumps=False, now_ms=NOW_MS)
            sequence += 1
        log.append_as_leader(produced(batch), leader_epoch=epoch, now_ms=NOW_MS, verification=verification)


def append_plain(log: Log) -> None:
    batch = write_batch([Record(0, NOW_MS + 100, b"k", b"." * 30)])
    log.append_as_leader(produced(batch), leader_epoch=5, now_ms=NOW_MS)


@contextmanager
def world() -> Iterator[World]:
    with node_disk() as disk:
        yield World(disk)


def readable(log: Log, offset: int) -> bytes | None:
    """The batch at `offset`; None when it is refused."""
    try:
        data = log.read(offset, max_bytes=1, end_offset=log.log_end_offset, min_one_batch=True)
        return b"".join(piece.read(0, piece.size) for piece in data.slices)
    except (CorruptData, OSError, KafkaError):
        return None


Damage = Callable[[MemoryFiles, str], None]


def _missing(files: MemoryFiles, path: str) -> None:
    files.remove(path)


def _torn(files: MemoryFiles, path: str) -> None:
    data = files.read(path)
    files.write(path, data[: len(data) * 2 // 3 | 1])


def _empty(files: MemoryFiles, path: str) -> None:
    files.write(path, b"")


def _zeros(files: MemoryFiles, path: str) -> None:
    data = files.read(path)
    files.write(path, data[: len(data) // 2] + bytes(len(data) - len(data) // 2))


def _flipped(where: float) -> Damage:
    def damage(files: MemoryFiles, path: str) -> None:
        data = files.read(path)
        files.flip_bit(path, min(int(len(data) * where), len(data) - 1), 2)

    return damage


WAYS: dict[str, Damage] = {
    "missing": _missing,
    "torn": _torn,
    "empty": _empty,
    "half of it zeros": _zeros,
    "bit flipped at the start": _flipped(0.0),
    "bit flipped in the middle": _flipped(0.5),
    "bit flipped at the end": _flipped(1.0),
}
KINDS = ("log", "index", "timeindex", "txnindex", "snapshot", "leader-epoch-checkpoint", "partition.metadata")
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


def path_of(world: World, kind: str, slot: int) -> str:
    if kind in ("leader-epoch-checkpoint", "partition.metadata"):
        return f"{FOLDER}/{kind}"
    return f"{FOLDER}/{world.bases[slot]:020d}.{kind}"


@dataclass(frozen=True)
class Truth:
    batches: dict[int, bytes]
    aborted: list[AbortedTransaction]
    epochs: tuple[tuple[int, int], ...]
    end: int

    @staticmethod
    def of(log: Log) -> Truth:
        batches = {}
        for offset in range(log.log_end_offset):
            data = readable(log, offset)
            assert data
            batches[offset] = data
        end = log.log_end_offset
        return Truth(batches, log.aborted_transactions(0, end), log.leader_epochs.entries, end)


def judge(it: World, truth: Truth) -> None:
    """Every batch is what was written, or refused, or lies where damage was reported; the rest is whole again."""
    log = it.disk.manager.get("events", 0)
    if log is None:
        # It could not be opened, or names no topic: then it is kept, and served by no one.
        assert ("events", 0) in it.disk.manager.offline or any(name.endswith("-stray") for name in it.disk.names())
        return
    if log.damage is not None:
        it.told.append(log.damage.offset)
    first_told = min(it.told, default=truth.end)
    for offset in range(first_told):
        assert readable(log, offset) == truth.batches[offset], offset
    if it.told:
        return
    assert log.log_end_offset >= truth.end
    wanted = {(one.producer_id, one.first_offset, one.last_offset) for one in truth.aborted}
    found = {(one.producer_id, one.first_offset, one.last_offset) for one in log.aborted_transactions(0, truth.end)}
    assert found == wanted
    assert log.leader_epochs.entries == truth.epochs
    timestamps = [NOW_MS + number for number in range(0, 48, 5)]
    for number, timestamp in zip(range(0, 48, 5), timestamps, strict=True):
        place = log.offset_for_timestamp(timestamp, truth.end)
        assert place is not None
        assert place.offset == number


def is_told(caplog: pytest.LogCaptureFixture) -> bool:
    words = ("damage", "Rebuil", "Ignoring checkpoint", "Failed to open log", "corrupt", "no topic id")
    return any(word in record.getMessage() for word in words for record in caplog.records)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_damage_while_a_log_is_open_is_found_and_never_read_as_something_else(
    kind: str, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    with world() as it:
        log = it.disk.log("events")
        write(log)
        log.flush()
        truth = Truth.of(log)
        path = path_of(it, kind, 2)
        before = it.disk.files.read(path)
        # What is cached of a closed segment is forgotten.
        for segment in log.inactive_segments:
            segment.close()
        WAYS[way](it.disk.files, path)
        it.scrub()
        judge(it, truth)
        if kind in ("leader-epoch-checkpoint", "partition.metadata"):
            # Read at the start only, and written anew from what is known.
            assert not it.scrubber.figures.findings
            return
        if kind == "log":
            assert it.told
        elif kind == "snapshot" and way == "missing":
            return
        else:
            assert it.disk.files.look(path) == bytearray(before) or kind == "snapshot"
            assert it.repaired == [log]
        assert sum(it.scrubber.figures.findings.values()) >= 1
        assert is_told(caplog)
        # Once is enough.
        it.told.clear()
        count = sum(it.scrubber.figures.findings.values())
        if kind != "log":
            it.scrub()
            assert sum(it.scrubber.figures.findings.values()) == count


@pytest.mark.thorough
@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize("slot", [0, 2, -1], ids=["first", "closed", "active"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_damage_while_the_node_is_down_is_found_and_never_read_as_something_else(
    kind: str, way: str, slot: int, caplog: pytest.LogCaptureFixture, *, is_clean: bool
) -> None:
    with world() as it:
        log = it.disk.log("events")
        write(log)
        truth = Truth.of(log)
        path = path_of(it, kind, slot)
        it.disk.stop()
        if not it.disk.files.exists(path):
            # The first segment has no snapshot.
            return
        WAYS[way](it.disk.files, path)
        it.restart(is_clean=is_clean)
        log_now = it.disk.manager.get("events", 0)
        if log_now is not None and log_now.damage is None:
            # The active segment is scrubbed once it is closed.
            count = len(it.bases)
            while len(it.bases) == count:
                log_now.append_as_leader(
                    produced(write_batch([Record(0, NOW_MS + 50, b"k", b"v")])), leader_epoch=5, now_ms=NOW_MS
                )
        it.scrub()
        if (kind, way, slot) == ("log", "missing", 0):
            # It looks like deleted by retention.
            assert it.log.log_start_offset == it.bases[0] > 0
            assert readable(it.log, 0) is None
            return
        judge(it, truth)
        if kind == "log":
            assert it.told or log_now is None or log_now.damage is not None


@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
def test_damaged_checkpoints_cost_time_only(
    name: str, way: str, caplog: pytest.LogCaptureFixture, *, is_clean: bool
) -> None:
    with world() as it:
        write(it.disk.log("events"))
        truth = Truth.of(it.log)
        it.disk.stop(events=48)
        path = f"/data/{name}"
        if not it.disk.files.exists(path):
            it.disk.files.write(path, b"0\n1\nevents 0 12\n")
        WAYS[way](it.disk.files, path)
        it.restart(is_clean=is_clean)
        it.scrub()
        assert not it.told
        log = it.log
        assert log.damage is None
        for offset in range(log.log_start_offset, truth.end):
            assert readable(log, offset) == truth.batches[offset]
        assert log.log_end_offset == truth.end


def set_epoch(files: MemoryFiles, path: str, number: int, epoch: int) -> int:
    """Of a batch, where no CRC covers it; its offset."""
    data = files.look(path)
    assert data is not None
    position, header = list(iterate_headers(bytes(data)))[number]
    data[position + 12 : position + 16] = epoch.to_bytes(4, "big")
    return header.base_offset


@pytest.mark.parametrize("epoch", [2, 4, 9])
def test_a_leader_epoch_that_no_crc_covers_is_found_by_what_the_partition_knows(epoch: int) -> None:
    with world() as it:
        log = it.disk.log("events")
        write(log)
        slot = next(slot for slot, base in enumerate(it.bases) if base > 20)
        offset = set_epoch(it.disk.files, path_of(it, "log", slot), 1, epoch)
        it.scrub()
        assert it.told == [offset]


def test_leader_epochs_that_are_known_wrongly_are_made_anew_from_the_batches() -> None:
    with world() as it:
        log = it.disk.log("events")
        write(log)
        truth = Truth.of(log)
        it.disk.stop()
        it.disk.files.write(f"{FOLDER}/leader-epoch-checkpoint", b"0\n2\n3 0\n5 28\n")
        it.restart(is_clean=True)
        assert it.log.leader_epochs.entries != truth.epochs
        it.scrub()
        assert it.scrubber.figures.findings == {DamagedPart.LEADER_EPOCHS: 1}
        judge(it, truth)
        it.scrub()
        assert it.scrubber.figures.findings == {DamagedPart.LEADER_EPOCHS: 1}


def test_leader_epochs_of_what_only_the_tier_has_stay_when_the_others_are_made_anew() -> None:
    with world() as it:
        it.disk.config = replace(CONFIG, remote_storage_enable=True, local_retention_bytes=1)
        log = it.disk.log("events")
        write(log)
        known = log.leader_epochs.entries
        assert known == ((3, 0), (5, 20))
        log.flush()
        log.note_tiered(next(base for base in it.bases if base > 20))
        while log.delete_old_segments(log.log_end_offset, NOW_MS):
            pass
        assert log.local_log_start_offset > 20
        log.leader_epochs.assign(9, log.local_log_start_offset + 1)
        it.scrub()
        assert it.scrubber.figures.findings == {DamagedPart.LEADER_EPOCHS: 1}
        assert (log.log_start_offset, log.leader_epochs.entries) == (0, known)
        it.scrub()
        assert it.scrubber.figures.findings == {DamagedPart.LEADER_EPOCHS: 1}


def test_an_index_that_leads_astray_is_made_anew_by_the_read_that_it_misleads(caplog: pytest.LogCaptureFixture) -> None:
    with world() as it:
        log = it.disk.log("events")
        write(log)
        truth = Truth.of(log)
        path = path_of(it, "index", 1)
        for segment in log.inactive_segments:
            segment.close()
        data = it.disk.files.look(path)
        assert data is not None
        # The second entry says what the third should.
        data[12:16] = data[20:24]
        for offset in range(truth.end):
            assert readable(log, offset) == truth.batches[offset]
        assert "Rebuilding damaged index" in caplog.text


def test_a_log_file_that_is_gone_is_found_though_it_is_open_and_its_records_are_read_on() -> None:
    with world() as it:
        log = it.disk.log("events")
        write(log)
        truth = Truth.of(log)
        base = it.bases[2]
        it.disk.files.remove(f"{FOLDER}/{base:020d}.log")
        it.scrub()
        assert it.told == [base]
        assert all(readable(log, offset) == batch for offset, batch in truth.batches.items())


def test_a_segment_that_was_compacted_and_has_not_its_name_yet_is_left_to_the_next_round() -> None:
    with world() as it:
        log = it.disk.log("events")
        write(log)
        segment = log.inactive_segments[2]
        paths = {suffix: segment.path(suffix) for suffix in (".log", ".index", ".timeindex")}
        for path in paths.values():
            it.disk.files.rename(path, f"{path}.swap")
        segment.renamed_to(".swap")
        it.scrub()
        assert (it.scrubber.figures.segment_count, it.told, dict(it.scrubber.figures.findings)) == (2, [], {})
        for path in paths.values():
            it.disk.files.rename(f"{path}.swap", path)
        segment.renamed_to("")
        it.scrub()
        assert (it.scrubber.figures.segment_count, it.told) == (2 + len(it.bases), [])


def test_a_producer_snapshot_that_is_gone_is_made_anew_when_what_is_before_it_is_deleted() -> None:
    with world() as it:
        log = it.disk.log("events")
        write(log)
        known = [one.last_offset for one in log.producers.entries[7].batches]
        snapshot = f"{FOLDER}/{it.bases[1]:020d}.snapshot"
        whole = it.disk.files.read(snapshot)
        it.disk.files.remove(snapshot)
        log.increment_log_start_offset(it.bases[1])
        assert log.delete_old_segments(log.log_end_offset, NOW_MS) == 1
        assert it.disk.files.read(snapshot) == whole
        it.disk.stop()
        it.restart(is_clean=True)
        assert [one.last_offset for one in it.log.producers.entries[7].batches] == known


def test_what_is_whole_is_read_once_and_changed_by_nothing() -> None:
    with world() as it:
        log = it.disk.log("events")
        write(log)
        log.flush()
        before = {name: it.disk.files.read(f"{FOLDER}/{name}") for name in it.disk.names(FOLDER)}
        it.scrub()
        assert not it.scrubber.figures.findings
        assert it.scrubber.figures.segment_count == len(it.bases)
        assert it.scrubber.figures.read_bytes == log.size_bytes
        assert {name: it.disk.files.read(f"{FOLDER}/{name}") for name in it.disk.names(FOLDER)} == before


@pytest.mark.parametrize("is_behind", [False, True])
def test_the_active_segment_is_scrubbed_as_far_as_it_goes(*, is_behind: bool) -> None:
    with world() as it:
        log = it.disk.log("events")
        write(log)
        log.flush()
        files, base = it.disk.files, it.bases[-1]
        size = files.size(f"{FOLDER}/{base:020d}.log")
        files.flip_bit(f"{FOLDER}/{base:020d}.log", size - 1 if is_behind else HEADER_SIZE + 2, 2)
        # The entries of its indexes are in memory yet.
        assert not files.exists(f"{FOLDER}/{base:020d}.index")
        it.scrub()
        assert it.told == [log.log_end_offset - 1 if is_behind else base]
        assert it.scrubber.figures.findings == {DamagedPart.BATCHES: 1}


def test_what_is_appended_while_the_active_segment_is_scrubbed_is_no_damage() -> None:
    with world() as it:
        log = it.disk.log("events")
        write(log)

        async def scrub() -> None:
            scrubbing = asyncio.ensure_future(it.scrubber.scrub(log))
            for _ in range(3):
                await asyncio.sleep(0)
                for _ in range(20):
                    append_plain(log)
            await scrubbing

        base = it.bases[-1]

        it.disk.loop.run(scrub())
        assert it.bases[-1] > base
        assert not it.scrubber.figures.findings
        assert 0 < it.scrubber.figures.read_bytes < log.size_bytes


def test_what_is_compacted_is_whole_too() -> None:
    with world() as it:
        log = it.disk.log("events")
        log.config = replace(CONFIG, cleanup_policy=frozenset({"compact"}))
        write(log)
        it.scrub()
        assert not it.scrubber.figures.findings


def test_a_log_that_is_asked_for_is_scrubbed_though_there_are_no_rounds(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with world() as it:
        log = it.disk.log("events")
        write(log)
        it.disk.files.flip_bit(path_of(it, "log", 1), HEADER_SIZE + 3, 1)
        running = it.disk.loop.create_task(it.scrubber.run())
        it.disk.loop.run(_sleep(3600))
        assert not it.told
        it.scrubber.request(log)
        it.disk.loop.run(_sleep(1))
        assert it.told == [it.bases[1]]
        assert "Scrubbing found damage: partition=events-0 part=batches" in caplog.text
        running.cancel()
        it.disk.loop.run(_sleep(0))


def test_rounds_come_at_their_interval() -> None:
    with world() as it:
        write(it.disk.log("events"))
        it.scrubber._config = LogScrubberConfig(log_scrub_interval_ms=60_000)
        running = it.disk.loop.create_task(it.scrubber.run())
        it.disk.loop.run(_sleep(150))
        assert it.scrubber.figures.round_count == 3
        running.cancel()
        it.disk.loop.run(_sleep(0))


async def _sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)
