import pytest

from penstock.protocol.batches import read_header
from penstock.protocol.errors import CorruptData
from penstock.protocol.ids import ControllerEpoch
from penstock.protocol.records import Record, write_batch
from penstock.quorum.metadata.metadata_log import CommittedEntry, MetadataLog, SnapshotId, decode_batches, encode_batch
from penstock.quorum.metadata.record_codec import encode_entry, encode_record, entry_timestamp_ms
from penstock.quorum.metadata.records import FeatureLevelRecord

NOTHING = SnapshotId(0, ControllerEpoch(0))


def entry(offset: int, epoch: int = 1, *, timestamp_ms: int = 1_700_000_000_000) -> CommittedEntry:
    record = encode_record(FeatureLevelRecord(name="f", feature_level=offset + 1))
    return CommittedEntry(offset, ControllerEpoch(epoch), encode_entry(timestamp_ms, [record]))


def log_of(*entries: CommittedEntry, snapshot: SnapshotId = NOTHING) -> MetadataLog:
    log = MetadataLog()
    log.reset(snapshot)
    for one in entries:
        log.append(one)
    return log


def test_an_entry_comes_back_from_its_batch() -> None:
    for one in (entry(0), entry(7, 3), CommittedEntry(8, ControllerEpoch(4), b"")):
        assert list(decode_batches(encode_batch(one))) == [one]


def test_a_batch_carries_offset_epoch_and_timestamp_of_its_entry() -> None:
    header = read_header(encode_batch(entry(7, 3, timestamp_ms=5)), 0)
    assert (header.base_offset, header.record_count, header.partition_leader_epoch) == (7, 1, 3)
    assert (header.base_timestamp, header.max_timestamp) == (5, 5)
    assert not header.is_control


def test_a_no_op_is_a_control_batch() -> None:
    assert read_header(encode_batch(CommittedEntry(0, ControllerEpoch(1), b"")), 0).is_control


@pytest.mark.parametrize("timestamp_ms", [0, 23, 1_700_000_000_000, 2**62])
def test_the_timestamp_is_read_without_the_records(timestamp_ms: int) -> None:
    assert entry_timestamp_ms(encode_entry(timestamp_ms, [b"\xff" * 100])) == timestamp_ms


@pytest.mark.parametrize("command", [b"", b"\x83", b"\x83\x01", b"\x83\x01\x41", b"\x82\x01\x01", b"\x83\x01\x41a"])
def test_what_is_no_entry_has_no_timestamp(command: bytes) -> None:
    with pytest.raises(CorruptData):
        entry_timestamp_ms(command)


def test_batches_with_several_records_or_transaction_markers_are_not_of_a_metadata_log() -> None:
    two = write_batch([Record(0, 0, None, b"a", ()), Record(1, 0, None, b"b", ())])
    marker = write_batch([Record(0, 0, b"\0\0\0\1", b"\0\0\0\0\0\1", ())], is_control=True)
    for batch in (two, marker):
        with pytest.raises(CorruptData):
            list(decode_batches(batch))


def test_a_read_returns_whole_batches_and_at_least_one() -> None:
    entries = [entry(0), CommittedEntry(1, ControllerEpoch(2), b""), entry(2, 2)]
    log = log_of(*entries)
    assert list(decode_batches(log.read(0, 1_000_000))) == entries
    assert list(decode_batches(log.read(1, 1_000_000))) == entries[1:]
    assert list(decode_batches(log.read(0, 1))) == entries[:1]
    assert log.read(3, 1_000_000) == b""


def test_epochs_are_known_from_the_start_of_the_log_to_its_end() -> None:
    log = log_of(entry(5, 3), entry(6, 4), snapshot=SnapshotId(5, ControllerEpoch(2)))
    assert [log.epoch_before(offset) for offset in (5, 6, 7)] == [2, 3, 4]
    assert (log.start_offset, log.end_offset, log.last_epoch) == (5, 7, 4)


def test_a_snapshot_takes_the_place_of_what_it_has() -> None:
    log = log_of(*(entry(offset, 1 + offset // 2) for offset in range(6)))
    log.trim(SnapshotId(4, ControllerEpoch(2)))
    assert (log.start_offset, log.end_offset, log.snapshot) == (4, 6, SnapshotId(4, ControllerEpoch(2)))
    assert [one.offset for one in decode_batches(log.read(4, 1_000_000))] == [4, 5]
    log.reset(SnapshotId(90, ControllerEpoch(7)))
    # The node's own snapshot was being written when that one arrived.
    log.trim(SnapshotId(6, ControllerEpoch(3)))
    assert (log.start_offset, log.end_offset, log.last_epoch) == (90, 90, 7)
