"""The metadata log of a node that does not vote."""

from errno import EMFILE

import pytest

from penstock.protocol.ids import ControllerEpoch
from penstock.quorum.metadata.metadata_log import CommittedEntry, encode_batch
from penstock.quorum.voter.observer_log import ObserverLog
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.disk.memory_nodes import Operation
from penstock.storage.log.rules.config import LogConfig

FOLDER = "/data/__cluster_metadata-0"


def test_entries_of_an_append_that_is_refused_half_way_are_those_that_are_in_the_log() -> None:
    """What the log has is not asked for again, so the image must get it now."""
    files = MemoryFiles()
    log = ObserverLog(files, FOLDER, config=LogConfig(retention_ms=-1, segment_bytes=100))
    log.latest_snapshot()
    assert list(log.recover(0)) == []
    entries = [CommittedEntry(offset, ControllerEpoch(1), b"") for offset in range(6)]
    batches = [encode_batch(entry) for entry in entries]
    files.fail("create", error=EMFILE, skip=1, count=None)
    kept = list(log.append(b"".join(batches), now_ms=0))
    assert 0 < len(kept) < 6
    assert kept == entries[: len(kept)]
    assert log.end_offset == len(kept)
    with pytest.raises(OSError, match="EMFILE"):
        log.append(b"".join(batches[len(kept) :]), now_ms=0)
    files.heal()
    assert list(log.append(b"".join(batches[len(kept) :]), now_ms=0)) == entries[len(kept) :]
    log.close()


@pytest.mark.parametrize("operation", ["rename", "create", "write", "sync"])
def test_a_disk_that_fails_at_close_leaves_what_was_appended(operation: Operation) -> None:
    files = MemoryFiles()
    log = ObserverLog(files, FOLDER, config=LogConfig(retention_ms=-1))
    log.latest_snapshot()
    assert list(log.recover(0)) == []
    entry = CommittedEntry(0, ControllerEpoch(1), b"")
    assert list(log.append(encode_batch(entry), now_ms=0)) == [entry]
    files.fail(operation, count=None)
    log.close()
    files.heal()
    files.kill()
    log = ObserverLog(files, FOLDER, config=LogConfig(retention_ms=-1))
    log.latest_snapshot()
    assert list(log.recover(0)) == [entry]
