"""One partition's log on one disk: appended to at its end, read by offset and by time, cut at both ends.

Kafka: `UnifiedLog`, `LocalLog`.

A log belongs to one thread, the event loop's; only the syncs that `files_to_sync` names may run in an executor, while
appends go on. Every change is one synchronous step.

Errors: KafkaError goes to the client; CorruptData and OSError are the disk's, and the owner of the log directory
decides what they mean for it (`disk_errors.py`). An append that ends in an error has changed nothing.
"""

from collections.abc import Sequence
from random import Random
from typing import Final

from ...protocol.batches import (
    ASSIGNED_SIZE,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    rewrite_header,
    with_offset_and_epoch,
)
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import LeaderEpoch, TopicId
from ..disk.disk_room import DiskRoom
from ..disk.files import Files
from .leader_epochs import LeaderEpochs, read_leader_epochs
from .leftover_files import tidy
from .offset_index import MAX_RELATIVE_OFFSET
from .partition_metadata import agree_on_topic_id, read_topic_id
from .producer_snapshots import ProducerSnapshots
from .reading import ReadableLog
from .recovery import LoadedLog, load, make_folder
from .recovery_point import Syncable
from .replay import apply_batch, replay_batch
from .rules.append_info import AppendInfo
from .rules.batch_validation import validate_batch, validate_coordinator_batch
from .rules.config import LogConfig
from .rules.control_records import read_end_transaction_marker
from .rules.file_names import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA
from .rules.producer_state import EndTransactionMarker, ProducerState
from .rules.record_batch import ProducedBatch, StoredBatch, ValidatedBatch
from .rules.record_validation import recompress
from .rules.replicated_batches import check_replicated_batches
from .rules.transaction_verification import TransactionVerification
from .segment_split import OffsetOverflow, split_segment
from .segments import Segments

DEFAULT_PRODUCER_ID_EXPIRATION_MS: Final = 24 * 3600 * 1000
_RUN_BYTES: Final = 256 * 1024
"""Of a leader's batches, written at once; a batch may take it further."""


