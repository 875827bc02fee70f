"""Opening a log after a clean and after any other stop."""

from dataclasses import replace
from errno import EMFILE
from pathlib import Path
from uuid import UUID

import pytest
from produced_batches import produced

from penstock.protocol.batches import iterate_headers
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import TopicId
from penstock.protocol.records import Record, write_batch
from penstock.storage.disk.files import DiskFiles
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig

NOW = 1_700_000_000_000
DENSE = LogConfig(segment_bytes=1000, index_interval_bytes=100)
TOPIC_ID = TopicId(UUID(int=77))


def open_log(
    path: Path,
    *,
    is_clean: bool = False,
    recovery_point: int = 0,
    cleaned_end: int = 0,
    log_start_offset: int = 0,
    topic_id: TopicId | None = None,
    config: LogConfig = DENSE,
) -> Log:
    return Log.open(
        DiskFiles(),
        str(path),
        topic="events",
        partition=0,
        topic_id=topic_id,
        config=config,
        log_start_offset=log_start_offset,
        recovery_point=recovery_point,
        cleaned_end=cleaned_end,
        is_clean=is_clean,
        now_ms=NOW,
    )


def append(log: Log, sequence: int, *, epoch: int = 0) -> None:
    records = [Record(number, NOW + sequence, None, b"v" * 20) for number in range(2)]
    batch = write_batch(records, producer_id=7, producer_epoch=0, base_sequence=sequence)
    log.append_as_leader(produced(batch), leader_epoch=epoch, now_ms=NOW)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A closed log of 60 batches of two records in several segments, with two leader epochs and one producer."""
    path = tmp_path / "events-0"
    log = open_log(path, is_clean=True)
    for number in range(60):
        append(log, number * 2, epoch=number // 40)
    log.flush()
    log.close()
    return path


def bases(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in folder.glob("*.log"))


def log_file(folder: Path, slot: int = -1) -> Path:
    return folder / f"{bases(folder)[slot]:020d}.log"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def offsets(log: Log) -> list[int]:
    found: list[int] = []
    while log.log_start_offset + 2 * len(found) < log.log_end_offset:
        start = log.log_start_offset + 2 * len(found)
        data = log.read(start, max_bytes=10**6, end_offset=log.log_end_offset, min_one_batch=True)
        for piece in data.slices:
            found += [header.base_offset for _, header in iterate_headers(piece.read(0, piece.size))]
    return found


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


def place(folder: Path, offset: int) -> tuple[Path, int]:
    """The file that the batch is in, and where it begins."""
    for path in sorted(folder.glob("*.log")):
        data = path.read_bytes()
        for position, header in iterate_headers(data, 0, len(data)):
            if header.base_offset == offset:
                return path, position
    raise AssertionError(offset)


def set_epoch(folder: Path, offset: int, epoch: int) -> tuple[Path, int]:
    """In the head of a batch, where no CRC covers it; where that batch is."""
    path, position = place(folder, offset)
    data = bytearray(path.read_bytes())
    data[position + 12 : position + 16] = epoch.to_bytes(4, "big")
    path.write_bytes(data)
    return path, position


def test_clean_log_is_taken_as_it_lies(folder: Path) -> None:
    before = contents(folder)
    log = open_log(folder, is_clean=True)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (0, 120, 120)
    assert log.leader_epochs.entries == ((0, 0), (1, 80))
    (producer,) = log.producers.active(NOW)
    assert (producer.last_sequence, producer.epoch) == (119, 0)
    log.close()
    assert contents(folder) == before


def test_recovery_makes_the_same_indexes_and_state_anew(folder: Path) -> None:
    before = contents(folder)
    for name in before:
        if name.endswith(("index", "snapshot")) or name == "leader-epoch-checkpoint":
            (folder / name).unlink()
    log = open_log(folder)
    assert (log.log_end_offset, log.recovery_point) == (120, 0)
    (producer,) = log.producers.active(NOW)
    assert producer.last_sequence == 119
    log.close()
    assert contents(folder) == before


def test_segments_below_the_recovery_point_are_not_walked(folder: Path) -> None:
    point = bases(folder)[2]
    # Were it read, it would be found out.
    flip(log_file(folder, 0), 70)
    log = open_log(folder, recovery_point=point)
    assert log.damage is None
    assert (log.log_end_offset, log.recovery_point) == (120, point)
    (producer,) = log.producers.active(NOW)
    assert producer.last_sequence == 119


@pytest.mark.parametrize("lost", [1, 50, 100, 114])
def test_torn_tail_is_cut(folder: Path, lost: int) -> None:
    path = log_file(folder)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size - lost)
    log = open_log(folder)
    assert log.damage is None
    assert log.log_end_offset == 118
    append(log, 118, epoch=1)
    assert offsets(log) == list(range(0, 120, 2))


def test_zeros_after_the_last_batch_are_cut(folder: Path) -> None:
    path = log_file(folder)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size + 5000)
    assert open_log(folder).log_end_offset == 120
    assert path.stat().st_size == size


def test_everything_after_a_corrupt_batch_above_the_recovery_point_is_cut(folder: Path) -> None:
    at = bases(folder)[2]
    flip(log_file(folder, 2), 70)
    log = open_log(folder, recovery_point=at)
    assert log.damage is None
    assert log.log_end_offset == at
    assert bases(folder) == [*bases(folder)[:2], at]
    assert max(int(path.stem) for path in folder.glob("*.snapshot")) <= at
    (producer,) = log.producers.active(NOW)
    assert producer.last_sequence == at - 1
    append(log, at, epoch=2)
    assert offsets(log)[-1] == at


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("is_last", [True, False])
def test_empty_segment_that_was_made_and_not_used_hides_nothing(folder: Path, is_last: bool, is_clean: bool) -> None:
    segment = log_file(folder, -1 if is_last else -3)
    (*_, (_, before), (_, last)) = iterate_headers(segment.read_bytes())
    (folder / f"{before.base_offset:020}.log").touch()
    (folder / f"{last.base_offset:020}.log").touch()
    log = open_log(folder, recovery_point=120, is_clean=is_clean)
    assert log.damage is None
    assert offsets(log) == list(range(0, 120, 2))


@pytest.mark.parametrize("garbage", [b"torn", bytes(100), b"\xff" * 100], ids=["torn", "zeros", "ones"])
def test_empty_segment_that_was_made_and_not_used_hides_nothing_behind_a_torn_end(folder: Path, garbage: bytes) -> None:
    segment = log_file(folder, -1)
    (*_, (_, last)) = iterate_headers(segment.read_bytes())
    (folder / f"{last.base_offset:020}.log").touch()
    with segment.open("ab") as file:
        file.write(garbage)
    log = open_log(folder, recovery_point=120)
    assert log.damage is None
    append(log, 120, epoch=2)
    assert offsets(log) == list(range(0, 122, 2))


def test_file_that_could_be_neither_used_nor_removed_is_gone_before_the_segment_that_hides_it() -> None:
    """The log would begin, and end, with it at the next start."""
    files = MemoryFiles()
    files.make_directories("/d")
    config = LogConfig(segment_bytes=300, retention_bytes=0)

    def start() -> Log:
        return Log.open(
            files, "/d/t-0", topic="t", partition=0, topic_id=TOPIC_ID, config=config, is_clean=False, now_ms=NOW
        )

    def add(size: int = 50) -> None:
        log.append_as_leader(produced(write_batch([Record(0, NOW, b"k", bytes(size))])), leader_epoch=0, now_ms=NOW)

    log = start()
    add()
    files.fail("open", under=f"/d/t-0/{1:020d}.log", error=EMFILE)
    files.fail("remove", under=f"/d/t-0/{1:020d}.log")
    with pytest.raises(OSError, match="EMFILE"):
        add(200)
    files.heal()
    for _ in range(5):
        add()
    files.fail("remove", under=f"/d/t-0/{1:020d}.log")
    with pytest.raises(OSError, match="EIO"):
        log.delete_old_segments(6, NOW)
    files.heal()
    assert log.delete_old_segments(6, NOW) > 0
    start_offset = log.log_start_offset
    files.kill()
    log = start()
    assert (log.log_start_offset, log.log_end_offset, log.damage) == (start_offset, 6, None)


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_batches_lost_at_the_end_of_an_unsynced_segment_end_the_log_there(folder: Path, policy: str) -> None:
    """Unsynced files reach the disk in any order: the newer segment is there, and the older one is short."""
    config = replace(DENSE, cleanup_policy=frozenset({policy}))
    base, following = bases(folder)[-3:-1]
    short = log_file(folder, -3)
    data = short.read_bytes()
    *_, (position, last) = iterate_headers(data)
    short.write_bytes(data[:position])
    log = open_log(folder, recovery_point=base, config=config)
    assert log.damage is None
    assert log.log_end_offset == last.base_offset < following


@pytest.mark.parametrize("is_synced", [True, False], ids=["synced", "not synced"])
def test_gaps_that_compaction_left_are_none(folder: Path, is_synced: bool) -> None:
    short = log_file(folder, -3)
    data = short.read_bytes()
    *_, (position, _) = iterate_headers(data)
    short.write_bytes(data[:position])
    base, following = bases(folder)[-3:-1]
    config = replace(DENSE, cleanup_policy=frozenset({"compact"}))
    log = open_log(folder, recovery_point=following if is_synced else base, cleaned_end=following, config=config)
    assert log.damage is None
    assert log.log_end_offset == 120


def test_corrupt_batch_below_the_recovery_point_is_damage_and_nothing_is_cut(folder: Path) -> None:
    at = bases(folder)[2]
    flip(log_file(folder, 2), 70 + 115)
    logs = {name: data for name, data in contents(folder).items() if name.endswith(".log")}
    log = open_log(folder, recovery_point=at + 4)
    assert log.damage is not None
    assert log.damage.offset == log.log_end_offset == at + 2
    assert offsets(log)[-1] == at
    with pytest.raises(KafkaError) as caught:
        append(log, at + 2)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert str(at + 2) in str(caught.value)
    log.close()
    assert {name: data for name, data in contents(folder).items() if name in logs} == logs
    assert open_log(folder, recovery_point=at + 4).damage == log.damage


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("lost", ["*.snapshot", "leader-epoch-checkpoint"])
def test_damage_in_a_synced_segment_that_is_read_for_a_lost_file_is_told(
    folder: Path, lost: str, is_clean: bool
) -> None:
    for path in folder.glob(lost):
        path.unlink()
    at = bases(folder)[1]
    path, position = place(folder, at + 2)
    # Its length, so that no header follows.
    flip(path, position + 9)
    log = open_log(folder, recovery_point=bases(folder)[3] + 2, is_clean=is_clean)
    assert log.damage is not None
    assert log.damage.offset == log.log_end_offset == at + 2
    assert offsets(log)[-1] == at
    assert log.leader_epochs.entries == ((0, 0),)
    log.truncate_to(log.damage.offset)
    append(log, at + 2)
    assert log.log_end_offset == at + 4


def test_batch_lost_below_the_recovery_point_is_damage(folder: Path) -> None:
    path = log_file(folder)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 10)
    for is_clean in (False, True):
        log = open_log(folder, recovery_point=120, is_clean=is_clean)
        assert log.damage is not None
        assert log.log_end_offset == 118


def test_segment_lost_below_the_recovery_point_is_damage(folder: Path) -> None:
    end = bases(folder)[-1]
    log_file(folder).unlink()
    log = open_log(folder, recovery_point=120, is_clean=True)
    assert log.damage is not None
    assert log.log_end_offset == end


def test_damage_of_deleted_records_is_none(folder: Path) -> None:
    path = log_file(folder)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 10)
    log = open_log(folder, recovery_point=120, log_start_offset=120)
    assert log.damage is None
    assert (log.log_start_offset, log.log_end_offset) == (120, 120)


def test_truncation_ends_a_damage(folder: Path) -> None:
    at = bases(folder)[2]
    flip(log_file(folder, 2), 70 + 115)
    log = open_log(folder, recovery_point=120)
    log.truncate_to(at + 2)
    assert log.damage is None
    assert log.log_end_offset == at + 2
    append(log, at + 2, epoch=3)
    assert offsets(log) == list(range(0, at + 4, 2))
    log.flush()
    log.close()
    assert bases(folder)[-1] == at
    again = open_log(folder, recovery_point=at + 4)
    assert again.damage is None
    assert again.log_end_offset == at + 4


def test_offsets_that_go_back_are_corruption(folder: Path) -> None:
    path = log_file(folder)
    first = path.read_bytes()[:115]
    with path.open("ab") as file:
        file.write(first)
    log = open_log(folder)
    assert log.log_end_offset == 120
    assert offsets(log) == list(range(0, 120, 2))


def test_an_offset_that_reaches_into_the_next_segment_is_corruption(folder: Path) -> None:
    """No CRC covers it. The segments behind are not what is wrong, and nothing is read at an offset that it has not."""
    following = bases(folder)[2]
    path, position = place(folder, following - 2)
    data = bytearray(path.read_bytes())
    data[position : position + 8] = (following + 2).to_bytes(8, "big")
    path.write_bytes(data)
    log = open_log(folder)
    assert log.log_end_offset == following - 2
    assert offsets(log) == list(range(0, following - 2, 2))


@pytest.mark.parametrize("is_clean", [True, False])
def test_missing_indexes_are_made_anew(folder: Path, is_clean: bool) -> None:
    before = contents(folder)
    (folder / f"{bases(folder)[1]:020d}.index").unlink()
    (folder / f"{bases(folder)[2]:020d}.timeindex").unlink()
    log = open_log(folder, is_clean=is_clean, recovery_point=120)
    assert log.log_end_offset == 120
    log.close()
    assert contents(folder) == before


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@pytest.mark.parametrize("extra", [bytes(3), bytes(2400)], ids=["broken size", "preallocated"])
def test_index_that_cannot_be_right_is_made_anew_when_it_is_needed(folder: Path, suffix: str, extra: bytes) -> None:
    before = contents(folder)
    path = folder / f"{bases(folder)[1]:020d}.{suffix}"
    path.write_bytes(path.read_bytes() + extra)
    log = open_log(folder, is_clean=True)
    assert offsets(log) == list(range(0, 120, 2))
    assert log.offset_for_timestamp(NOW + 30, 120) is not None
    log.close()
    assert contents(folder) == before


def test_clean_log_that_is_not_clean_is_recovered(folder: Path) -> None:
    with log_file(folder).open("ab") as file:
        file.write(b"\xff" * 200)
    log = open_log(folder, is_clean=True, recovery_point=120)
    assert log.damage is None
    assert log.log_end_offset == 120
    assert log.recovery_point == 120


def test_producers_come_from_the_snapshot_and_the_batches_after_it(folder: Path) -> None:
    snapshots = sorted(folder.glob("*.snapshot"))
    snapshots[-1].unlink()
    (folder / snapshots[-2].name).write_bytes(b"torn")
    log = open_log(folder, is_clean=True)
    (producer,) = log.producers.active(NOW)
    assert producer.last_sequence == 119
    assert not (folder / snapshots[-2].name).exists()
    append(log, 120, epoch=1)


def test_epochs_are_cut_to_the_log(folder: Path) -> None:
    (folder / "leader-epoch-checkpoint").write_bytes(b"0\n3\n0 0\n1 80\n2 120\n")
    log = open_log(folder, is_clean=True, log_start_offset=10)
    assert log.leader_epochs.entries == ((0, 10), (1, 80))


@pytest.mark.parametrize("data", [None, b"", b"0\n5\n1 1\n"])
def test_lost_epochs_are_found_in_the_batches(folder: Path, data: bytes | None) -> None:
    path = folder / "leader-epoch-checkpoint"
    path.unlink()
    if data is not None:
        path.write_bytes(data)
    assert open_log(folder, is_clean=True).leader_epochs.entries == ((0, 0), (1, 80))


@pytest.mark.parametrize("is_clean", [True, False])
def test_epochs_that_were_cut_for_a_start_which_is_lost_are_found_in_the_batches(folder: Path, is_clean: bool) -> None:
    open_log(folder, is_clean=True, log_start_offset=100).close()
    assert (folder / "leader-epoch-checkpoint").read_bytes() == b"0\n1\n1 100\n"
    assert open_log(folder, is_clean=is_clean).leader_epochs.entries == ((0, 0), (1, 80))


def test_epochs_that_begin_with_the_first_batch_of_a_compacted_log_are_taken_as_they_are(tmp_path: Path) -> None:
    """Its start may be far before that batch, and to look for older ones is to read all of it."""
    path = tmp_path / "events-0"
    config = replace(DENSE, cleanup_policy=frozenset({"compact"}))
    log = open_log(path, is_clean=True, config=config)
    batch = write_batch(
        [Record(number, NOW, b"key", b"v") for number in range(80, 120)], base_offset=80, leader_epoch=1
    )
    log.append_as_follower(memoryview(batch), now_ms=NOW)
    log.close()
    (path / "leader-epoch-checkpoint").write_bytes(b"0\n2\n1 80\n2 100\n")
    log = open_log(path, is_clean=True, config=config)
    assert (log.log_start_offset, log.log_end_offset) == (0, 120)
    # The batches do not say the second one.
    assert log.leader_epochs.entries == ((1, 80), (2, 100))


def test_log_that_ends_below_its_start_begins_anew_there(folder: Path) -> None:
    log = open_log(folder, log_start_offset=500)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (500, 500, 0)
    append(log, 0)
    assert offsets(log) == [500]


def test_log_start_is_at_least_the_first_segment(folder: Path) -> None:
    first = log_file(folder, 0)
    second = bases(folder)[1]
    first.unlink()
    log = open_log(folder, is_clean=True, recovery_point=120)
    assert log.log_start_offset == second
    assert not (folder / f"{0:020d}.index").exists(), "an index without its log is removed"


def test_leftovers_of_deletion_and_compaction_are_removed(folder: Path) -> None:
    before = contents(folder)
    names = [f"{5:020d}.log.deleted", f"{0:020d}.log.cleaned", f"{0:020d}.index.cleaned", f"{9:020d}.log.swap"]
    for name in names:
        (folder / name).write_bytes(b"x")
    open_log(folder, is_clean=True).close()
    assert contents(folder) == before, "a swap from the first cleaned segment on belongs to a split that did not end"


def test_complete_swap_takes_the_place_of_the_segments_it_covers(folder: Path) -> None:
    first, second, third = bases(folder)[:3]
    merged = b"".join((folder / f"{base:020d}.log").read_bytes() for base in (first, second))
    (folder / f"{first:020d}.log.swap").write_bytes(merged)
    log = open_log(folder, recovery_point=120)
    assert log.damage is None
    assert bases(folder)[:2] == [first, third]
    assert offsets(log) == list(range(0, 120, 2))


def test_new_log_begins_at_its_start_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path / "new-0", log_start_offset=30, recovery_point=900)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point, log.damage) == (30, 30, 30, None)


def test_topic_id_is_kept_and_guarded(folder: Path) -> None:
    assert open_log(folder, is_clean=True).topic_id is None
    open_log(folder, is_clean=True, topic_id=TOPIC_ID).close()
    assert (folder / "partition.metadata").read_bytes() == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAATQ"
    assert open_log(folder, is_clean=True).topic_id == TOPIC_ID
    with pytest.raises(KafkaError) as caught:
        open_log(folder, topic_id=TopicId(UUID(int=78)))
    assert caught.value.code == ErrorCode.INCONSISTENT_TOPIC_ID


def test_renamed_log_goes_on_in_its_new_folder(folder: Path) -> None:
    log = open_log(folder, is_clean=True)
    target = folder.parent / "events-0.abc-delete"
    log.rename_directory(str(target))
    assert log.directory == str(target)
    assert offsets(log) == list(range(0, 120, 2))
    log.close()
    assert [child.name for child in folder.parent.iterdir()] == ["events-0.abc-delete"]


def test_config_of_a_reopened_log_holds(folder: Path) -> None:
    log = open_log(folder, is_clean=True, config=replace(DENSE, max_message_bytes=10))
    with pytest.raises(KafkaError) as caught:
        append(log, 120)
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize(
    ("offset", "epoch", "end"),
    [
        # 2048 alone, then 0 again.
        (20, 2048, 20),
        # In the midst of epoch 1, which has batches enough to be believed.
        (100, 0, 100),
        # The first batch of epoch 1: what comes behind says no more than that it is newer.
        (80, 0, 120),
        (82, 2048, 82),
    ],
)
def test_a_leader_epoch_that_falls_ends_a_log_where_it_is_not_as_it_was_written(
    folder: Path, offset: int, epoch: int, end: int
) -> None:
    set_epoch(folder, offset, epoch)
    log = open_log(folder)
    assert log.damage is None
    assert log.log_end_offset == end
    assert max(known for known, _ in log.leader_epochs.entries) <= 1
    (producer,) = log.producers.active(NOW)
    assert producer.last_sequence == end - 1
    assert offsets(log) == list(range(0, end, 2))
    append(log, end, epoch=2)
    log.flush()
    log.close()
    again = open_log(folder)
    assert (again.damage, again.log_end_offset) == (None, end + 2)
    again.close()


def test_a_leader_epoch_that_falls_in_the_next_segment_ends_the_log_in_the_one_before(folder: Path) -> None:
    last_of_first = bases(folder)[1] - 2
    path, position = set_epoch(folder, last_of_first, 7)
    log = open_log(folder)
    assert (log.log_end_offset, bases(folder), path.stat().st_size) == (last_of_first, [0], position)
    assert log.leader_epochs.entries == ((0, 0),)
    log.close()


def test_a_leader_epoch_that_falls_below_the_recovery_point_is_damage(folder: Path) -> None:
    offset = bases(folder)[-1] + 2
    before = contents(folder)
    path, _ = set_epoch(folder, offset, 2048)
    changed = path.read_bytes()
    log = open_log(folder, recovery_point=120)
    assert log.damage is not None
    assert log.damage.offset == log.log_end_offset == offset
    assert log.damage.reason.endswith(f"leader epoch 2048 is followed by 1 at offset {offset + 2}")
    log.close()
    # Nothing is cut: the leader decides.
    assert {name: data for name, data in contents(folder).items() if name.endswith(".log")} == {
        **{name: data for name, data in before.items() if name.endswith(".log")},
        path.name: changed,
    }
