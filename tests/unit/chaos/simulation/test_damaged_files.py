"""Files that a disk has changed: when that is made good, and that it is told when it is not."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.chaos.simulation.cluster.damage_watch import DamageWatch
from penstock.chaos.simulation.cluster.damaged_file import DamagedFile
from penstock.storage.disk.memory_files import MemoryFiles

FOLDER = "/data/t-0"


@pytest.fixture
def files() -> MemoryFiles:
    made = MemoryFiles()
    made.make_directories(FOLDER)
    for base in (0, 5, 9):
        for suffix in (".log", ".index", ".snapshot"):
            made.write(f"{FOLDER}/{base:020d}{suffix}", b"written")
    return made


def damaged(files: MemoryFiles, name: str, found: bytes | None) -> DamagedFile:
    file = DamagedFile(path=f"{FOLDER}/{name}", written=files.read(f"{FOLDER}/{name}"), found=found)
    files.damage(file.path, found)
    return file


def test_the_disk_keeps_what_it_made_of_a_file_through_a_loss_of_power(files: MemoryFiles) -> None:
    path = f"{FOLDER}/{5:020d}.log"
    files.sync_directory(FOLDER)
    files.damage(path, b"wr")
    assert bytes(files.look(path) or b"") == b"wr"
    files.crash(Random(1))
    assert files.read(path) == b"wr"


@pytest.mark.parametrize("found", [b"", b"wr", b"other b"])
def test_a_changed_file_is_made_good_once_it_is_another_one_or_no_more(files: MemoryFiles, found: bytes) -> None:
    file = damaged(files, f"{5:020d}.index", found)
    assert not file.is_made_good(files)
    files.write(file.path, b"written")
    assert file.is_made_good(files)
    files.damage(file.path, found)
    assert not file.is_made_good(files)
    files.remove(file.path)
    assert file.is_made_good(files)


def test_a_segment_is_lacking_while_there_are_some_before_and_behind_it(files: MemoryFiles) -> None:
    file = damaged(files, f"{5:020d}.log", None)
    assert file.is_of_batches
    # At a start indexes without a log go.
    files.remove(f"{FOLDER}/{5:020d}.index")
    assert not file.is_made_good(files)
    files.remove(f"{FOLDER}/{9:020d}.log")
    assert file.is_made_good(files), "cut off"


def test_an_index_is_lacking_while_there_is_its_log_and_a_snapshot_never(files: MemoryFiles) -> None:
    file = damaged(files, f"{5:020d}.index", None)
    assert not file.is_made_good(files)
    files.remove(f"{FOLDER}/{5:020d}.log")
    assert file.is_made_good(files)
    assert damaged(files, f"{5:020d}.snapshot", None).is_made_good(files)


@pytest.mark.parametrize(
    ("suffix", "is_healed", "is_paused", "is_told"),
    [(".index", False, False, True), (".index", False, True, False), (".log", False, False, False),
     (".log", True, False, True)],
)  # fmt: skip
def test_what_is_not_made_good_in_time_is_told(
    files: MemoryFiles, suffix: str, *, is_healed: bool, is_paused: bool, is_told: bool
) -> None:
    """Of batches once all is healed: a leader may be away until then."""
    file = damaged(files, f"{5:020d}{suffix}", b"other")
    machine: Any = SimpleNamespace(node_id=1, damaged_file=file, process=object(), serves=True, is_paused=is_paused)
    now_s = 0.0
    watch = DamageWatch([machine], now_s=lambda: now_s)
    watch.is_healed = is_healed
    watch.look()
    now_s = 14.0
    watch.look()
    assert watch.violations == []
    now_s = 16.0
    watch.look()
    watch.look()
    told = [f"Damaged: {file.path} of node 1 is not made good"]
    assert watch.violations == (told if is_told else [])


def test_another_process_has_its_own_time(files: MemoryFiles) -> None:
    file = damaged(files, f"{5:020d}.index", b"other")
    machine: Any = SimpleNamespace(node_id=1, damaged_file=file, process=object(), serves=True, is_paused=False)
    now_s = 0.0
    watch = DamageWatch([machine], now_s=lambda: now_s)
    watch.look()
    machine.process = object()
    now_s = 14.0
    watch.look()
    now_s = 20.0
    watch.look()
    machine.damaged_file = None
    now_s = 40.0
    watch.look()
    assert watch.violations == []
