"""The segments, producers and leader epochs of one partition's log, and truncation at both ends.

Kafka: `UnifiedLog.truncateTo`, `truncateFullyAndStartAt`, `maybeIncrementLogStartOffset`, `deleteOldSegments`.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.ids import TopicId
from ..disk.disk_room import DiskRoom
from ..disk.rules.disk_errors import ClosedError
from .recovery import Damage, LoadedLog
from .recovery_point import RecoveryPoint
from .replay import replay_segments
from .retention import count_breached_segments
from .rules.config import MAX_INT64, LogConfig
from .rules.lowest_cut import LowestCut
from .rules.producer_entry import ProducerEntry
from .rules.producer_state import ProducerState
from .rules.record_validation import CODECS
from .rules.tiered_history import TieredHistory
from .segment import Segment
from .segment_swap import SegmentSwap

_DELETED_AT_ONCE: Final = 10
"""Segments of a log with producers. Each may cost two syncs, which are waited for."""


class TruncatableLog:
    """The state of a `Log`, which adds reads (`ReadableLog`), appends and syncs."""

    __slots__ = (
        "_beyond_damage",
        "_codec",
        "_config",
        "_files",
        "_is_closed",
        "_known_at_truncation",
        "_recovery_point",
        "_room",
        "_segments",
        "_snapshots",
        "_tiered_end_offset",
        "damage",
        "leader_epochs",
        "local_log_start_offset",
        "log_end_offset",
        "log_start_offset",
        "lowest_cut",
        "name",
        "partition",
        "producers",
        "swap",
        "topic",
        "topic_id",
    )

    def __init__(
        self, loaded: LoadedLog, *, topic: str, partition: int, topic_id: TopicId | None, room: DiskRoom | None
    ) -> None:
        """Use `Log.open`."""
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
        # Since when producers were idle before a truncation that failed: until one succeeds nothing tells it.
        self._known_at_truncation: dict[int, int] | None = None
        self._snapshots = loaded.snapshots
        self.swap = SegmentSwap(loaded.files, loaded.segments, loaded.snapshots)
        self.leader_epochs = loaded.leader_epochs
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.next_offset
        self.lowest_cut = LowestCut()
        # Below it, down to the log start offset, only a tier has the records (KIP-405).
        self.local_log_start_offset = self.log_start_offset
        self._tiered_end_offset = 0
        self.damage: Damage | None = loaded.damage
        self._recovery_point = RecoveryPoint(
            loaded.files,
            loaded.segments,
            loaded.snapshots,
            loaded.leader_epochs,
            loaded.recovery_point,
            written_epochs=loaded.written_epochs or (),
            is_folder_synced=loaded.is_folder_synced,
            is_cut_synced=loaded.is_cut_synced,
        )
        self.config = loaded.config
        self._note_local_start()

    def _note_local_start(self) -> None:
        first = self._segments[0].base_offset if len(self._segments) else 0
        self.local_log_start_offset = max(self.log_start_offset, first)

    @property
    def directory(self) -> str:
        return self._segments.directory

    @property
    def is_folder_synced(self) -> bool:
        """Whether the folder, and whose it is, survives a loss of power. The first `flush` sees to that."""
        return self._recovery_point.is_folder_synced

    @property
    def first_segment_base_offset(self) -> int:
        return self._segments[0].base_offset

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
    def tiered_end_offset(self) -> int:
        """Everything on this disk below it can be read from the tier, too: retention may take it.

        Never above the log end offset; 0 while it is not known, and for a log without a tier.
        """
        return self._tiered_end_offset

    def note_tiered(self, end_offset: int) -> None:
        """Up to where the tier has this log, as `RemoteLogManager` finds it from time to time; 0 for nothing.

        Cuts lower it by themselves.
        """
        self._tiered_end_offset = min(end_offset, self.log_end_offset)

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
            self.truncate_fully_and_start_at(offset, tiered=self._history_below(offset))
            return True
        try:
            self._drop_from(offset)
        except (OSError, CorruptData) as error:
            # The file may be shorter by now than what is known of it.
            offset = min(offset, self.log_end_offset)
            self._end_at(offset)
            self.leader_epochs.truncate_from_end(offset)
            self.damage = Damage(offset=offset, reason=f"it could not be cut there: {error}")
            raise
        return True

    def _drop_from(self, offset: int) -> None:
        self.swap.settle_for_cut()
        self._adopt_beyond_damage()
        first = self._segments.slot_of(offset) + 1
        for segment in self._segments.delete(first, len(self._segments), due_ms=0):
            self._snapshots.remove(segment.base_offset)
        self._segments.active.truncate_to(offset)
        offset = self._segments.active.read_next_offset()
        self._end_at(offset)
        self.leader_epochs.truncate_from_end(offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self._note_local_start()
        self._reload_producers(offset)
        self._sync_truncation()

    def truncate_fully_and_start_at(
        self,
        offset: int,
        producers: Iterable[ProducerEntry] = (),
        now_ms: int = 0,
        *,
        tiered: TieredHistory | None = None,
    ) -> None:
        """Drop everything; the log goes on at `offset`, and knows `producers`, who may have written below it.

        With `tiered` the log starts before `offset`: the tier has what is between.

        `now_ms` is by the clock of `producers.expire`. OSError or CorruptData leave the log damaged at 0, without a
        record: it takes nothing in until this, or `truncate_to`, is done again.
        """
        self._check_open()
        try:
            self.swap.settle_for_cut()
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
            if tiered is not None:
                # Before the log begins at `offset` too, and not before the old segments are gone for good.
                self._files.sync_directory(self.directory)
                self._take_history(tiered)
            self._segments.create(offset, self._config, now_ms=0)
            self._sync_truncation()
        except (OSError, CorruptData) as error:
            # Where the leader has nothing, unless it never deleted a record: else it is asked for its producers again.
            self._begin_at(0)
            self.damage = Damage(offset=0, reason=f"it could not be begun anew: {error}")
            if len(self._segments) == 0:
                # Its file is not made before it is used.
                self._segments.add(0, self._config, now_ms=0)
            raise
        self.damage = None

    @property
    def tiered_history(self) -> TieredHistory | None:
        """Of a log whose start only a tier has."""
        start_offset, end_offset = self.log_start_offset, self.local_log_start_offset
        if start_offset >= end_offset:
            return None
        return TieredHistory(start_offset, self.leader_epochs.entries_in(start_offset, end_offset))

    def _history_below(self, offset: int) -> TieredHistory | None:
        """What the tier keeps of this log when it is cut at `offset`, below all that this disk has: the log start stays
        where it is, or the copies below would count as deleted records."""
        start_offset = self.log_start_offset
        if not self._config.remote_storage_enable or start_offset >= offset:
            return None
        return TieredHistory(start_offset, self.leader_epochs.entries_in(start_offset, offset))

    def _take_history(self, tiered: TieredHistory) -> None:
        self.log_start_offset = tiered.log_start_offset
        for epoch, start_offset in tiered.leader_epochs:
            self.leader_epochs.assign(epoch, start_offset)
        epochs = self._recovery_point.unwritten_epochs(self.log_end_offset)
        if epochs is not None:
            # No batch on this disk says them again.
            epochs.sync()

    def _begin_at(self, offset: int) -> None:
        """There is no record any more."""
        self._known_at_truncation = None
        self._end_at(offset)
        self.lowest_cut.note(0)
        self.leader_epochs.clear()
        self.log_start_offset = self.local_log_start_offset = offset
        self._tiered_end_offset = 0
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
        self.local_log_start_offset = max(self.local_log_start_offset, offset)
        self.leader_epochs.truncate_from_start(offset)
        return True

    def delete_old_segments(self, high_watermark: int, now_ms: int, *, lasting_start_offset: int = MAX_INT64) -> int:
        """Apply retention and the log start offset; how many segments went: until it is 0 there may be more.

        Of the log start offset what is above `lasting_start_offset` would be forgotten if the process ended now: no
        segment goes for that. Their files are `take_removable_files`. OSError and CorruptData leave what is left for
        the next time.
        """
        if self.damage is not None or self._is_closed:
            return 0
        count = count_breached_segments(
            self._segments.from_slot(0),
            self._config,
            log_start_offset=min(self.log_start_offset, lasting_start_offset),
            log_end_offset=self.log_end_offset,
            high_watermark=high_watermark,
            # Before that no checkpoint has to have the leader epochs that no batch on this disk will say again.
            tiered_end_offset=min(self._tiered_end_offset, self._recovery_point.offset),
            now_ms=now_ms,
        )
        if count == 0:
            return 0
        if count == len(self._segments):
            self._roll(self.log_end_offset, now_ms)
        self.swap.settle()
        if self.producers.entries:
            # The only record of the producers in the deleted segments, should a loss of power bring some of them back.
            known = 0
            while known < min(count, _DELETED_AT_ONCE) and self._snapshots.sync(self._segments[known + 1].base_offset):
                known += 1
            if known == 0 and not self._make_snapshot(now_ms):
                return 0
            count = max(known, 1)
        if self._config.copies_to_tier:
            self.local_log_start_offset = max(self.local_log_start_offset, self._segments[count].base_offset)
        else:
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

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError(f"The log of partition {self.name} is closed.")

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
        self.lowest_cut.note(offset)
        # What is appended from here on is not what the tier has.
        self._tiered_end_offset = min(self._tiered_end_offset, offset)
        self._recovery_point.truncate_to(offset)

    def _sync_truncation(self) -> None:
        """Were a loss of power to take the cut back, old batches would stand among those that are appended now."""
        active = self._segments.active
        active.file.sync()
        active.sync_indexes()
        self._files.sync_directory(self.directory)
        if not self.is_folder_synced:
            self._recovery_point.sync_folder()

    def _adopt_beyond_damage(self) -> None:
        """Before a cut: what lies beyond a damage is cut off with the rest."""
        if self.damage is not None:
            active = self._segments.active
            active.cut_at(active.size_bytes)
            self._segments.adopt(self._beyond_damage)
            self._beyond_damage = []
            self.damage = None

    def _reload_producers(self, end_offset: int) -> None:
        known = self._known_at_truncation
        if known is None:
            known = {producer_id: entry.appended_ms for producer_id, entry in self.producers.entries.items()}
            if not known and not self.producers.completed:
                # Dropping batches cannot bring a producer in.
                self._snapshots.remove_above(end_offset)
                self.producers.clear(end_offset)
                return
        self._known_at_truncation = known
        latest_ms = max(known.values(), default=0)
        self._snapshots.load_latest(
            self.producers, start_offset=self.first_segment_base_offset, end_offset=end_offset, now_ms=latest_ms
        )
        replay_segments(self._segments.from_slot(0), self.producers, end_offset, latest_ms)
        for producer_id, entry in self.producers.entries.items():
            entry.appended_ms = min(entry.appended_ms, known.get(producer_id, latest_ms))
        self._known_at_truncation = None
