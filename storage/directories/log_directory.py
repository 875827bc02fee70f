"""One directory of `log.dirs`: locked, formatted for this node, and the files in it that speak of all its logs.

It is online until an error of its disk; then nothing in it is touched any more, and only a restart brings it back.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Final
from uuid import UUID

from ...protocol.errors import ConfigError, CorruptData
from ...protocol.ids import BrokerEpoch, NodeId
from ..disk.disk_room import DiskRoom
from ..disk.files import Files, Lock
from ..disk.rules.disk_errors import is_passing
from ..disk.shielded_call import run_unbroken
from .rules.checkpoints import (
    CHECKPOINTS,
    CLEANER_OFFSETS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    TopicPartition,
    checkpoint_line,
    decode_offsets,
    encode_checkpoint,
    encode_offsets,
)
from .rules.clean_shutdown import CLEAN_SHUTDOWN_FILE, decode_clean_shutdown, encode_clean_shutdown
from .rules.meta_properties import (
    META_PROPERTIES,
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
    is_usable_id,
)
from .rules.start_count import START_COUNT_FILE, decode_start_count, encode_start_count

logger = logging.getLogger(__name__)

_LOCK_FILE: Final = ".lock"
# What may lie in a directory that is about to be formatted: a start that was interrupted, and what mkfs makes.
_EMPTY: Final = frozenset({_LOCK_FILE, META_PROPERTIES + ".tmp", "lost+found"})
_NEXT: Final = ".next"


class LogDirectory:
    __slots__ = (
        "_cleaned_limits",
        "_files",
        "_lock",
        "_pending",
        "_turns",
        "checkpointed",
        "error",
        "has_clean_shutdown",
        "id",
        "is_cordoned",
        "moving_in",
        "path",
        "properties",
        "room",
        "start_count",
        "unopened",
    )

    def __init__(self, files: Files, path: str) -> None:
        self.path = path.rstrip("/")
        self._files = files
        self._lock: Lock | None = None
        # For appends; None until a reserve is configured.
        self.room: DiskRoom | None = None
        # Set when it has failed.
        self.error: OSError | None = None
        self.properties: MetaProperties | None = None
        self.id = UUID(int=0)
        # It takes no new replica (KIP-1066).
        self.is_cordoned = False
        # Whether everything in it was closed at the last stop.
        self.has_clean_shutdown = False
        # How often a process has started on it.
        self.start_count = 0
        # What the checkpoint files say, by their names.
        self.checkpointed: dict[str, dict[TopicPartition, int]] = {}
        # Partitions that have a folder here whose log could not be opened. An operator may repair them, so what the
        # checkpoint files say of them stays.
        self.unopened: set[TopicPartition] = set()
        # Partitions of which a copy is on its way here: what the checkpoint files say of it is the mover's.
        self.moving_in: set[TopicPartition] = set()
        # Checkpoints being written.
        self._pending: dict[str, CheckpointWrite] = {}
        self._turns = {name: asyncio.Lock() for name in CHECKPOINTS}
        # Not written yet.
        self._cleaned_limits: dict[TopicPartition, int] = {}

    @property
    def is_online(self) -> bool:
        return self.error is None

    def fail(self, error: OSError) -> None:
        self.error = error
        self._cleaned_limits.clear()

    # Starting

    def keep_room(self, reserve_bytes: int) -> None:
        """Logs in it leave so much of the disk free; see `DiskRoom`. OSError."""
        self.room = DiskRoom(self._files, self.path, reserve_bytes)

    def lock(self) -> None:
        """Make the directory when it is missing, lock it, and read whose it is. ConfigError when another has it."""
        self._files.make_directories(self.path)
        try:
            self._lock = self._files.lock(f"{self.path}/{_LOCK_FILE}")
        except BlockingIOError:
            raise ConfigError(f"Log directory {self.path} is in use by another node: its file .lock is held.") from None
        path = f"{self.path}/{META_PROPERTIES}"
        if self._files.exists(path):
            self.properties = decode_meta_properties(self._files.read(path), path)
        else:
            foreign = [name for name in self._files.list_directory(self.path) if name not in _EMPTY]
            if foreign:
                raise ConfigError(
                    f"Log directory {self.path} has no {META_PROPERTIES} but is not empty (it has {foreign[0]}): "
                    f"it belongs to something else."
                )

    def format(self, cluster_id: str, node_id: NodeId, random: Random) -> None:
        """Make it a directory of this node. ConfigError when it is one of another cluster or node; OSError."""
        found = self.properties
        if found is not None and found.cluster_id != cluster_id:
            raise ConfigError(f"Log directory {self.path} belongs to cluster {found.cluster_id}, not to {cluster_id}.")
        if found is not None and found.node_id != node_id:
            raise ConfigError(f"Log directory {self.path} belongs to node {found.node_id}, not to node {node_id}.")
        directory_id = None if found is None else found.directory_id
        if directory_id is None:
            directory_id = draw_id(random)
            self.properties = MetaProperties(cluster_id=cluster_id, node_id=node_id, directory_id=directory_id)
            self._files.write_atomically(f"{self.path}/{META_PROPERTIES}", encode_meta_properties(self.properties))
        self.id = directory_id
        self.has_clean_shutdown = self._files.exists(f"{self.path}/{CLEAN_SHUTDOWN_FILE}")
        count = f"{self.path}/{START_COUNT_FILE}"
        self.start_count = decode_start_count(self._files.read(count)) if self._files.exists(count) else 0
        for name in CHECKPOINTS:
            self.checkpointed[name] = self._read_offsets(name)

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def keep_start_count(self, count: int) -> None:
        """Let the next start be a later one. On a full disk it is not kept: that one waits for the end of a session.

        OSError.
        """
        try:
            self._files.write_atomically(f"{self.path}/{START_COUNT_FILE}", encode_start_count(count))
        except OSError as error:
            if not is_passing(error):
                raise
            logger.warning("Failed to write the number of starts: path=%s error=%s", self.path, error)
        self.start_count = count

    # The mark of a clean stop

    def closed_by_broker_epoch(self) -> BrokerEpoch | None:
        """The broker epoch that the last stop left; None when it was not clean."""
        path = f"{self.path}/{CLEAN_SHUTDOWN_FILE}"
        return decode_clean_shutdown(self._files.read(path)) if self._files.exists(path) else None

    def remove_clean_shutdown(self) -> None:
        """Before any log is touched: a stop from now on is not clean (KAFKA-10471)."""
        path = f"{self.path}/{CLEAN_SHUTDOWN_FILE}"
        if self._files.exists(path):
            self._files.remove(path)
            self._files.sync_directory(self.path)

    def write_clean_shutdown(self, broker_epoch: BrokerEpoch) -> None:
        """The last thing that is written."""
        self._files.write_atomically(f"{self.path}/{CLEAN_SHUTDOWN_FILE}", encode_clean_shutdown(broker_epoch))

    # Checkpoints

    def write_offsets(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        """Replace a checkpoint file, waiting; not when it says the same already. OSError."""
        self._pending.pop(name, None)
        if offsets != self.checkpointed[name]:
            self._files.write_atomically(f"{self.path}/{name}", encode_offsets(offsets.items()))
            self.checkpointed[name] = offsets

    def offsets_of_unopened(self, name: str) -> dict[TopicPartition, int]:
        """What the checkpoint file says of the partitions that could not be opened, or are on their way here."""
        offsets = self.checkpointed[name]
        return {key: offsets[key] for key in (*self.unopened, *self.moving_in) if key in offsets}

    @asynccontextmanager
    async def checkpoint(self, name: str) -> AsyncIterator["CheckpointWrite"]:
        """Replace the file without keeping the loop waiting. One at a time does so: all have one temporary name, and
        two that begin in turn could supersede each other without end."""
        async with self._turns[name]:
            write = self._pending[name] = CheckpointWrite(self, self._files, name)
            try:
                yield write
            finally:
                if self._pending.get(name) is write:
                    del self._pending[name]

    def put_in_place(self, write: "CheckpointWrite") -> bool:
        """On the loop; False when the file stays as it is: see `CheckpointWrite.replace_file`. OSError."""
        if self._pending.get(write.name) is not write or not self.is_online or not write.is_change:
            return False
        del self._pending[write.name]
        self._files.rename(f"{self.path}/{write.name}{_NEXT}", f"{self.path}/{write.name}")
        self.checkpointed[write.name] = write.offsets
        return True

    def forget_absent(self, created: TopicPartition, has_log: Callable[[TopicPartition], bool]) -> None:
        """Before `created` gets a log: what the files say of an earlier one of that name must not be taken for its own.

        Drops all that have no log now, so that creating many again costs one write. OSError.
        """
        for name, offsets in self.checkpointed.items():
            write = self._pending.get(name)
            if created in offsets or (write is not None and created in write.offsets):
                kept = {key: offset for key, offset in offsets.items() if has_log(key) or key in self.unopened}
                self.write_offsets(name, kept)

    def limit_recovery_points(self, limits: Mapping[TopicPartition, int]) -> None:
        """Before logs are cut: bytes that were synced are about to go, and that is no damage. OSError."""
        self._limit(RECOVERY_POINTS, limits)

    def limit_start_offsets(self, limits: Mapping[TopicPartition, int]) -> None:
        """Before logs are cut below their start: it is not to be found behind their end. OSError."""
        self._limit(LOG_START_OFFSETS, limits)

    def limit_cleaned_ends(self, limits: Mapping[TopicPartition, int]) -> None:
        """Compaction has left no gaps in what logs take in from where they end, or are about to.

        OSError: the next call does it too.
        """
        for key, limit in limits.items():
            self._cleaned_limits[key] = min(limit, self._cleaned_limits.get(key, limit))
        self._limit(CLEANER_OFFSETS, self._cleaned_limits)
        self._cleaned_limits.clear()

    def _limit(self, name: str, limits: Mapping[TopicPartition, int]) -> None:
        # Nothing where the directory was offline from the start.
        offsets = self.checkpointed.get(name, {})
        write = self._pending.get(name)
        limited = {key: limit for key, limit in limits.items() if offsets.get(key, 0) > limit}
        if limited or (write is not None and any(write.offsets.get(key, 0) > limits[key] for key in limits)):
            self.write_offsets(name, {**offsets, **limited})

    def _read_offsets(self, name: str) -> dict[TopicPartition, int]:
        path = f"{self.path}/{name}"
        if not self._files.exists(path):
            return {}
        try:
            return decode_offsets(self._files.read(path), path)
        except CorruptData as error:
            # Not more is lost than time: without them logs are recovered from their first segment on.
            logger.warning("Ignoring checkpoint file: %s", error)
            return {}


class CheckpointWrite:
    """A checkpoint file in the making: `add` what it is to say, then `replace_file`."""

    __slots__ = ("_directory", "_files", "_lines", "name", "offsets")

    def __init__(self, directory: LogDirectory, files: Files, name: str) -> None:
        self._directory = directory
        self._files = files
        self._lines: list[str] = []
        self.name = name
        self.offsets: dict[TopicPartition, int] = {}

    def add(self, topic: str, partition: int, offset: int) -> None:
        self.offsets[topic, partition] = offset
        self._lines.append(checkpoint_line(topic, partition, offset))

    @property
    def is_change(self) -> bool:
        return self.offsets != self._directory.checkpointed[self.name]

    async def replace_file(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Write it, put it in the place of the old one, and make that last. OSError.

        False when the file stays as it is: it says the same already, or something that was added must not be in it any
        more, as a log was cut meanwhile.
        """
        if self.is_change:
            await run_unbroken(loop, self._write)
        if not self._directory.put_in_place(self):
            return False
        await run_unbroken(loop, self._files.sync_directory, self._directory.path)
        return True

    def _write(self) -> None:
        file = self._files.open(f"{self._directory.path}/{self.name}{_NEXT}", create=True)
        file.truncate(0)
        file.append((encode_checkpoint(self._lines),))
        file.sync()
        file.close()


def draw_id(random: Random) -> UUID:
    while True:
        drawn = UUID(int=random.getrandbits(128), version=4)
        if is_usable_id(drawn):
            return drawn
