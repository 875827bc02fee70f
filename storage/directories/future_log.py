"""The copy of a log in another log directory, on its way to take its place (KIP-113). Kafka: `UnifiedLog`, isFuture.

It is a log like any other, appended to as a follower's: batches as they are, so that indexes, aborted transactions,
producer snapshots and leader epochs follow from them. What changes it waits for the disk, and runs in the executor, one
call at a time.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from random import Random
from uuid import UUID

from ...protocol.errors import CorruptData
from ..disk.files import Files
from ..log.file_slice import FetchData
from ..log.log import Log
from ..log.rules.producer_entry import ProducerEntry
from ..log.rules.tiered_history import TieredHistory
from .log_directory import LogDirectory
from .rules.checkpoints import TopicPartition

REPLACED_DIRECTORY_FILE = "replaced-directory"
"""In the folder of a copy that is about to take over: the id of the directory that has the log in its place."""


class FutureLog:
    """`log` is None until it is opened. `is_over` once the move has ended, one way or another."""

    __slots__ = (
        "directory",
        "is_announced",
        "is_over",
        "is_resumed",
        "key",
        "log",
        "path",
        "source",
        "unique_id",
    )

    def __init__(
        self, key: TopicPartition, directory: LogDirectory, path: str, unique_id: str, *, is_resumed: bool = False
    ) -> None:
        self.key = key
        self.directory = directory
        self.path = path
        self.unique_id = unique_id
        # The folder is of an earlier process.
        self.is_resumed = is_resumed
        self.log: Log | None = None
        # The log that this agrees with up to its end, but for cuts.
        self.source: Log | None = None
        # The controller is asked to note that the replica is here, or has done so.
        self.is_announced = False
        self.is_over = False

    def has_ended(self) -> bool:
        """`is_over`, asked again after a wait."""
        return self.is_over

    @property
    def log_end_offset(self) -> int:
        return 0 if self.log is None else self.log.log_end_offset

    @property
    def size_bytes(self) -> int:
        return 0 if self.log is None else self.log.size_bytes

    # In the executor

    def open(self, files: Files, source: Log, *, now_ms: int, producer_id_expiration_ms: int, random: Random) -> None:
        """What an earlier process has copied is recovered, all of it: the recovery point that the directory has may be
        of the log that was here before. OSError; CorruptData when it is of no use.
        """
        log = Log.open(
            files,
            self.path,
            topic=source.topic,
            partition=source.partition,
            topic_id=source.topic_id,
            config=source.config,
            is_clean=False,
            now_ms=now_ms,
            producer_id_expiration_ms=producer_id_expiration_ms,
            random=random,
            room=self.directory.room,
        )
        if log.damage is not None:
            log.close_files()
            raise CorruptData(f"{self.path} is damaged at offset {log.damage.offset}: {log.damage.reason}")
        self.log = log

    def fit(
        self,
        end_offset: int,
        start_offset: int,
        producers: Iterable[ProducerEntry],
        now_ms: int,
        *,
        tiered: TieredHistory | None = None,
    ) -> None:
        """End at `end_offset` at most, and begin at `start_offset`: anew, with `producers`, if there is nothing left.

        `tiered` is what a tier has before that. OSError, CorruptData.
        """
        log = self._opened()
        if end_offset < log.log_end_offset:
            log.truncate_to(end_offset)
        if not log.first_segment_base_offset <= start_offset <= log.log_end_offset:
            log.truncate_fully_and_start_at(start_offset, producers, now_ms, tiered=tiered)
        log.increment_log_start_offset(start_offset if tiered is None else tiered.log_start_offset)

    def append(self, data: FetchData, now_ms: int, appended_ms: int) -> None:
        """`SourceError` when `data` cannot be read; KafkaError and OSError as `Log.append_as_follower`."""
        self._opened().append_as_follower(memoryview(read_all(data)), now_ms=now_ms, appended_ms=appended_ms)

    def flush(self) -> None:
        """OSError, CorruptData."""
        self._opened().flush()

    def note_replaced(self, files: Files, directory_id: UUID) -> None:
        """Before it takes over: lasts when this returns. OSError."""
        files.write_atomically(f"{self.path}/{REPLACED_DIRECTORY_FILE}", encode_replaced_directory(directory_id))

    def close_files(self) -> None:
        if self.log is not None:
            self.log.close_files()
            self.log = None
            self.source = None

    def _opened(self) -> Log:
        assert self.log is not None, "it is opened before it is used"
        return self.log


class SourceError(Exception):
    """The log that is copied cannot be read."""


@contextmanager
def source_errors(log: Log, on_error: Callable[[str, OSError], None]) -> Iterator[None]:
    """What the log's directory refuses says nothing about that of the copy: `on_error` is told. SourceError."""
    try:
        yield
    except (OSError, CorruptData) as error:
        if isinstance(error, OSError):
            on_error(log.directory, error)
        raise SourceError(str(error)) from error


def read_all(data: FetchData) -> bytes:
    parts: list[bytes] = []
    for piece in data.slices:
        offset = 0
        while offset < piece.size:
            try:
                part = piece.read(offset, piece.size - offset)
            except OSError as error:
                raise SourceError(str(error)) from error
            if not part:
                raise SourceError(f"{piece.file.path} ends early")
            parts.append(part)
            offset += len(part)
    return b"".join(parts)


def encode_replaced_directory(directory_id: UUID) -> bytes:
    return f"0\n{directory_id}\n".encode()


def read_replaced_directory(files: Files, path: str) -> UUID | None:
    """What the note in a partition's folder says; None without one, or when it is torn. OSError."""
    note = f"{path}/{REPLACED_DIRECTORY_FILE}"
    if not files.exists(note):
        return None
    lines = files.read(note).decode("ascii", "replace").split("\n")
    try:
        return UUID(lines[1]) if lines[0] == "0" else None
    except (ValueError, IndexError):
        return None


def forget_replaced_directory(files: Files, path: str) -> None:
    """Lasts when this returns. OSError."""
    note = f"{path}/{REPLACED_DIRECTORY_FILE}"
    if files.exists(note):
        files.remove(note)
        files.sync_directory(path)


def common_end(copy: Log, log: Log) -> int:
    """Up to where `copy`, which was made of this replica's log once, agrees with that log now: by leader epochs.

    0 when that cannot be told. The rule is that of replicas (KIP-101): of one epoch there is one log.
    """
    epoch = copy.leader_epochs.latest_epoch
    while (theirs := log.leader_epochs.end_offset_for(epoch, log.log_end_offset)) is not None:
        ours = copy.leader_epochs.end_offset_for(theirs[0], copy.log_end_offset)
        if ours is None:
            break
        if ours[0] == theirs[0]:
            return min(ours[1], theirs[1], copy.log_end_offset)
        epoch = ours[0]
    return 0
