"""Writes a snapshot of this voter's own state beside its running journal."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from ...protocol.ids import ControllerEpoch
from ...storage.disk.rules.disk_errors import is_passing
from ..raft.consensus import ConsensusFailed
from .snapshots import SnapshotWriter
from .voter_disk import VoterDisk

logger = logging.getLogger(__name__)

# Snapshot chunks are gathered up to this size before a write of them goes to the executor.
_WRITE_BYTES = 256 * 1024
# Several times what a chunk takes: on a busy machine, who works without a pause waits long for a processor afterwards.
_PAUSE_S = 0.001


class SnapshotSaver:
    """`in_journal_s_turn` runs a call between two writes of the journal, `in_executor` runs one at any time."""

    def __init__(
        self,
        disk: VoterDisk,
        *,
        in_journal_s_turn: Callable[[Callable[[], object]], Awaitable[None]],
        in_executor: Callable[[Callable[[], Any]], Awaitable[Any]],
        is_stopping: Callable[[], bool],
    ) -> None:
        self._disk = disk
        self._in_journal_s_turn = in_journal_s_turn
        self._in_executor = in_executor
        self._is_stopping = is_stopping
        self.memory_start = 0
        """Entries from here on are kept in memory, for peers that are a little behind: those since the last but one."""

    async def save(self, *, end_offset: int, epoch: ControllerEpoch, chunks: Iterator[bytes]) -> bool:
        """Keep the snapshot durably, then drop the segments that it covers. Raises ConsensusFailed.

        False: it was given up because the voter stops, or the disk is full.
        """
        try:
            # Entries from here on go to a new segment, so that the ones before can be removed.
            await self._in_journal_s_turn(self._disk.journal.roll)
            if not await self._write(end_offset, epoch, chunks) or self._is_stopping():
                return False
            self.memory_start = self._disk.journal.start_offset
            await self._in_journal_s_turn(partial(self._disk.journal.trim_to, end_offset))
            await self._in_executor(partial(self._disk.snapshots.remove_below, end_offset))
        except OSError as error:
            if is_passing(error):
                # Nothing depends on it: the journal has it all, and the next one is tried when that has grown as much.
                logger.error("Failed to write metadata snapshot: end_offset=%d error=%s", end_offset, error)
                await self._in_executor(partial(self._disk.snapshots.give_up, end_offset, epoch))
                return False
            raise ConsensusFailed(
                f"The metadata snapshot at offset {end_offset} cannot be written: {error}."
            ) from error
        return True

    async def _write(self, end_offset: int, epoch: ControllerEpoch, chunks: Iterator[bytes]) -> bool:
        writer = await self._in_executor(partial(self._disk.begin_snapshot, end_offset=end_offset, epoch=epoch))
        return await write_snapshot(writer, chunks, in_executor=self._in_executor, is_stopping=self._is_stopping)


async def write_snapshot(
    writer: SnapshotWriter,
    chunks: Iterator[bytes],
    *,
    in_executor: Callable[[Callable[[], Any]], Awaitable[Any]],
    is_stopping: Callable[[], bool],
) -> bool:
    """Return whether it was finished.

    The state may be large and no request waits for it, so it takes little of the loop's time: a chunk, then a pause.
    """
    gathered: list[bytes] = []
    size_bytes = 0
    for chunk in chunks:
        gathered.append(chunk)
        size_bytes += len(chunk)
        if size_bytes >= _WRITE_BYTES:
            await in_executor(partial(writer.append, gathered))
            gathered, size_bytes = [], 0
        else:
            await asyncio.sleep(_PAUSE_S)
        if is_stopping():
            return False
    await in_executor(partial(writer.append, gathered))
    await in_executor(writer.finish)
    return True
