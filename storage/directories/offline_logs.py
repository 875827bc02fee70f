"""Why a partition of this node has no open log: the one place where that is known, and what becomes of it.

state      the log                                           get_or_create    left by
failed     its directory failed, or it is not a sound log    raises           a repair, deletion
lost       could not be read for seconds, is tried seldom    raises           reopened, failed, a repair, deletion
refused    a full disk, say, kept it from being made         tries again      the partition hosted, deletion
reopening  is opened again by `LogManager.open_postponed`    raises           reopened, failed, lost, deletion
reopened   is open, and its partition is not hosted yet      returns the log  the partition hosted, deletion

The log manager enters what fails while it loads, repairs or loses a directory; the replica manager what fails when it
makes a log, and that a partition is hosted. Clients receive KAFKA_STORAGE_ERROR for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct

from .log_loading import PostponedLog
from .rules.checkpoints import TopicPartition


class OfflineState(Enum):
    FAILED = "failed"
    LOST = "lost"
    REFUSED = "refused"
    REOPENING = "reopening"
    REOPENED = "reopened"


class OfflineLog(Struct, frozen=True, kw_only=True):
    state: OfflineState
    error: Exception
    """OSError, CorruptData or KafkaError: the latest reason."""
    is_new: bool = False
    """The partition never had a log (state refused)."""
    postponed: PostponedLog | None = None
    """How it is opened again (states reopening and lost)."""


class OfflineLogs:
    def __init__(self) -> None:
        self._logs: dict[TopicPartition, OfflineLog] = {}

    def __len__(self) -> int:
        return len(self._logs)

    def __contains__(self, key: TopicPartition) -> bool:
        return key in self._logs

    def fail(self, key: TopicPartition, error: Exception) -> None:
        self._logs[key] = OfflineLog(state=OfflineState.FAILED, error=error)

    def refuse(self, key: TopicPartition, error: OSError, *, is_new: bool) -> None:
        self._logs[key] = OfflineLog(state=OfflineState.REFUSED, error=error, is_new=is_new)

    def postpone(self, key: TopicPartition, error: OSError, postponed: PostponedLog) -> None:
        state = OfflineState.LOST if postponed.counts_as_lost else OfflineState.REOPENING
        self._logs[key] = OfflineLog(state=state, error=error, postponed=postponed)

    def on_reopened(self, key: TopicPartition) -> None:
        self._logs[key] = OfflineLog(state=OfflineState.REOPENED, error=self._logs[key].error)

    def forget(self, key: TopicPartition) -> None:
        """The partition is hosted, or has left this node."""
        self._logs.pop(key, None)

    def is_retried(self, key: TopicPartition) -> bool:
        """True unless it is not to be counted on any more: a look soon may find it open."""
        found = self._logs.get(key)
        return found is not None and found.state not in (OfflineState.FAILED, OfflineState.LOST)

    def check(self, key: TopicPartition) -> None:
        """Raises the reason of a log that is not to be opened or made by `LogManager.get_or_create`."""
        found = self._logs.get(key)
        if found is not None and found.state not in (OfflineState.REFUSED, OfflineState.REOPENED):
            raise found.error

    def postponed(self) -> dict[TopicPartition, PostponedLog]:
        """Those to be opened again."""
        return {key: found.postponed for key, found in self._logs.items() if found.postponed is not None}

    def postponed_log(self, key: TopicPartition) -> PostponedLog | None:
        found = self._logs.get(key)
        return None if found is None else found.postponed

    def retries(self) -> Mapping[TopicPartition, OfflineLog]:
        """Those whose partitions may be hosted now: refused or reopened."""
        wanted = (OfflineState.REFUSED, OfflineState.REOPENED)
        return {key: found for key, found in self._logs.items() if found.state in wanted}
