"""The snapshots that a voter makes of the metadata it has: when it is time, and when it is told to.

Kafka: `SnapshotGenerator`.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator

from ..metadata.loader import MetadataLoader
from ..metadata.metadata_log import MetadataLog, SnapshotId
from ..metadata.snapshot_records import image_chunks
from ..metadata.snapshot_schedule import SnapshotSchedule
from ..raft.consensus import Consensus

logger = logging.getLogger(__name__)


class SnapshotGenerator:
    """One at a time. What it makes, it drops from the log in memory."""

    def __init__(
        self,
        consensus: Consensus,
        loader: MetadataLoader,
        log: MetadataLog,
        schedule: SnapshotSchedule,
        *,
        is_behind: Callable[[], bool],
        loop: asyncio.AbstractEventLoop,
        now_ms: Callable[[], int],
    ) -> None:
        """`is_behind`: entries wait to be replayed, so the log has more than the image."""
        self._consensus = consensus
        self._loader = loader
        self._log = log
        self._schedule = schedule
        self._is_behind = is_behind
        self._loop = loop
        self._now_ms = now_ms
        self._task: asyncio.Task[bool] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_stopping = False
        self.latest_bytes = 0
        """Of the latest snapshot that was made here since start."""
        self._latest_ms = now_ms()

    @property
    def latest_age_ms(self) -> int:
        """Since the latest snapshot was made here, or since start."""
        return self._now_ms() - self._latest_ms

    def on_entry(self) -> None:
        """Begin one if it is time."""
        if self._timer is None:
            self._set_timer()
        self._begin_if_due()

    def on_snapshot(self) -> None:
        """Hear that the state was replaced by a snapshot from elsewhere."""
        self._schedule.on_snapshot(self._now_ms())

    def close(self) -> None:
        """Begin none any more."""
        self._is_stopping = True
        if self._timer is not None:
            self._timer.cancel()

    async def wait_closed(self) -> None:
        """Wait for the one that is being made, which is given up when the engine stops."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def save_now(self) -> SnapshotId | None:
        """Make one of all there is, unless the newest has it already; return it, None when there was no room for it."""
        if self._task is not None:
            await asyncio.wait([self._task])
        if self._has_new and not self._is_stopping:
            if self._task is None:
                self._begin()
            assert self._task is not None
            if not await asyncio.shield(self._task):
                return None
        return self._log.snapshot

    @property
    def _has_new(self) -> bool:
        return self._loader.image.offset >= self._log.start_offset

    def _set_timer(self) -> None:
        check_ms = self._schedule.next_check_ms()
        if check_ms is not None and not self._is_stopping:
            self._timer = self._loop.call_later(max(0, check_ms - self._now_ms()) / 1000, self._on_timer)

    def _on_timer(self) -> None:
        # The next entry sets it again.
        self._timer = None
        self._begin_if_due()

    def _begin_if_due(self) -> None:
        if (
            self._task is None
            and not self._is_stopping
            and not self._is_behind()
            and not self._loader.is_catching_up
            and not self._loader.is_in_transaction
            and self._schedule.is_due(
                new_bytes=self._consensus.bytes_since_snapshot, has_new=self._has_new, now_ms=self._now_ms()
            )
        ):
            self._begin()

    def _begin(self) -> None:
        self._schedule.on_snapshot(self._now_ms())
        self._task = self._loop.create_task(self._save())

    async def _save(self) -> bool:
        """Write the image as it is now: it is immutable, and nothing waits."""
        image = self._loader.image
        snapshot_id = SnapshotId(image.offset + 1, image.epoch)
        size_bytes = 0

        def counted() -> Iterator[bytes]:
            nonlocal size_bytes
            for chunk in image_chunks(image):
                size_bytes += len(chunk)
                yield chunk

        try:
            is_kept = await self._consensus.save_snapshot(
                end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch, chunks=counted()
            )
            if is_kept:
                self.latest_bytes, self._latest_ms = size_bytes, self._now_ms()
            # The log may have begun anew behind a later one that came from the leader.
            if is_kept and snapshot_id.end_offset > self._log.start_offset:
                self._log.trim(snapshot_id)
                logger.info("Created metadata snapshot: end_offset=%d epoch=%d", *snapshot_id)
        finally:
            self._task = None
        if self._timer is None and self._has_new:
            # The timer of what came meanwhile went off, and no other entry may come.
            self._set_timer()
        return is_kept
