"""The folder of one voter: its lock, its journal and its snapshots, and how they fit together."""

import logging
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from ...protocol.ids import ControllerEpoch, NodeId
from ...storage.disk.files import Files, Lock
from ...storage.disk.rules.disk_errors import ReadError, is_passing
from ..raft.consensus import ConsensusFailed, Snapshot
from ..raft.journal_items import JournalItem
from ..raft.log import RaftLog
from ..raft.snapshot_transfer import SnapshotWork
from .journal import Journal
from .snapshots import SnapshotIntake, Snapshots, SnapshotWriter
from .stored_voters import keep_voters

logger = logging.getLogger(__name__)


class RecoveredState(NamedTuple):
    """What a start finds."""

    log: RaftLog
    snapshot: Snapshot | None
    commit_end: int
    """What is known to be committed, at least."""


class WriteResult(NamedTuple):
    """What came of one turn of the disk; `snapshot` came from another voter and is whole now."""

    byte_count: int
    snapshot: Snapshot | None
    is_snapshot_given_up: bool
    """One was coming, and there was no room for it."""


class VoterDisk:
    """Synchronous, like all that works on disks. Only `save` may run beside `write`."""

    def __init__(self, files: Files, directory: str, *, reserve_bytes: int) -> None:
        self.journal = Journal(files, directory, reserve_bytes=reserve_bytes)
        self.snapshots = Snapshots(files, directory)
        self._files = files
        self._directory = directory
        self._intake = SnapshotIntake(files, directory)
        self._lock: Lock | None = None
        self._has_given_up = False
        self._is_closed = False

    def open(self) -> None:
        """Take hold of the folder. Raises ConsensusFailed."""
        try:
            self._files.make_directories(self._directory)
            self._lock = self._files.lock(f"{self._directory}/.lock")
            names = self._files.list_directory(self._directory)
        except BlockingIOError:
            raise ConsensusFailed(f"Another process uses the metadata journal in {self._directory}.") from None
        except OSError as error:
            raise ConsensusFailed(f"The metadata journal in {self._directory} cannot be opened: {error}.") from error
        # Apache Kafka keeps its metadata log in segments of record batches, with snapshots named as ours are.
        if any(name.endswith(".log") for name in names):
            raise ConsensusFailed(
                f"{self._directory} holds the metadata log of another system, Apache Kafka perhaps; this node cannot "
                "go on from it and needs a metadata log directory of its own."
            )

    def recover(self) -> RecoveredState:
        """Return what is there: the log behind the newest snapshot. Raises ConsensusFailed when it does not fit."""
        try:
            return self._recover()
        except OSError as error:
            raise ConsensusFailed(f"The metadata in {self._directory} cannot be read: {error}.") from error

    def _recover(self) -> RecoveredState:
        self.snapshots.remove_unfinished()
        snapshot = self.snapshots.latest()
        recovered = self.journal.recover()
        snapshot_end = 0 if snapshot is None else snapshot.end_offset
        if recovered.start_offset > snapshot_end or (snapshot is not None and self.journal.is_empty):
            raise ConsensusFailed(
                f"The metadata journal in {self._directory} does not fit its snapshot: the snapshot ends at offset "
                f"{snapshot_end}, the journal has {recovered.start_offset} to {recovered.end_offset}."
            )
        log = RaftLog(
            start_offset=recovered.start_offset,
            previous_epoch=recovered.previous_epoch,
            entries=recovered.entries,
            term=recovered.term,
            is_member=recovered.is_member,
        )
        if snapshot is not None:
            # One that came from the leader gets its name before the journal begins anew behind it.
            log.restart(snapshot.end_offset, snapshot.epoch)
        return RecoveredState(log, snapshot, max(recovered.commit_end, snapshot_end))

    def keep_voters(self, voter_ids: Collection[NodeId]) -> None:
        """After `recover`. Raises ConsensusFailed when the metadata here are kept by other voters than these."""
        try:
            keep_voters(self._files, self._directory, voter_ids, has_metadata=not self.journal.is_empty)
        except OSError as error:
            raise ConsensusFailed(f"The voters cannot be noted in {self._directory}: {error}.") from error

    def write(
        self, work: Sequence[SnapshotWork], jobs: Sequence[Callable[[], object]], items: Sequence[JournalItem]
    ) -> WriteResult:
        """Do all of it, in this order, durably. Raises ConsensusFailed, and then nothing may be written any more.

        A snapshot for which there is no room (the journal has a reserve, this has none), or that cannot be read back,
        is given up, and may come again.
        """
        self._check_open()
        try:
            snapshot, is_given_up = self._take_in(work)
            for job in jobs:
                job()
            return WriteResult(self.journal.write(items) if items else 0, snapshot, is_given_up)
        except OSError as error:
            raise ConsensusFailed(f"The metadata in {self._directory} cannot be written: {error}.") from error

    def _take_in(self, work: Sequence[SnapshotWork]) -> tuple[Snapshot | None, bool]:
        snapshot = None
        try:
            for piece in work:
                snapshot = self._intake.execute(piece)
        except OSError as error:
            # Also where what was just written cannot be read back.
            if not (is_passing(error) or isinstance(error, ReadError)):
                raise
            self._intake.give_up()
            if not self._has_given_up:
                self._has_given_up = True
                logger.error("Failed to store the leader's metadata snapshot: error=%s", error)
            return None, True
        if snapshot is not None:
            self._has_given_up = False
        return snapshot, False

    def begin_snapshot(self, *, end_offset: int, epoch: ControllerEpoch) -> SnapshotWriter:
        """Return where a snapshot of this voter's own state goes. Raises ConsensusFailed, OSError."""
        self._check_open()
        return SnapshotWriter(self._files, self._directory, end_offset=end_offset, epoch=epoch)

    def close(self) -> None:
        """Write nothing any more, and let go of the folder."""
        self._is_closed = True
        self.journal.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _check_open(self) -> None:
        if self._is_closed:
            raise ConsensusFailed(f"The metadata in {self._directory} is closed.")
