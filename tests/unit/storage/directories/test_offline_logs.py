"""Each state of a log that is not open: who may try again, and what clients of `LogManager` meet meanwhile."""

from contextlib import suppress
from random import Random

import pytest

from penstock.protocol.errors import CorruptData
from penstock.storage.directories.log_directory import LogDirectory
from penstock.storage.directories.log_loading import LogFolder, OpenSettings, PostponedLog
from penstock.storage.directories.offline_logs import OfflineLogs
from penstock.storage.disk.memory_files import MemoryFiles

KEY = ("flights", 0)
ERROR = OSError(28, "No space left on device")
SETTINGS = OpenSettings(configs={}, now_ms=0, producer_id_expiration_ms=1, random=Random(1), is_clean=True)
POSTPONED = PostponedLog(
    directory=LogDirectory(MemoryFiles(), "/data"),
    folder=LogFolder(path="/data/flights-0", topic="flights", partition=0),
    settings=SETTINGS,
)


@pytest.fixture
def offline() -> OfflineLogs:
    return OfflineLogs()


def may_be_made(offline: OfflineLogs) -> bool:
    with suppress(OSError, CorruptData):
        offline.check(KEY)
        return True
    return False


def test_failed_log_is_refused_until_it_is_repaired_or_deleted(offline: OfflineLogs) -> None:
    offline.fail(KEY, CorruptData("not a log"))
    with pytest.raises(CorruptData, match="not a log"):
        offline.check(KEY)
    assert KEY in offline
    assert not offline.is_retried(KEY)
    assert not offline.retries()
    offline.forget(KEY)
    assert KEY not in offline
    assert may_be_made(offline)


@pytest.mark.parametrize("is_new", [True, False])
def test_refused_log_is_made_later_and_is_as_new_as_it_was(offline: OfflineLogs, is_new: bool) -> None:
    offline.refuse(KEY, ERROR, is_new=is_new)
    assert may_be_made(offline)
    assert offline.is_retried(KEY)
    assert [(key, one.is_new) for key, one in offline.retries().items()] == [(KEY, is_new)]


def test_log_that_is_reopened_is_hosted_only_then(offline: OfflineLogs) -> None:
    offline.postpone(KEY, ERROR, POSTPONED)
    assert not may_be_made(offline)
    assert offline.is_retried(KEY)
    assert not offline.retries()
    assert offline.postponed() == {KEY: POSTPONED}
    offline.on_reopened(KEY)
    assert may_be_made(offline)
    assert not offline.postponed()
    assert list(offline.retries()) == [KEY]
    assert KEY in offline, "clients still receive KAFKA_STORAGE_ERROR"


def test_directory_that_fails_ends_every_other_state(offline: OfflineLogs) -> None:
    offline.postpone(KEY, ERROR, POSTPONED)
    offline.fail(KEY, OSError(5, "Input/output error"))
    assert offline.postponed_log(KEY) is None
    assert not offline.is_retried(KEY)
