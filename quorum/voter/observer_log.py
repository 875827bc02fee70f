"""The metadata log of a node that does not vote: committed entries only, kept as a partition's log, and snapshots.

What is lost here is fetched again, so nothing waits for a sync. Synchronous; small enough for the loop, but for
`install_snapshot` and opening.
"""

import logging
from collections.abc import Iterator, Sequence

from ...protocol.errors import CorruptData
from ...protocol.ids import NO_CONTROLLER_EPOCH, ControllerEpoch
from ...storage.disk.files import Files
from ...storage.disk.rules.disk_errors import ClosedError
from ...storage.log.log import Log
from ...storage.log.rules.config import LogConfig
from ..metadata.metadata_log import METADATA_TOPIC, METADATA_TOPIC_ID, CommittedEntry, SnapshotId, decode_batches
from ..raft.consensus import ConsensusFailed, Snapshot
from .snapshots import Snapshots, SnapshotWriter

logger = logging.getLogger(__name__)

_READ_BYTES = 1024 * 1024


class ObserverLog:
    """One folder: `__cluster_metadata-0`. Exhaust `recover`, then append. After `close` calls raise ClosedError."""

    def __init__(self, files: Files, directory: str, *, config: LogConfig) -> None:
        self._files = files
        self._directory = directory
        self._config = config
        self._snapshots = Snapshots(files, directory)
        self._log: Log | None = None
        self._snapshot = SnapshotId(0, NO_CONTROLLER_EPOCH)
        self.bytes_since_snapshot = 0

    @property
    def end_offset(self) -> int:
        return self._opened.log_end_offset

    @property
    def start_offset(self) -> int:
        """Where the newest snapshot ends; the log goes on there."""
        return self._snapshot.end_offset

    @property
    def last_epoch(self) -> ControllerEpoch:
        """The epoch of the last entry, or of the last that the snapshot has; 0 for an empty log without a snapshot."""
        latest = self._opened.leader_epochs.latest_epoch
        return self._snapshot.epoch if self.end_offset == self._snapshot.end_offset else ControllerEpoch(max(latest, 0))

    def latest_snapshot(self) -> Snapshot | None:
        """Return the state with which the log begins. Raises ConsensusFailed when it is damaged."""
        self._files.make_directories(self._directory)
        if any(name.endswith(".journal") for name in self._files.list_directory(self._directory)):
            raise ConsensusFailed(
                f"{self._directory} holds the journal of a voter; a node that does not vote needs a metadata log "
                "directory of its own."
            )
        self._snapshots.remove_unfinished()
        snapshot = self._snapshots.latest()
        if snapshot is not None:
            self._snapshot = SnapshotId(snapshot.end_offset, snapshot.epoch)
        return snapshot

    def recover(self, now_ms: int) -> Iterator[CommittedEntry]:
        """Yield the entries behind the snapshot; what is torn or damaged goes, and is fetched again."""
        start_offset = self._snapshot.end_offset
        log = self._log = Log.open(
            self._files,
            self._directory,
            topic=METADATA_TOPIC,
            partition=0,
            topic_id=METADATA_TOPIC_ID,
            config=self._config,
            log_start_offset=start_offset,
            is_clean=False,
            now_ms=now_ms,
        )
        if log.damage is not None or log.log_end_offset < start_offset:
            log.truncate_fully_and_start_at(start_offset)
        self.bytes_since_snapshot = log.size_bytes
        for entry in self._stored(log):
            if entry.offset >= start_offset:
                yield entry

    def _stored(self, log: Log) -> Iterator[CommittedEntry]:
        position = log.log_start_offset
        while position < log.log_end_offset:
            data = log.read(position, max_bytes=_READ_BYTES, end_offset=log.log_end_offset, min_one_batch=True)
            records = b"".join(part.read(0, part.size) for part in data.slices)
            for entry in decode_batches(records, is_cut=True):
                position = entry.offset + 1
                yield entry

    def append(self, records: bytes, *, now_ms: int) -> Sequence[CommittedEntry]:
        """Keep batches as a voter served them and return their entries.

        Raises CorruptData, and nothing is kept, when they do not go on where this log ends; KafkaError when a batch is
        damaged; OSError. Where the disk refused some of them, the entries of those before are returned.
        """
        entries = list(decode_batches(records))
        expected = self.end_offset
        for number, entry in enumerate(entries):
            if entry.offset != expected + number:
                raise CorruptData(f"the metadata log goes on at offset {entry.offset}, expected {expected + number}")
        try:
            self._opened.append_as_follower(records, now_ms=now_ms)
        except OSError:
            # An entry that is in the log and in no image would never be asked for again.
            entries = [entry for entry in entries if entry.offset < self.end_offset]
            if not entries:
                raise
        self.bytes_since_snapshot += len(records)
        return entries

    def begin_snapshot(self, snapshot_id: SnapshotId) -> "SnapshotDownload":
        """Return where the bytes of a voter's snapshot go."""
        self._check_open()
        return SnapshotDownload(self._files, self._snapshots, snapshot_id)

    def install_snapshot(self, download: "SnapshotDownload") -> Snapshot:
        """Begin anew behind a snapshot that has arrived.

        Raises ConsensusFailed when it is not whole: it is removed, and the log is as before.
        """
        snapshot = download.finish()
        self._opened.truncate_fully_and_start_at(snapshot.end_offset)
        self._begin_at(SnapshotId(snapshot.end_offset, snapshot.epoch))
        return snapshot

    def snapshot_writer(self, snapshot_id: SnapshotId) -> SnapshotWriter:
        """Return the writer of a snapshot of this node's own."""
        self._check_open()
        return SnapshotWriter(self._files, self._directory, end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch)

    def trim(self, snapshot_id: SnapshotId, now_ms: int) -> None:
        """Drop what a snapshot has that was written here."""
        self._opened.increment_log_start_offset(snapshot_id.end_offset)
        self._opened.delete_old_segments(snapshot_id.end_offset, now_ms)
        self._begin_at(snapshot_id)

    def close(self) -> None:
        """A disk that fails is logged: the next start looks at the log as after a crash, and fetches what is lost."""
        log, self._log = self._log, None
        if log is None:
            return
        try:
            log.close()
        except OSError as error:
            logger.warning("Failed to close metadata log: path=%s error=%s", self._directory, error)
            log.close_files()

    @property
    def _opened(self) -> Log:
        self._check_open()
        assert self._log is not None
        return self._log

    def _check_open(self) -> None:
        if self._log is None:
            raise ClosedError(f"The metadata log in {self._directory} is not open.")

    def _begin_at(self, snapshot_id: SnapshotId) -> None:
        self._snapshot = snapshot_id
        self._snapshots.remove_below(snapshot_id.end_offset)
        self.bytes_since_snapshot = 0


class SnapshotDownload:
    """A voter's snapshot file while it arrives."""

    def __init__(self, files: Files, snapshots: Snapshots, snapshot_id: SnapshotId) -> None:
        self._snapshots = snapshots
        self.id = snapshot_id
        self.path = snapshots.path(snapshot_id.end_offset, snapshot_id.epoch)
        self._files = files
        self._file = files.open(f"{self.path}.part", create=True)
        self._file.truncate(0)

    @property
    def size_bytes(self) -> int:
        """How much has arrived."""
        return self._file.size

    def append(self, data: bytes) -> None:
        self._file.append([data])

    def finish(self) -> Snapshot:
        self._file.sync()
        self._file.close()
        return self._snapshots.accept(self.path)
