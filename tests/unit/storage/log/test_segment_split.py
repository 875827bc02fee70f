"""Segments whose offsets do not fit into their indexes are split when their log is opened (KAFKA-6264)."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from penstock.protocol.batches import iterate_headers
from penstock.protocol.records import Record, write_batch
from penstock.storage.disk.files import DiskFiles, Files
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig
from penstock.storage.log.rules.control_records import write_end_transaction_marker

NOW = 1_700_000_000_000
LIMIT = 2**31
# Of the batches of a segment that begins at 0: two before the limit, two behind it, two behind it once more.
OFFSETS = (0, LIMIT - 10, LIMIT - 1, LIMIT + 5, 2 * LIMIT + 3, 2 * LIMIT + 5)


def batch(offset: int, *, producer: int = -1, epoch: int = 0, step: int = 0) -> bytes:
    return write_batch(
        [Record(offset, NOW + step, b"k", b"v" * 50)],
        leader_epoch=epoch,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=step if producer >= 0 else -1,
        is_transactional=producer >= 0,
    )


def make_folder(files: Files, path: str, segments: dict[int, bytes]) -> None:
    files.make_directories(path)
    for base_offset, data in segments.items():
        files.write(f"{path}/{base_offset:020d}.log", data)
        files.open(f"{path}/{base_offset:020d}.log").sync()
    files.sync_directory(path)


def open_log(files: Files, path: str, *, is_clean: bool = True, recovery_point: int = 0) -> Log:
    return Log.open(
        files,
        path,
        topic="events",
        partition=0,
        topic_id=None,
        config=LogConfig(index_interval_bytes=1),
        is_clean=is_clean,
        recovery_point=recovery_point,
        now_ms=NOW,
    )


def offsets(log: Log) -> list[int]:
    found: list[int] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, max_bytes=10**6, end_offset=log.log_end_offset, min_one_batch=True)
        for piece in data.slices:
            found += [header.base_offset for _, header in iterate_headers(piece.read(0, piece.size))]
        offset = found[-1] + 1
    return found


def bases(files: Files, path: str) -> list[int]:
    return [int(name[:20]) for name in files.list_directory(path) if name.endswith(".log")]


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("is_last", [True, False])
def test_a_segment_whose_offsets_overflow_is_split(tmp_path: Path, *, is_clean: bool, is_last: bool) -> None:
    files, path = DiskFiles(), f"{tmp_path}/events-0"
    segments = {0: b"".join(batch(offset, epoch=number, step=number) for number, offset in enumerate(OFFSETS))}
    end = OFFSETS[-1] + 1
    if not is_last:
        segments[end] = batch(end, epoch=9)
    make_folder(files, path, segments)
    log = open_log(files, path, is_clean=is_clean, recovery_point=end)
    expected = [*OFFSETS] if is_last else [*OFFSETS, end]
    assert offsets(log) == expected
    assert log.log_end_offset == expected[-1] + 1
    assert [log.leader_epochs.entries[slot] for slot in (0, 3, 5)] == [(0, 0), (3, LIMIT + 5), (5, 2 * LIMIT + 5)]
    assert bases(files, path) == [0, LIMIT, LIMIT + 6, end][: 3 if is_last else 4]
    for offset in expected:
        assert log.read(offset, max_bytes=1, end_offset=log.log_end_offset, min_one_batch=True).slices
    log.close()
    before = {name: files.read(f"{path}/{name}") for name in files.list_directory(path)}
    again = open_log(files, path, recovery_point=end)
    assert offsets(again) == expected
    again.close()
    assert {name: files.read(f"{path}/{name}") for name in files.list_directory(path)} == before


def test_aborted_transactions_and_producers_are_known_after_the_split(tmp_path: Path) -> None:
    files, path = DiskFiles(), f"{tmp_path}/events-0"
    marker = bytearray(write_end_transaction_marker(7, 0, is_commit=False, coordinator_epoch=0, now_ms=NOW))
    marker[:8] = (LIMIT + 1).to_bytes(8, "big")
    marker[12:16] = bytes(4)
    make_folder(files, path, {0: batch(0) + batch(LIMIT - 1, producer=7) + batch(LIMIT) + bytes(marker)})
    log = open_log(files, path, recovery_point=LIMIT + 2)
    aborted = log.aborted_transactions(0, LIMIT + 2)
    assert [(one.producer_id, one.first_offset, one.last_offset) for one in aborted] == [(7, LIMIT - 1, LIMIT + 1)]
    assert [one.producer_id for one in log.producers.active(NOW)] == [7]


def test_a_torn_batch_behind_the_split_is_cut_and_nothing_before_it(tmp_path: Path) -> None:
    files, path = DiskFiles(), f"{tmp_path}/events-0"
    make_folder(files, path, {0: batch(0) + batch(LIMIT - 1) + batch(LIMIT) + batch(LIMIT + 1)[:-9]})
    log = open_log(files, path, is_clean=False)
    assert offsets(log) == [0, LIMIT - 1, LIMIT]
    assert log.damage is None


def test_damage_below_the_recovery_point_keeps_the_segment_as_it_is(tmp_path: Path) -> None:
    files, path = DiskFiles(), f"{tmp_path}/events-0"
    data = bytearray(batch(0) + batch(LIMIT - 1) + batch(LIMIT) + batch(LIMIT + 1) + batch(LIMIT + 2))
    data[-150] ^= 1
    make_folder(files, path, {0: bytes(data)})
    log = open_log(files, path, recovery_point=LIMIT + 3)
    assert log.damage is not None
    assert log.damage.offset == LIMIT
    assert (bases(files, path), files.read(f"{path}/{0:020d}.log")) == ([0], bytes(data))


@pytest.mark.parametrize("is_clean", [True, False])
def test_an_offset_that_only_a_flipped_bit_explains_is_damage(tmp_path: Path, *, is_clean: bool) -> None:
    files, path = DiskFiles(), f"{tmp_path}/events-0"
    make_folder(files, path, {0: batch(0) + batch(1) + batch(2 + (1 << 40))})
    log = open_log(files, path, is_clean=is_clean, recovery_point=3)
    assert log.damage is not None
    assert log.damage.offset == 2
    assert bases(files, path) == [0]


@pytest.mark.parametrize("is_power_lost", [False, True], ids=["killed", "without power"])
def test_an_end_at_any_step_of_a_split_loses_nothing(*, is_power_lost: bool) -> None:
    data = b"".join(batch(offset, step=number) for number, offset in enumerate(OFFSETS))
    step = 0
    while True:
        files, path = MemoryFiles(), "/data/events-0"
        make_folder(files, path, {0: data, OFFSETS[-1] + 1: batch(OFFSETS[-1] + 1)})
        files.sync_directory("/data")
        files.end_process(skip=step)
        is_done = True
        try:
            open_log(files, path, recovery_point=OFFSETS[-1] + 2)
        except OSError:
            is_done = False
        files.heal()
        if is_power_lost:
            files.crash(Random(step))
        else:
            files.kill()
        log = open_log(files, path, is_clean=False, recovery_point=OFFSETS[-1] + 2)
        assert log.damage is None, step
        assert offsets(log) == [*OFFSETS, OFFSETS[-1] + 1], step
        assert bases(files, path) == [0, LIMIT, LIMIT + 6, OFFSETS[-1] + 1], step
        left = [name for name in files.list_directory(path) if name.endswith(("cleaned", "swap", "deleted"))]
        assert not left, step
        if is_done:
            break
        step += 1
    assert step > 40
