"""What a sync covers, and what it may vouch for afterwards."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from produced_batches import produced

from penstock.protocol.batches import Buffer
from penstock.protocol.ids import LeaderEpoch
from penstock.protocol.records import Record, write_batch
from penstock.storage.disk.files import DiskFiles, File
from penstock.storage.log.log import Log
from penstock.storage.log.recovery_point import Syncable
from penstock.storage.log.rules.config import LogConfig

NOW = 1_700_000_000_000
SMALL = LogConfig(segment_bytes=300)


def open_log(path: Path, config: LogConfig = SMALL) -> Log:
    return Log.open(
        DiskFiles(),
        f"{path}/events-0",
        topic="events",
        partition=0,
        topic_id=None,
        config=config,
        is_clean=True,
        now_ms=NOW,
    )


def append(log: Log, count: int = 1, *, epoch: int = 0) -> None:
    for _ in range(count):
        batch = write_batch([Record(0, NOW, None, b"v" * 20)])
        log.append_as_leader(produced(batch), leader_epoch=epoch, now_ms=NOW)


def names(to_sync: Sequence[Syncable]) -> list[str]:
    """Names of files and folders."""
    return [str(getattr(item, "path")).rpartition("/")[2] for item in to_sync]  # noqa: B009 - not in the protocol


def log_name(base: int) -> str:
    return f"{base:020d}.log"


def test_first_sync_covers_folder_and_epochs_and_later_ones_the_log_only(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log)
    assert log.unflushed_records == 1
    assert names(log.files_to_sync(1)) == [
        log_name(0),
        "partition.metadata",
        # With its own name those of the folder.
        "leader-epoch-checkpoint",
        tmp_path.name,
    ]
    log.flush()
    assert (log.recovery_point, log.unflushed_records) == (1, 0)
    assert (tmp_path / "events-0" / "leader-epoch-checkpoint").read_bytes() == b"0\n1\n0 0\n"
    append(log)
    assert names(log.files_to_sync(2)) == [log_name(0)]


def test_epoch_without_a_batch_is_not_written(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log)
    log.flush()
    log.assign_leader_epoch(LeaderEpoch(7))
    assert log.files_to_sync(1) == []
    log.close()
    assert (tmp_path / "events-0" / "leader-epoch-checkpoint").read_bytes() == b"0\n1\n0 0\n"


def test_nothing_is_to_be_synced_twice(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log)
    log.flush()
    assert log.files_to_sync(1) == []


def test_recovery_point_moves_only_when_marked(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, 2)
    log.files_to_sync(1)
    assert log.recovery_point == 0
    append(log)
    log.mark_flushed(1)
    assert (log.recovery_point, log.unflushed_records) == (1, 2)


def test_all_segments_from_the_recovery_point_on_are_synced_with_their_indexes(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, 7)
    synced = names(log.files_to_sync(7))
    assert [name for name in synced if name.endswith(".log")] == [log_name(0), log_name(3), log_name(6)]
    assert [name for name in synced if name.endswith("index")] == [
        f"{base:020d}.{suffix}" for base in (0, 3) for suffix in ("index", "timeindex")
    ]
    log.mark_flushed(7)
    append(log)
    assert names(log.files_to_sync(8)) == [log_name(6)]


def test_segment_that_ends_during_a_sync_has_its_indexes_synced_by_the_next(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, 3)
    log.files_to_sync(3)
    append(log)
    log.mark_flushed(3)
    synced = names(log.files_to_sync(4))
    assert f"{0:020d}.index" in synced
    assert log_name(3) in synced


def test_truncation_during_a_sync_takes_back_what_it_vouches_for(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig())
    append(log, 10)
    log.files_to_sync(10)
    log.truncate_to(4)
    append(log, 6)
    log.mark_flushed(10)
    assert log.recovery_point == 0, "what was synced is not what is there"


def test_sync_that_was_not_done_is_asked_for_again(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, 4)
    first = names(log.files_to_sync(4))
    assert names(log.files_to_sync(4)) == first


def test_new_leader_epoch_is_written_before_the_recovery_point_passes_it(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log)
    log.flush()
    append(log, epoch=4)
    log.flush()
    assert (tmp_path / "events-0" / "leader-epoch-checkpoint").read_bytes() == b"0\n2\n0 0\n4 1\n"


class FullDiskError(OSError):
    pass


def refuse(self: File, parts: Sequence[Buffer]) -> None:
    raise FullDiskError


@pytest.mark.parametrize("before", [1, 3], ids=["within a segment", "at a roll"])
def test_failed_append_leaves_the_log_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    log = open_log(tmp_path)
    append(log, before)
    with monkeypatch.context() as patch:
        patch.setattr("penstock.storage.disk.disk_file.DiskFile.append", refuse)
        for _ in range(2):
            with pytest.raises(FullDiskError):
                append(log, epoch=1)
    assert log.log_end_offset == before
    assert log.leader_epochs.latest_epoch == 0
    append(log, 5)
    log.close()
    assert open_log(tmp_path).log_end_offset == before + 5
