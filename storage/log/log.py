"""One partition's log on one disk: appended to at its end, read by offset and by time, cut at both ends.

A log belongs to one thread, the event loop's; only the syncs that `files_to_sync` names may run in an executor, while
appends go on. Every change is one synchronous step.

Errors: KafkaError goes to the client; CorruptData and OSError are the disk's, and the owner of the log directory
decides what they mean for it (`disk_errors.py`). An append that ends in an error has changed nothing.
"""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Final
from uuid import UUID

from ...protocol.batches import (
    ASSIGNED_SIZE,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    read_header,
    rewrite_header,
    with_offset_and_epoch,
)
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ..disk.disk_room import DiskRoom
from ..disk.files import Files
from ..disk.rules.disk_errors import ClosedError, is_passing
from .file_slice import NOTHING, FetchData
from .leader_epochs import LeaderEpochs, read_leader_epochs
from .leftover_files import tidy
from .offset_index import MAX_RELATIVE_OFFSET
from .partition_metadata import agree_on_topic_id, read_topic_id
from .producer_snapshots import ProducerSnapshots
from .recovery import Damage, LoadedLog, load, make_folder
from .recovery_point import RecoveryPoint, Syncable
from .replay import replay_batch, replay_segments
from .replicated_batches import check_replicated_batches
from .retention import count_breached_segments
from .rules.append_info import AppendInfo
from .rules.batch_validation import check_produced_batch, message_too_large
from .rules.config import LogConfig
from .rules.control_records import read_end_transaction_marker
from .rules.file_names import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA
from .rules.producer_entry import ProducerEntry
from .rules.producer_state import ProducerState
from .rules.record_validation import CODECS, recompress
from .rules.transaction_verification import TransactionVerification
from .segment import Segment
from .segment_scan import ScannedBatch
from .segments import Segments
from .timestamp_lookup import TimestampOffset, find_by_timestamp, find_max_timestamp
from .transaction_index import AbortedTransaction

DEFAULT_PRODUCER_ID_EXPIRATION_MS: Final = 24 * 3600 * 1000
_RUN_BYTES: Final = 256 * 1024
"""Of a leader's batches, written at once; a batch may take it further."""

_DELETED_AT_ONCE: Final = 10
"""Segments of a log with producers. Each may cost two syncs, which are waited for."""


