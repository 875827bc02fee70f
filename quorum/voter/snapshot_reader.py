"""The newest snapshot of a voter, read for peers that need it."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from ...storage.disk.rules.disk_errors import ReadError, is_passing
from ..raft.consensus import ConsensusFailed, Snapshot, as_failure

logger = logging.getLogger(__name__)

_RETRY_S: Final = 1.0
_READS: Final = 5
"""That fail in a row end the voter: another one, which can read its own, is to lead."""


class SnapshotReader:
    """Reads one at a time; a read that fails is tried again later, as a single one says little about the disk."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        read: Callable[[], "asyncio.Future[Snapshot | None]"],
        *,
        on_read: Callable[[Snapshot], None],
        on_failure: Callable[[ConsensusFailed], None],
    ) -> None:
        """`read` begins to read in an executor. `on_failure` takes what is no failed read and no shortage, and the last
        of several reads that failed in a row."""
        self._loop = loop
        self._read = read
        self._on_read = on_read
        self._on_failure = on_failure
        self._is_busy = False
        self._failed_reads = 0

    def ask(self) -> None:
        """Read, unless that is under way or failed a moment ago: then ask again."""
        if not self._is_busy:
            self._is_busy = True
            self._read().add_done_callback(self._on_done)

    def _on_done(self, future: "asyncio.Future[Snapshot | None]") -> None:
        try:
            snapshot = future.result()
        except (Exception, asyncio.CancelledError) as error:
            self._on_error(error)
            return
        self._is_busy = False
        self._failed_reads = 0
        if snapshot is not None:
            self._on_read(snapshot)

    def _on_error(self, error: BaseException) -> None:
        if not isinstance(error, OSError):
            self._on_failure(as_failure(error))
            return
        self._failed_reads += 1
        if self._failed_reads == _READS or not (isinstance(error, ReadError) or is_passing(error)):
            self._on_failure(ConsensusFailed(f"The newest metadata snapshot cannot be read: {error}."))
            return
        logger.warning("Failed to read metadata snapshot for a peer, retrying: error=%s", error)
        self._loop.call_later(_RETRY_S, self._become_free)

    def _become_free(self) -> None:
        self._is_busy = False
