"""Snapshots and entries to the loader, in their order, without holding up the loop.

A snapshot that arrives while the node runs is read and compared with the present image in the executor; entries behind
it wait, and are replayed in slices afterwards. Until then the node shows the metadata it had.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from ..metadata.loader import MetadataLoader
from ..metadata.metadata_log import CommittedEntry
from ..raft.consensus import Snapshot

logger = logging.getLogger(__name__)

# So much is read at once: some hundred records.
_SMALL_BYTES: Final = 16 * 1024
_ENTRIES_PER_TURN: Final = 8


class Replay:
    """Between an engine and a loader.

    `take` replays an entry. `on_failure` receives the reason why the node must stop; errors of the call are raised.
    """

    def __init__(
        self,
        loader: MetadataLoader,
        *,
        take: Callable[[CommittedEntry], None],
        loop: asyncio.AbstractEventLoop,
        on_failure: Callable[[str], None],
    ) -> None:
        self._loader = loader
        self._take = take
        self._loop = loop
        self._on_failure = on_failure
        self._arrived: Snapshot | None = None
        self._waiting: deque[CommittedEntry] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_behind(self) -> bool:
        """Something has come that the image does not have yet."""
        return self._task is not None

    def add_snapshot(self, snapshot: Snapshot) -> None:
        is_small = sum(len(chunk) for chunk in snapshot.chunks) <= _SMALL_BYTES
        if not self.is_behind and (is_small or self._loader.is_catching_up):
            self._loader.load_snapshot(snapshot.chunks, end_offset=snapshot.end_offset, epoch=snapshot.epoch)
            return
        # It has what waits, too.
        self._waiting.clear()
        self._arrived = snapshot
        if self._task is None:
            self._task = self._loop.create_task(self._catch_up())

    def add_entry(self, entry: CommittedEntry) -> None:
        if self.is_behind:
            self._waiting.append(entry)
        else:
            self._take(entry)

    async def stop(self) -> None:
        """Let what waits be."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _catch_up(self) -> None:
        try:
            while self._arrived is not None or self._waiting:
                if self._arrived is not None:
                    await self._load(self._arrived)
                for _ in range(min(_ENTRIES_PER_TURN, len(self._waiting))):
                    self._take(self._waiting.popleft())
                await asyncio.sleep(0)
        except Exception as error:
            logger.exception("Error replaying metadata records")
            self._on_failure(f"The metadata that came from another node cannot be applied: {error}")
        else:
            self._task = None

    async def _load(self, snapshot: Snapshot) -> None:
        read = partial(
            self._loader.read_snapshot, snapshot.chunks, end_offset=snapshot.end_offset, epoch=snapshot.epoch
        )
        found = await self._loop.run_in_executor(None, read)
        if self._arrived is snapshot:
            self._arrived = None
            self._loader.take_snapshot(found)