class Log:
    __slots__ = (
        "_beyond_damage",
        "_codec",
        "_config",
        "_files",
        "_is_closed",
        "_known_at_cut",
        "_recovery_point",
        "_room",
        "_segments",
        "_snapshots",
        "damage",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "name",
        "partition",
        "producers",
        "topic",
        "topic_id",
    )

    def __init__(
        self, loaded: LoadedLog, *, topic: str, partition: int, topic_id: UUID | None, room: DiskRoom | None
    ) -> None:
        """Use `open`."""
        self.topic = topic
        self.partition = partition
        self.name = f"{topic}-{partition}"
        self.topic_id = topic_id
        self._files = loaded.files
        self._is_closed = False
        self._room = room
        self._segments = loaded.segments
        self._beyond_damage = loaded.beyond_damage
        self.producers = loaded.producers
        # Since when producers were idle before a cut that failed: until one succeeds nothing tells it.
        self._known_at_cut: dict[int, int] | None = None
        self._snapshots = loaded.snapshots
        self.leader_epochs = loaded.leader_epochs
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.next_offset
        self.damage: Damage | None = loaded.damage
        self._recovery_point = RecoveryPoint(
            loaded.files,
            loaded.segments,
            loaded.snapshots,
            loaded.leader_epochs,
            loaded.recovery_point,
            written_epochs=loaded.written_epochs or (),
            is_folder_synced=loaded.is_folder_synced,
        )
        self.config = loaded.config

    @classmethod
    def open(
        cls,
        files: Files,
        directory: str,
        *,
        topic: str,
        partition: int,
        topic_id: UUID | None,
        config: LogConfig,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        cleaned_end: int = 0,
        is_clean: bool,
        now_ms: int,
        producer_id_expiration_ms: int = DEFAULT_PRODUCER_ID_EXPIRATION_MS,
        random: Random | None = None,
        is_identified: bool = False,
        room: DiskRoom | None = None,
    ) -> "Log":
        """Open the log in `directory`, or make an empty one there that begins at `log_start_offset`.

        `is_clean` tells that the log was ended by `close`; else it is recovered from `recovery_point` on. What is lost
        below that point is told by `damage`. Below `cleaned_end` compaction may have left gaps. `random` is for
        `segment.jitter.ms`. KafkaError INCONSISTENT_TOPIC_ID when the folder is another topic's; `is_identified` tells
        that it is known to be of `topic_id`. `room` is asked before each append.

        Nothing of a new log is synced: that a partition exists is what the metadata says, its folder may be lost until
        something that was acknowledged is to last in it. The first sync of the log covers the folder and its name too.
        """
        is_new = not files.exists(directory)
        if is_new:
            make_folder(files, directory)
        names = [] if is_new else tidy(files, directory)
        found = None
        if not is_identified:
            found = read_topic_id(files, directory) if PARTITION_METADATA in names else None
            topic_id = agree_on_topic_id(files, directory, topic_id, found=found)
        epochs = read_leader_epochs(files, directory) if LEADER_EPOCH_CHECKPOINT in names else None
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
        )
        load(loaded, is_clean=is_clean)
        if not is_identified and found is None:
            loaded.is_folder_synced = False
        return cls(loaded, topic=topic, partition=partition, topic_id=topic_id, room=room)

    def identify(self, topic_id: UUID) -> None:
        """Write down whose log this is when a power loss took that. KafkaError INCONSISTENT_TOPIC_ID."""
        self._recovery_point.forget_folder_sync()
        self.topic_id = agree_on_topic_id(self._files, self.directory, topic_id, found=self.topic_id)
        if self.log_end_offset > 0:
            # It counts as synced already: that it does not begin at 0 was found in the names of its files.
            self._recovery_point.sync_folder()

    @property
    def directory(self) -> str:
        return self._segments.directory

    @property
    def config(self) -> LogConfig:
        """May be replaced at any time; it holds from the next append on."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        # The compression to store, when it is not the producer's choice.
        self._codec = CODECS.get(config.compression_type)

    @property
    def recovery_point(self) -> int:
        """Everything below is synced."""
        return self._recovery_point.offset

    @property
    def is_folder_synced(self) -> bool:
        """Whether the folder, and whose it is, survives a loss of power. The first `flush` sees to that."""
        return self._recovery_point.is_folder_synced

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def first_segment_base_offset(self) -> int:
        return self._segments[0].base_offset

    @property
    def active_segment_base_offset(self) -> int:
        return self._segments.active.base_offset

    def segment_base_offset_of(self, offset: int) -> int:
        """Where the segment begins that `offset` lies in; 0 when it lies below all."""
        base_offset = self._segments[self._segments.slot_of(offset)].base_offset
        return base_offset if base_offset <= offset else 0

    @property
    def unflushed_records(self) -> int:
        """Offsets appended and not known to be synced: what `flush.messages` limits."""
        return self.log_end_offset - self._recovery_point.offset

    # Appending

    def append_as_leader(
        self,
        records: Buffer,
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
        batch = records if type(records) is memoryview else memoryview(records)
        config = self._config
        header = check_produced_batch(batch, config, self.name, now_ms)
        if self._codec is not None and self._codec != header.attributes & 7:
            batch = recompress(batch, header, config, self.name)
            header = read_header(batch, 0)
        size = LENGTH_OVERHEAD + header.batch_length
        if size > config.segment_bytes:
            raise self._too_large(size)
        first_offset = self.log_end_offset
        last_offset = first_offset + header.last_offset_delta
        has_append_time = config.message_timestamp_type == "LogAppendTime"
        if header.producer_id >= 0:
            duplicate = self.producers.check(header, first_offset, verification)
            if duplicate is not None:
                return AppendInfo(
                    duplicate.first_offset, duplicate.last_offset, duplicate.timestamp, self.log_start_offset, True
                )
        if self._room is not None and not self._room.take(size):
            raise self._no_room()
        parts: tuple[Buffer, ...]
        if has_append_time:
            timestamp = log_append_time_ms = now_ms
            parts = (
                rewrite_header(
                    batch, 0, header, base_offset=first_offset, leader_epoch=leader_epoch, log_append_time_ms=now_ms
                ),
                batch[HEADER_SIZE:size],
            )
        else:
            timestamp = header.max_timestamp
            log_append_time_ms = NO_TIMESTAMP
            parts = (
                with_offset_and_epoch(first_offset, header.batch_length, leader_epoch),
                batch[ASSIGNED_SIZE:size],
            )
        segment = self._segments.active
        if segment.should_roll(config, size, last_offset, timestamp, now_ms):
            segment = self._roll(first_offset, now_ms)
        segment.append(parts, size, last_offset, timestamp)
        self.log_end_offset = last_offset + 1
        if leader_epoch != self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(leader_epoch, first_offset)
        if header.producer_id >= 0:
            self.producers.apply(header, first_offset, timestamp, now_ms if appended_ms is None else appended_ms)
        return AppendInfo(first_offset, last_offset, log_append_time_ms, self.log_start_offset, False)

    def append_of_coordinator(
        self,
        batch: Buffer,
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
        header = read_header(batch, 0)
        if not header.is_control:
            if header.size_bytes > self._config.max_message_bytes:
                raise message_too_large(header.size_bytes, self._config, self.name)
            if self._codec is not None and self._codec != header.compression:
                batch = recompress(memoryview(batch), header, self._config, self.name)
                header = read_header(batch, 0)
        if header.size_bytes > self._config.segment_bytes:
            raise self._too_large(header.size_bytes)
        offset = self.log_end_offset
        if header.is_control:
            marker = read_end_transaction_marker(batch, header)
            assert marker is not None, "a marker of ours has its record"
            self.producers.check_marker(header, offset, marker.coordinator_epoch, transaction_version)
        elif header.has_producer_id:
            self.producers.check_epoch(header, offset, verification)
        if self._room is not None and not self._room.take(header.size_bytes):
            raise self._no_room()
        if self._config.message_timestamp_type == "LogAppendTime":
            start = rewrite_header(
                batch, 0, header, base_offset=offset, leader_epoch=leader_epoch, log_append_time_ms=now_ms
            )
        else:
            start = with_offset_and_epoch(offset, header.batch_length, leader_epoch)
        stored = memoryview(start + batch[len(start) :])
        located = read_header(stored, 0)
        self._append_run([ScannedBatch(0, located, stored, 0)], now_ms, appended_ms)
        return AppendInfo(offset, located.last_offset, NO_TIMESTAMP, self.log_start_offset, False)

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
            batches = self._append_run(batches, now_ms, appended_ms)
        return AppendInfo(first_offset, self.log_end_offset - 1, NO_TIMESTAMP, self.log_start_offset, False)

    def _append_run(self, batches: list[ScannedBatch], now_ms: int, appended_ms: int | None) -> list[ScannedBatch]:
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
            self.log_end_offset = header.next_offset
            if header.partition_leader_epoch != self.leader_epochs.latest_epoch:
                self.leader_epochs.assign(header.partition_leader_epoch, header.base_offset)
            replay_batch(batch, self.producers, now_ms if appended_ms is None else appended_ms, segment)
        return batches[count:]

    def _base_offset_for(self, header: BatchHeader) -> int:
        """Of a segment that begins with this batch: the log end offset, though a compacted log may have a gap there.

        Between two segments recovery would take it for batches that a loss of power took.
        """
        is_far = header.last_offset - self.log_end_offset > MAX_RELATIVE_OFFSET
        return header.base_offset if is_far else self.log_end_offset

    def assign_leader_epoch(self, leader_epoch: int) -> None:
        """This replica leads from `leader_epoch` on: it starts at the log end offset. Before the first append in it."""
        if leader_epoch > self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(leader_epoch, self.log_end_offset)

    # Reading

    def read(self, start_offset: int, *, max_bytes: int, end_offset: int, min_one_batch: bool) -> FetchData:
        """Batches from the one that holds `start_offset` on, none that ends at or after `end_offset`, of one segment.

        At most `max_bytes`, possibly cut off within a batch, but never within the first: that comes whole with
        `min_one_batch`, and else not at all.
        KafkaError OFFSET_OUT_OF_RANGE when `start_offset` is not in [log start offset, log end offset].
        """
        log_end_offset = self.log_end_offset
        if start_offset > log_end_offset or start_offset < self.log_start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {start_offset} for partition {self.name}, but we only have log segments "
                f"from {self.log_start_offset} upto {log_end_offset}.",
            )
        if start_offset >= end_offset or start_offset == log_end_offset:
            return NOTHING
        return self._segments.read(
            start_offset, end_offset, log_end_offset, max_bytes=max_bytes, min_one_batch=min_one_batch
        )

    def check(self, offset: int, size: int) -> None:
        """Read `size` bytes of batches from `offset` on, waiting, and check each. CorruptData, OSError."""
        self._segments.check(offset, size)

    def offset_for_timestamp(self, timestamp_ms: int, end_offset: int) -> TimestampOffset | None:
        """The first record below `end_offset` whose timestamp is at least `timestamp_ms`."""
        found = find_by_timestamp(
            self._segments.from_slot(self._segments.slot_of(self.log_start_offset)), timestamp_ms, self.log_start_offset
        )
        return found if found is not None and found.offset < end_offset else None

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the largest timestamp of all (KIP-734)."""
        return find_max_timestamp(self._segments)

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that have records in [start_offset, end_offset)."""
        return self._segments.aborted_transactions(start_offset, end_offset)

    def aborted_transactions_in(self, data: FetchData, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Those that have records in `data`, which was just read from `start_offset` up to `end_offset`, and maybe a
        few behind it, not the whole index for a reader far from the end."""
        return self.aborted_transactions(start_offset, self._segments.end_of(data, start_offset, end_offset))

    def last_stable_offset(self, high_watermark: int) -> int:
        """What a read_committed consumer may read up to: at most the high watermark."""
        return max(self.producers.last_stable_offset(high_watermark), self.log_start_offset)

    # Cutting

    def truncate_to(self, offset: int) -> bool:
        """Drop everything at and above `offset`; whether there was anything. This ends a damage: the cut is a decision.

        A batch that reaches over `offset` goes as a whole, and the log ends before it. The checkpointed recovery point
        must not be above `offset` when this begins, or a crash in it looks like damage. OSError or CorruptData leave
        the log damaged at `offset`: it takes nothing in until it is cut again.
        """
        self._check_open()
        if offset >= self.log_end_offset and self.damage is None:
            # A leader that never appended leaves its epoch at the end.
            self.leader_epochs.truncate_from_end(self.log_end_offset)
            return False
        if self.damage is not None:
            offset = min(offset, self.damage.offset)
        is_empty = self.damage is not None and self.log_start_offset == self.log_end_offset
        if is_empty or offset < self._segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        try:
            self._cut_to(offset)
        except (OSError, CorruptData) as error:
            # The file may be shorter by now than what is known of it.
            offset = min(offset, self.log_end_offset)
            self._end_at(offset)
            self.leader_epochs.truncate_from_end(offset)
            self.damage = Damage(offset=offset, reason=f"it could not be cut there: {error}")
            raise
        return True

    def _cut_to(self, offset: int) -> None:
        self._heal()
        first = self._segments.slot_of(offset) + 1
        for segment in self._segments.delete(first, len(self._segments), due_ms=0):
            self._snapshots.remove(segment.base_offset)
        self._segments.active.truncate_to(offset)
        offset = self._segments.active.read_next_offset()
        self._end_at(offset)
        self.leader_epochs.truncate_from_end(offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self._reload_producers(offset)
        self._sync_cut()

    def truncate_fully_and_start_at(
        self, offset: int, producers: Iterable[ProducerEntry] = (), now_ms: int = 0
    ) -> None:
        """Drop everything; the log goes on at `offset`, and knows `producers`, who may have written below it.

        `now_ms` is by the clock of `producers.expire`. OSError or CorruptData leave the log damaged at 0, without a
        record: it takes nothing in until this, or `truncate_to`, is done again.
        """
        self._check_open()
        try:
            if self.damage is not None:
                self._segments.adopt(self._beyond_damage)
                self._beyond_damage = []
            self._segments.delete(0, len(self._segments), due_ms=0)
            self._begin_at(offset)
            self._snapshots.remove_all()
            self.producers.load(producers, {}, offset, now_ms)
            if self.producers.entries:
                # Before the log begins at `offset`: after that the leader is not asked for them again.
                self._snapshots.take(self.producers)
                self._snapshots.sync(offset)
            self._segments.create(offset, self._config, now_ms=0)
            self._sync_cut()
        except (OSError, CorruptData) as error:
            # Where the leader has nothing, unless it never deleted a record: else it is asked for its producers again.
            self._begin_at(0)
            self.damage = Damage(offset=0, reason=f"it could not be begun anew: {error}")
            if len(self._segments) == 0:
                # Its file is not made before it is used.
                self._segments.add(0, self._config, now_ms=0)
            raise
        self.damage = None

    def _begin_at(self, offset: int) -> None:
        """There is no record any more."""
        self._known_at_cut = None
        self._end_at(offset)
        self.leader_epochs.clear()
        self.log_start_offset = offset
        self.producers.clear(offset)

    def increment_log_start_offset(self, offset: int) -> bool:
        """Nothing below `offset` may be read any more; `delete_old_segments` removes the segments that this leaves.

        False when the log starts there or later already. KafkaError OFFSET_OUT_OF_RANGE above the log end offset; that
        it is not above the high watermark is the caller's to check.
        """
        if offset > self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset to {offset} of partition {self.name} since it is larger than "
                f"the log end offset {self.log_end_offset}",
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.leader_epochs.truncate_from_start(offset)
        return True

    def delete_old_segments(self, high_watermark: int, now_ms: int) -> int:
        """Apply retention and the log start offset; how many segments went: until it is 0 there may be more.

        Their files are `take_removable_files`. OSError and CorruptData leave what is left for the next time.
        """
        if self.damage is not None or self._is_closed:
            return 0
        count = count_breached_segments(
            self._segments.from_slot(0),
            self._config,
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            high_watermark=high_watermark,
            now_ms=now_ms,
        )
        if count == 0:
            return 0
        if count == len(self._segments):
            self._roll(self.log_end_offset, now_ms)
        if self.producers.entries:
            # The only record of the producers in the deleted segments, should a loss of power bring some of them back.
            known = 0
            while known < min(count, _DELETED_AT_ONCE) and self._snapshots.sync(self._segments[known + 1].base_offset):
                known += 1
            if known == 0 and not self._make_snapshot(now_ms):
                return 0
            count = max(known, 1)
        self.increment_log_start_offset(self._segments[count].base_offset)
        deleted = self._segments.delete(0, count, due_ms=now_ms + self._config.file_delete_delay_ms)
        if self.producers.entries:
            # A loss of power may take a renaming back, and not the removal of a snapshot.
            self._files.sync_directory(self.directory)
        for segment in deleted:
            self._snapshots.remove(segment.base_offset)
        return count

    def _make_snapshot(self, now_ms: int) -> bool:
        """Of the producers up to the second segment, where recovery had no room for it; of one segment in a call, as
        that is read."""
        first, base_offset = self._segments[0], self._segments[1].base_offset
        producers = ProducerState(self.name, self.producers.expiration_ms)
        self._snapshots.load_earlier(
            producers, start_offset=first.base_offset, end_offset=base_offset - 1, now_ms=now_ms
        )
        replay_segments([first], producers, base_offset, now_ms)
        # It may be there, and not be readable.
        self._snapshots.remove(base_offset)
        self._snapshots.take(producers)
        return self._snapshots.sync(base_offset)

    def take_removable_files(self, now_ms: int) -> list[str]:
        """Files of deleted segments whose `file.delete.delay.ms` is over: the caller removes them; it may take long."""
        return self._segments.take_removable_files(now_ms)

    def put_back_removable_files(self, paths: Sequence[str], due_ms: int) -> None:
        """They could not be removed, and are given out again from `due_ms` on."""
        self._segments.put_back_removable_files(paths, due_ms)

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

    def flush_if_room(self) -> None:
        """Sync everything, waiting; on a full disk the batches at least, and the recovery point stays."""
        try:
            self.flush()
        except OSError as error:
            if not is_passing(error):
                raise
            self._recovery_point.sync_records(self.log_end_offset)

    def flush_to(self, end_offset: int) -> None:
        for file in self.files_to_sync(end_offset):
            file.sync()
        self.mark_flushed(end_offset)

    # Ending

    def close(self) -> None:
        """Write what opening would else have to find out, and let go of the files. `flush` before it syncs the log."""
        if self.damage is None:
            self.producers.end_offset = self.log_end_offset
            self._snapshots.take(self.producers)
            self._sync_indexes()
            epochs = self._recovery_point.unwritten_epochs(self.log_end_offset)
            if epochs is not None:
                epochs.sync()
        self.close_files()

    def close_files(self) -> None:
        """Let go of the files without writing: for a log directory that failed. The log takes nothing in any more, and
        is not cut."""
        self._is_closed = True
        self._segments.close()
        for segment in self._beyond_damage:
            segment.close()

    def rename_directory(self, directory: str) -> None:
        """Move the whole folder, as to `….-delete`."""
        self.close_files()
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

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError(f"The log of partition {self.name} is closed.")

    def _no_room(self) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The disk of {self.directory} has no room for more records.")

    def _too_large(self, size: int) -> KafkaError:
        return KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"Message batch size is {size} bytes in append to partition {self.name}, which exceeds the maximum "
            f"configured segment size of {self._config.segment_bytes}.",
        )

    def _roll(self, base_offset: int, now_ms: int) -> Segment:
        active = self._segments.active
        if active.size_bytes == 0 and active.base_offset == base_offset:
            return active
        if self._recovery_point.offset >= base_offset:
            # Recovery will not look at this segment, so what it makes anew elsewhere must last here.
            self._sync_indexes()
        # With it, recovery of the new segment need not look at older ones.
        self.producers.end_offset = base_offset
        self._snapshots.take(self.producers)
        return self._segments.roll(base_offset, self._config, now_ms)

    def _sync_indexes(self) -> None:
        """Those of the active segment, with their names: without its name, an index of aborted transactions looks like
        one without any."""
        if self._segments.active.sync_indexes():
            self._files.sync_directory(self.directory)

    def _end_at(self, offset: int) -> None:
        self.log_end_offset = offset
        self._recovery_point.truncate_to(offset)

    def _sync_cut(self) -> None:
        """Were a loss of power to take the cut back, old batches would stand among those that are appended now."""
        active = self._segments.active
        active.file.sync()
        active.sync_indexes()
        self._files.sync_directory(self.directory)
        if not self.is_folder_synced:
            self._recovery_point.sync_folder()

    def _heal(self) -> None:
        """Before a cut: what lies beyond a damage is cut off with the rest."""
        if self.damage is not None:
            active = self._segments.active
            active.cut_at(active.size_bytes)
            self._segments.adopt(self._beyond_damage)
            self._beyond_damage = []
            self.damage = None

    def _reload_producers(self, end_offset: int) -> None:
        known = self._known_at_cut
        if known is None:
            known = {producer_id: entry.appended_ms for producer_id, entry in self.producers.entries.items()}
            if not known and not self.producers.completed:
                # Dropping batches cannot bring a producer in.
                self._snapshots.remove_above(end_offset)
                self.producers.clear(end_offset)
                return
        self._known_at_cut = known
        latest_ms = max(known.values(), default=0)
        self._snapshots.load_latest(
            self.producers, start_offset=self.first_segment_base_offset, end_offset=end_offset, now_ms=latest_ms
        )
        replay_segments(self._segments.from_slot(0), self.producers, end_offset, latest_ms)
        for producer_id, entry in self.producers.entries.items():
            entry.appended_ms = min(entry.appended_ms, known.get(producer_id, latest_ms))
        self._known_at_cut = None