class Log(ReadableLog):
    __slots__ = ()

    @classmethod
    def open(
        cls,
        files: Files,
        directory: str,
        *,
        topic: str,
        partition: int,
        topic_id: TopicId | None,
        config: LogConfig,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        cleaned_end: int = 0,
        is_clean: bool,
        now_ms: int,
        producer_id_expiration_ms: int = DEFAULT_PRODUCER_ID_EXPIRATION_MS,
        random: Random | None = None,
        is_identified: bool = False,
        is_synced_next: bool = False,
        room: DiskRoom | None = None,
    ) -> "Log":
        """Open the log in `directory`, or make an empty one there that begins at `log_start_offset`.

        `is_clean` tells that the log was ended by `close`; else it is recovered from `recovery_point` on. What is lost
        below that point is told by `damage`. Below `cleaned_end` compaction may have left gaps. `random` is for
        `segment.jitter.ms`. KafkaError INCONSISTENT_TOPIC_ID when the folder is another topic's; `is_identified` tells
        that it is known to be of `topic_id`, `is_synced_next` that the caller syncs a log that `needs_sync` at once.
        `room` is asked before each append.

        Nothing of a new log is synced: that a partition exists is what the metadata says, its folder may be lost until
        something that was acknowledged is to last in it. The first sync of the log covers the folder and its name too.
        """
        is_new = not is_identified and not files.exists(directory)
        if is_new:
            make_folder(files, directory)
        names = [] if is_new else tidy(files, directory)
        found = None
        if not is_identified:
            found = read_topic_id(files, directory) if PARTITION_METADATA in names else None
            topic_id = agree_on_topic_id(files, directory, topic_id, found=found)
        epochs = read_leader_epochs(files, directory) if LEADER_EPOCH_CHECKPOINT in names else None
        may_split = True
        while True:
            loaded = LoadedLog(
                files=files,
                directory=directory,
                names=frozenset(names),
                config=config,
                now_ms=now_ms,
                segments=Segments(files, directory, random),
                producers=ProducerState(f"{topic}-{partition}", producer_id_expiration_ms),
                snapshots=ProducerSnapshots(files, directory, []),
                leader_epochs=LeaderEpochs(epochs or ()),
                written_epochs=epochs,
                is_new=is_new,
                log_start_offset=log_start_offset,
                recovery_point=log_start_offset if is_new else recovery_point,
                cleaned_end=cleaned_end,
                may_split=may_split,
            )
            try:
                load(loaded, is_clean=is_clean)
                break
            except OffsetOverflow as error:
                loaded.segments.close()
                may_split = split_segment(files, directory, error, protected_end=loaded.protected_end)
                names = tidy(files, directory)
                is_clean = False
        if not is_identified and found is None:
            loaded.is_folder_synced = False
        log = cls(loaded, topic=topic, partition=partition, topic_id=topic_id, room=room)
        if not is_synced_next:
            log._recovery_point.sync_cut()
        return log

    def identify(self, topic_id: TopicId) -> None:
        """Write down whose log this is when a power loss took that. KafkaError INCONSISTENT_TOPIC_ID."""
        self._recovery_point.forget_folder_sync()
        self.topic_id = agree_on_topic_id(self._files, self.directory, topic_id, found=self.topic_id)
        if self.log_end_offset > 0:
            # It counts as synced already: that it does not begin at 0 was found in the names of its files.
            self._recovery_point.sync_folder()

    @property
    def recovery_point(self) -> int:
        """Everything below is synced."""
        return self._recovery_point.offset

    @property
    def unflushed_records(self) -> int:
        """Offsets appended and not known to be synced: what `flush.messages` limits."""
        return self.log_end_offset - self._recovery_point.offset

    @property
    def needs_sync(self) -> bool:
        """Whether recovery found, or cut off, what may not be on the disk."""
        return self.damage is None and (self.unflushed_records > 0 or not self._recovery_point.is_cut_synced)

    # Appending

    def append_as_leader(
        self,
        batch: ProducedBatch,
        *,
        leader_epoch: int,
        now_ms: int,
        appended_ms: int | None = None,
        verification: TransactionVerification | None = None,
    ) -> AppendInfo:
        """Append the one batch of a produce request at the log end offset, its bytes as received if the config lets it.

        `now_ms` is for timestamps, `appended_ms` by the clock of `producers.expire`, here and in the other appends.
        All of it is done or nothing. A batch that its producer sent before is not appended: the answer is that of the
        first time. The first of a transaction brings what `begin_verification` gave. KafkaError by the table of
        `batch_validation` and those of `ProducerState.check`; RECORD_LIST_TOO_LARGE when it is larger than a segment;
        KAFKA_STORAGE_ERROR when the log is damaged, or the disk has no room for more than its reserve.
        """
        if self.damage is not None or self._is_closed:
            raise self._refusal()
        config = self._config
        validated = validate_batch(batch, config, self.name, now_ms)
        header = validated.header
        if self._codec is not None and self._codec != header.attributes & 7:
            validated = recompress(validated, config, self.name)
            header = validated.header
        if header.batch_length + LENGTH_OVERHEAD > config.segment_bytes:
            raise self._too_large(header.size_bytes)
        if header.producer_id >= 0:
            duplicate = self.producers.check(header, self.log_end_offset, verification)
            if duplicate is not None:
                return AppendInfo(
                    duplicate.first_offset, duplicate.last_offset, duplicate.timestamp, self.log_start_offset, True
                )
        return self._append(validated, leader_epoch, now_ms, now_ms if appended_ms is None else appended_ms)

    def append_of_coordinator(
        self,
        batch: bytes,
        *,
        leader_epoch: int,
        now_ms: int,
        appended_ms: int | None = None,
        verification: TransactionVerification | None = None,
        transaction_version: int = 0,
    ) -> AppendInfo:
        """Append a batch that this node has made: what a coordinator remembers, or the end of a transaction.

        It has no sequence, and its records are not validated again. What is remembered in a transaction brings what
        `begin_verification` gave; the end is judged by the rules of `transaction_version`. All of it is done or
        nothing. KafkaError as `ProducerState.check_epoch` and `check_marker` have it, MESSAGE_TOO_LARGE for what is
        remembered, RECORD_LIST_TOO_LARGE, KAFKA_STORAGE_ERROR.
        """
        if self.damage is not None or self._is_closed:
            raise self._refusal()
        config = self._config
        validated = validate_coordinator_batch(batch, config, self.name)
        header = validated.header
        if self._codec is not None and self._codec != header.compression and not header.is_control:
            validated = recompress(validated, config, self.name)
            header = validated.header
        if header.size_bytes > config.segment_bytes:
            raise self._too_large(header.size_bytes)
        offset = self.log_end_offset
        marker: EndTransactionMarker | None = None
        if header.is_control:
            marker = read_end_transaction_marker(validated.data, header)
            assert marker is not None, "a marker of ours has its record"
            self.producers.check_marker(header, offset, marker.coordinator_epoch, transaction_version)
        elif header.has_producer_id:
            self.producers.check_epoch(header, offset, verification)
        return self._append(validated, leader_epoch, now_ms, now_ms if appended_ms is None else appended_ms, marker)

    def _append(
        self,
        batch: ValidatedBatch,
        leader_epoch: int,
        now_ms: int,
        appended_ms: int,
        marker: EndTransactionMarker | None = None,
    ) -> AppendInfo:
        """Appends one batch as the leader: gives it its offset, epoch and log append time."""
        data, header = batch
        size = len(data)
        if self._room is not None and not self._room.take(size):
            raise self._no_room()
        config = self._config
        first_offset = self.log_end_offset
        last_offset = first_offset + header.last_offset_delta
        parts: tuple[Buffer, ...]
        if config.message_timestamp_type == "LogAppendTime":
            timestamp = log_append_time_ms = now_ms
            parts = (
                rewrite_header(
                    data, 0, header, base_offset=first_offset, leader_epoch=leader_epoch, log_append_time_ms=now_ms
                ),
                data[HEADER_SIZE:],
            )
        else:
            timestamp = header.max_timestamp
            log_append_time_ms = NO_TIMESTAMP
            parts = (with_offset_and_epoch(first_offset, header.batch_length, leader_epoch), data[ASSIGNED_SIZE:])
        segment = self._segments.active
        if segment.should_roll(config, size, last_offset, timestamp, now_ms):
            segment = self._roll(first_offset, now_ms)
        segment.append(parts, size, last_offset, timestamp)
        self._on_written(header, first_offset, leader_epoch)
        if header.producer_id >= 0:
            apply_batch(header, first_offset, timestamp, marker, self.producers, appended_ms, segment)
        # What `AppendInfo` does, without its detour through Python.
        return tuple.__new__(AppendInfo, (first_offset, last_offset, log_append_time_ms, self.log_start_offset, False))

    def append_as_follower(
        self,
        records: bytes | memoryview,
        *,
        now_ms: int,
        appended_ms: int | None = None,
        leader_epoch: int | None = None,
    ) -> AppendInfo:
        """Append batches as the leader has them, offsets and epochs included; a batch cut off at the end is left out.

        With `leader_epoch`, that of the leader, none of a later epoch is appended; see `check_replicated_batches`.

        The first must not be below the log end offset; KafkaError CORRUPT_MESSAGE when it is, or a batch is not intact,
        and KAFKA_STORAGE_ERROR as for a leader.
        """
        if self.damage is not None or self._is_closed:
            raise self._refusal()
        batches = check_replicated_batches(
            memoryview(records), self.log_end_offset, self.name, leader_epoch=leader_epoch
        )
        first_offset = batches[0].header.base_offset if batches else self.log_end_offset
        if self._room is not None and not self._room.take(len(records)):
            raise self._no_room()
        while batches:
            batches = self._append_run(batches, now_ms, now_ms if appended_ms is None else appended_ms)
        return AppendInfo(first_offset, self.log_end_offset - 1, NO_TIMESTAMP, self.log_start_offset, False)

    def _append_run(self, batches: list[StoredBatch], now_ms: int, appended_ms: int) -> list[StoredBatch]:
        """Appends in one write as many of these batches as go into one segment; returns the rest."""
        config = self._config
        segment = self._segments.active
        run_bytes = count = 0
        for batch in batches:
            header = batch.header
            size = run_bytes + header.size_bytes
            if segment.should_roll(config, size, header.last_offset, header.max_timestamp, now_ms):
                if count:
                    break
                segment = self._roll(self._base_offset_for(header), now_ms)
            run_bytes = size
            count += 1
            if run_bytes >= _RUN_BYTES:
                break
        run = batches[:count]
        start = run[0].offset_in_buffer
        segment.append_run(run[0].buffer[start : start + run_bytes], [batch.header for batch in run])
        for batch in run:
            header = batch.header
            self._on_written(header, header.base_offset, header.partition_leader_epoch)
            replay_batch(batch, self.producers, appended_ms, segment)
        return batches[count:]

    def _on_written(self, header: BatchHeader, base_offset: int, leader_epoch: int) -> None:
        """A batch is in the active segment, at `base_offset`: log end offset and leader epochs follow."""
        self.log_end_offset = base_offset + header.last_offset_delta + 1
        if leader_epoch != self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(leader_epoch, base_offset)

    def _base_offset_for(self, header: BatchHeader) -> int:
        """Of a segment that begins with this batch: the log end offset, though a compacted log may have a gap there.

        Between two segments recovery would take it for batches that a loss of power took.
        """
        is_far = header.last_offset - self.log_end_offset > MAX_RELATIVE_OFFSET
        return header.base_offset if is_far else self.log_end_offset

    def assign_leader_epoch(self, leader_epoch: LeaderEpoch) -> None:
        """This replica leads from `leader_epoch` on: it starts at the log end offset. Before the first append in it."""
        if leader_epoch > self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(leader_epoch, self.log_end_offset)

    def repair_snapshot(self, offset: int) -> None:
        """The producer snapshot at `offset` is not intact. OSError.

        One before it, and the batches, say the same, but where the log begins on this disk: there it is made of what
        this process knows, as for a replica that begins there.
        """
        if offset > self.first_segment_base_offset:
            self._snapshots.remove(offset)
        else:
            self._snapshots.replace(offset, self.producers.below(offset, aborted=self.aborted_since(offset)))

    # Syncing

    def files_to_sync(self, end_offset: int) -> Sequence[Syncable]:
        """What must be synced before `mark_flushed(end_offset)`. One sync of a log at a time."""
        # It may have been asked for before the log was cut below.
        return self._recovery_point.files_to_sync(min(end_offset, self.log_end_offset))

    def mark_flushed(self, end_offset: int) -> None:
        """All of `files_to_sync(end_offset)` was synced: the recovery point moves there."""
        self._recovery_point.mark_flushed(end_offset)

    def flush(self) -> None:
        """Sync everything, waiting."""
        self.flush_to(self.log_end_offset)

    def sync_records(self) -> None:
        """Sync the batches, waiting, on a disk too full for what the recovery point needs beside them: it stays."""
        self._recovery_point.sync_records(self.log_end_offset)

    def flush_to(self, end_offset: int) -> None:
        for file in self.files_to_sync(end_offset):
            file.sync()
        self.mark_flushed(end_offset)

    def sync_folder(self) -> None:
        """Sync the folder's name and whose it is, waiting: before something else rests on it."""
        if not self.is_folder_synced:
            self._recovery_point.sync_folder()

    # Ending

    def close(self) -> None:
        """Write what opening would else have to find out, sync everything, waiting, and let go of the files."""
        for file in self.files_to_close():
            file.sync()
        self.mark_flushed(self.log_end_offset)
        self.close_files()

    def files_to_close(self) -> Sequence[Syncable]:
        """Write what opening would else have to find out. What must be synced then, in that order, before
        `mark_flushed(log_end_offset)` and `close_files`. OSError; CorruptData when an index cannot be made anew.
        """
        end_offset = self.log_end_offset
        indexes: Sequence[Syncable] = ()
        if self.damage is None:
            self.swap.settle()
            indexes = self._segments.active.indexes_to_sync()
        # One without a batch has nothing to lose but its folder, which is made anew; so idle ones cost no sync.
        is_idle = (
            end_offset == 0
            and not indexes
            and (self.damage is not None or self._recovery_point.unwritten_epochs(0) is None)
        )
        files = () if is_idle else self._recovery_point.files_to_sync(end_offset, indexes)
        if self.damage is None:
            # Its CRC tells whether it is there: it is not synced.
            self.producers.end_offset = end_offset
            self._snapshots.take(self.producers)
        return files

    def close_files(self) -> None:
        """Let go of the files without writing: for a log directory that failed. The log takes nothing in any more, and
        is not cut."""
        self._is_closed = True
        self._segments.close()
        for segment in self._beyond_damage:
            segment.close()

    def rename_directory(self, directory: str) -> None:
        """Move the whole folder, as to `….-delete`: it is closed first."""
        self.close_files()
        self._rename(directory)

    def become(self, directory: str, replaced: "Log") -> None:
        """Take the place of `replaced`, of which this is a complete copy, and the name `directory` for the folder.

        It has been flushed at least as far as `replaced`. The next flush makes the new name last. OSError leaves both
        as they were.
        """
        # What is in memory only would go with the names of the files.
        self._segments.active.write_indexes()
        self._rename(directory)
        # Until the new name is synced a loss of power may bring `replaced` back, with what was synced there.
        self._recovery_point.forget_folder_sync()
        self._recovery_point.lower_to(replaced.recovery_point)
        self.producers = replaced.producers
        self.leader_epochs.adopt(replaced.leader_epochs)
        self.increment_log_start_offset(replaced.log_start_offset)

    def end_in_gap(self, offset: int, now_ms: int) -> None:
        """Go on at `offset`: compaction has taken all that was before it out of the log that this is a copy of."""
        if offset > self.log_end_offset:
            self._roll(offset, now_ms)
            self.log_end_offset = offset

    def _rename(self, directory: str) -> None:
        self._files.rename(self.directory, directory)
        self._snapshots.directory = directory
        self._segments.moved_to(directory)
        for segment in self._beyond_damage:
            segment.moved_to(directory)

    # Helpers

    def _refusal(self) -> KafkaError:
        if self.damage is not None:
            return self.damage.refusal(self.name)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The log of partition {self.name} is closed.")

    def _no_room(self) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The disk of {self.directory} has no room for more records.")

    def _too_large(self, size: int) -> KafkaError:
        return KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"Message batch size is {size} bytes in append to partition {self.name}, which exceeds the maximum "
            f"configured segment size of {self._config.segment_bytes}.",
        )
