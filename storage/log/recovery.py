"""Opening the folder of a log: what is there, how far it can be trusted, and what must be made anew.

Kafka: `LogLoader`.

After a clean stop everything is taken as it lies. After any other stop the segments from the recovery point on are
walked batch by batch: each must be whole, in order and have its CRC. Leader epochs, which the CRC does not cover, must
not fall: a batch alone in its epoch between older ones is not as it was written, else the older one is not. At the
first batch that is not so

- *above* the recovery point, the log is truncated: those bytes were never promised to be on disk;
- *below* the recovery point, they were synced and the disk has lost them. That is `Damage`. Nothing is cut or removed:
  the log ends there in memory, takes no appends, and says so, until `Log.truncate_to` decides.

The same walk makes the indexes, the transaction index, the producer state and the leader epochs of those segments anew.
It begins earlier where an index is missing, or a transaction index is corrupt. A segment that reaches further than its
indexes can is split before (`segment_split.py`).
"""

import logging
from collections.abc import Collection
from contextlib import suppress
from itertools import pairwise

from msgspec import Struct, field

from ...protocol.batches import HEADER_SIZE, LENGTH_OVERHEAD
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.ids import NO_LEADER_EPOCH, LeaderEpoch
from ..disk.files import Files
from .index_file import CorruptIndex
from .leader_epochs import LeaderEpochs
from .offset_index import MAX_RELATIVE_OFFSET
from .producer_snapshots import ProducerSnapshots
from .replay import replay_batch, replay_segments
from .rules.batch_order import epoch_fault, offsets_fault
from .rules.config import LogConfig
from .rules.file_names import (
    INDEX_SUFFIXES,
    LOG,
    OFFSET_INDEX,
    TIME_INDEX,
    TRANSACTION_INDEX,
    offsets_with,
    segment_file,
)
from .rules.producer_state import ProducerState
from .rules.record_batch import StoredBatch
from .segment import Segment
from .segment_scan import BadBatch, scan
from .segment_split import OffsetOverflow, is_beyond, overflow
from .segments import Segments

logger = logging.getLogger(__name__)


class Damage(Struct, frozen=True, kw_only=True):
    """Synced bytes are gone: below `offset` all is intact, what should follow up to the recovery point is not."""

    offset: int
    reason: str

    def refusal(self, partition: str) -> KafkaError:
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"The log of {partition} is damaged at offset {self.offset}: {self.reason}"
        )


class LoadedLog(Struct, kw_only=True):
    """What was found in a folder. `load` fills the second half in."""

    files: Files
    directory: str
    # What is in it.
    names: Collection[str]
    config: LogConfig
    now_ms: int
    producers: ProducerState
    snapshots: ProducerSnapshots
    leader_epochs: LeaderEpochs
    # What the file says; None when there is no intact one.
    written_epochs: tuple[tuple[LeaderEpoch, int], ...] | None
    # The folder was made just now.
    is_new: bool
    # As checkpointed; then as it is.
    log_start_offset: int
    recovery_point: int
    cleaned_end: int
    # A segment that reaches further than its indexes is to be split first; else it counts as damaged there.
    may_split: bool

    segments: Segments
    next_offset: int = 0
    # Whether a power loss cannot take the folder, or a name in it, any more.
    is_folder_synced: bool = False
    # Whether it cannot bring back what was cut off the active segment.
    is_cut_synced: bool = True
    damage: Damage | None = None
    # Segments after the damage: their files stay unread.
    beyond_damage: list[Segment] = field(default_factory=list)

    @property
    def protected_end(self) -> int:
        """Below this a lost batch is damage. What is below the log start is deleted: losing it is no loss."""
        return self.recovery_point if self.recovery_point > self.log_start_offset else 0


def make_folder(files: Files, directory: str) -> None:
    parent = directory.rpartition("/")[0]
    if not files.exists(parent):
        files.make_directories(parent)
    files.make_directory(directory)


def load(log: LoadedLog, *, is_clean: bool) -> None:
    """Find the segments and everything else of the log in its folder, by the rules above.

    OffsetOverflow names a segment that is to be split; nothing but indexes is changed then.
    """
    for base_offset in offsets_with(log.names, LOG):
        size = log.files.size(segment_file(log.directory, base_offset, LOG))
        log.segments.add(base_offset, log.config, log.now_ms, size)
    _drop_hiding(log)
    _drop_emptied(log, is_clean=is_clean)
    if log.may_split:
        _check_offsets(log)
    log.snapshots.offsets[:] = offsets_with(log.names, ".snapshot")
    log.snapshots.remove_strays(segment.base_offset for segment in log.segments)
    unindexed = _without_indexes(log)
    untold = _without_transaction_index(log)
    if is_clean:
        is_clean = not untold and _take_as_is(log, unindexed)
    if not is_clean:
        _recover(log, [*unindexed, *untold])
    if log.next_offset < log.protected_end and log.damage is None:
        log.damage = Damage(
            offset=log.next_offset,
            reason=f"the log ends at offset {log.next_offset}, but was synced up to {log.recovery_point}",
        )
    if log.damage is None and (len(log.segments) == 0 or log.next_offset < log.log_start_offset):
        _start_anew(log)
    elif len(log.segments) == 0:
        log.segments.create(log.next_offset, log.config, log.now_ms)
    if not log.config.remote_storage_enable:
        # Else what is before may be in the tier.
        log.log_start_offset = max(log.log_start_offset, log.segments[0].base_offset)
    if log.written_epochs is None or _begins_late(log):
        _rebuild_leader_epochs(log)
    log.leader_epochs.truncate_from_end(log.next_offset)
    log.leader_epochs.truncate_from_start(log.log_start_offset)
    log.recovery_point = log.next_offset if is_clean else min(log.recovery_point, log.next_offset)
    # A log that never had a batch is never synced; of any other, what is below the recovery point was synced.
    log.is_folder_synced = not log.is_new and log.next_offset > 0 and log.recovery_point == log.next_offset


def _check_offsets(log: LoadedLog) -> None:
    """OffsetOverflow for the first segment before the last that has offsets which its indexes cannot tell."""
    for segment, following in pairwise(log.segments.from_slot(0)):
        # What lies in it ends below the next one.
        if following.base_offset - segment.base_offset > MAX_RELATIVE_OFFSET + 1:
            try:
                _check_offsets_of(segment, following.base_offset)
            except OffsetOverflow:
                raise
            except BadBatch:
                continue


def _check_offsets_of(segment: Segment, end_offset: int) -> None:
    for batch in scan(segment.file, 0, segment.size_bytes):
        last_offset = batch.header.last_offset
        if segment.base_offset + MAX_RELATIVE_OFFSET < last_offset < end_offset:
            raise overflow(segment.file.path, batch.position, segment.base_offset, last_offset)


def _drop_hiding(log: LoadedLog) -> None:
    """Segments that were made and could not be used, so that the one before them took in what follows."""
    used: Segment | None = None
    end_offset = 0
    for segment in log.segments.from_slot(0):
        if segment.size_bytes:
            used, end_offset = segment, -1
        elif used is not None:
            if end_offset < 0:
                end_offset = _end_of(used)
            if end_offset > segment.base_offset:
                slot = log.segments.slot_of(segment.base_offset)
                log.segments.delete(slot, slot + 1, due_ms=log.now_ms)


def _drop_emptied(log: LoadedLog, *, is_clean: bool) -> None:
    """Empty segments before the first batch, where what lies before that is deleted here and may be in the tier.

    Readers would be led past the records that are there. Where a loss of power can have taken batches that were not
    synced they stay, so that recovery finds what is missing behind them.
    """
    segments = log.segments.from_slot(0)
    emptied = next((slot for slot, segment in enumerate(segments) if segment.size_bytes), 0)
    if emptied == 0 or not log.config.remote_storage_enable:
        return
    base_offset = segments[emptied].base_offset
    if is_clean or base_offset <= max(log.recovery_point, log.log_start_offset):
        log.segments.delete(0, emptied, due_ms=log.now_ms)


def _end_of(segment: Segment) -> int:
    """The offset after the last batch, or after those before the first invalid one."""
    try:
        return segment.read_next_offset()
    except CorruptData:
        next_offset = segment.base_offset
        with suppress(CorruptData):
            for batch in scan(segment.file, 0, segment.size_bytes):
                next_offset = batch.header.next_offset
        return next_offset


def _begins_late(log: LoadedLog) -> bool:
    """Whether the leader epochs were cut for a log start that is not known any more: batches have older ones.

    A crash took it back, or its checkpoint is lost.
    """
    earliest = log.leader_epochs.earliest_epoch()
    start_offset = max(log.log_start_offset, log.segments[0].base_offset)
    if log.next_offset <= start_offset or (earliest is not None and earliest[1] <= start_offset):
        return False
    # The first batch of a compacted log may be far behind its start, and the first epoch with it.
    return earliest is None or _first_offset(log) < earliest[1]


def _first_offset(log: LoadedLog) -> int:
    """That of the first batch, or where one that is not whole is to be."""
    for segment in log.segments:
        if segment.size_bytes:
            with suppress(BadBatch):
                return next(scan(segment.file, 0, segment.size_bytes, chunk_bytes=HEADER_SIZE)).header.base_offset
            return segment.base_offset
    return log.next_offset


def _without_indexes(log: LoadedLog) -> list[Segment]:
    """The segments that have batches and lack an index file."""
    return [
        segment
        for segment in log.segments
        if segment.size_bytes
        and not all(f"{segment.base_offset:020d}{suffix}" in log.names for suffix in (OFFSET_INDEX, TIME_INDEX))
    ]


def _without_transaction_index(log: LoadedLog) -> list[Segment]:
    """The segments whose transaction index is readable and corrupt: read_committed consumers could not go on."""
    untold = []
    for segment in log.segments:
        if f"{segment.base_offset:020d}{TRANSACTION_INDEX}" in log.names:
            try:
                segment.transaction_index.check()
            except CorruptIndex as error:
                logger.warning("Rebuilding damaged index: %s", error)
                untold.append(segment)
    return untold


def _take_as_is(log: LoadedLog, unindexed: list[Segment]) -> bool:
    """After a clean stop. False when the log is not what a clean stop leaves, so that it must be recovered."""
    if len(log.segments) == 0:
        return True
    try:
        for segment in unindexed:
            segment.rebuild_indexes()
        last = log.segments[-1]
        log.next_offset = last.read_next_offset()
        if log.next_offset - 1 - last.base_offset > MAX_RELATIVE_OFFSET:
            return False
        log.snapshots.load_latest(
            log.producers,
            start_offset=log.segments[0].base_offset,
            end_offset=log.next_offset,
            now_ms=log.now_ms,
            tail_needed_above=log.segments[-1].base_offset,
        )
        replay_segments(log.segments.from_slot(0), log.producers, log.next_offset, log.now_ms)
    except CorruptData:
        return False
    return True


def _recover(log: LoadedLog, unindexed: list[Segment]) -> None:
    segments = log.segments.from_slot(0)
    # The segment that the recovery point lies in and all after it, or from an earlier one that needs its indexes.
    first = max(sum(1 for segment in segments if segment.base_offset <= log.recovery_point) - 1, 0)
    first = min(first, *(segments.index(segment) for segment in unindexed), first)
    unflushed = segments[first:]
    if not unflushed:
        return
    _recover_segments(log, segments[:first], unflushed)
    log.segments.retire_recovered(unflushed)
    if log.damage is None and (log.segments.active.size_bytes or log.written_epochs):
        # What was cut off, maybe by a process that ended before it could sync that, must not come back in between what
        # is appended from now on. A log that never had anything costs no sync.
        log.is_cut_synced = False


class _NewerEpochError(Exception):
    """The batch at `offset` alone has a newer leader epoch than the one behind it."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.offset = offset


class _Walk(Struct):
    """Of one walk over the segments to recover, so far."""

    epoch: int = NO_LEADER_EPOCH
    """The latest of a batch; then where its first batch begins and ends."""
    first_offset: int = 0
    first_end: int = 0
    newer: _NewerEpochError | None = None
    """What the walk before has found: this one ends there."""


def _recover_segments(log: LoadedLog, flushed: list[Segment], unflushed: list[Segment]) -> None:
    try:
        _walk_segments(log, flushed, unflushed, _Walk())
    except _NewerEpochError as newer:
        # What was made of that batch and those behind it must not stay.
        _walk_segments(log, flushed, unflushed, _Walk(newer=newer))


def _walk_segments(log: LoadedLog, flushed: list[Segment], unflushed: list[Segment], walk: _Walk) -> None:
    """Raises _NewerEpochError unless `walk` knows of it."""
    log.next_offset = unflushed[0].base_offset
    # The file may be of before a truncation: the batches say it anew.
    log.leader_epochs.truncate_from_end(log.next_offset)
    log.snapshots.load_latest(
        log.producers, start_offset=log.segments[0].base_offset, end_offset=log.next_offset, now_ms=log.now_ms
    )
    for number, (segment, following) in enumerate(pairwise([*flushed, unflushed[0]])):
        if following.base_offset <= log.producers.end_offset:
            continue
        try:
            replay_segments([segment], log.producers, following.base_offset, log.now_ms)
        except BadBatch:
            # The walk says where the intact batches of that segment end.
            _walk_segments(log, flushed[:number], [*flushed[number:], *unflushed], walk)
            return
    end_offsets = [*(segment.base_offset for segment in unflushed[1:]), None]
    for number, segment in enumerate(unflushed):
        if number:
            lost = _lost_between(log, segment)
            if lost is not None:
                before = unflushed[number - 1]
                _end_at(log, before, unflushed[number:], BadBatch(lost, before.size_bytes))
                return
            log.next_offset = max(log.next_offset, segment.base_offset)
            log.producers.end_offset = log.next_offset
        if number or flushed:
            log.snapshots.take_if_room(log.producers)
        try:
            _recover_segment(log, segment, walk, end_offsets[number])
        except BadBatch as bad:
            if log.may_split and isinstance(bad, OffsetOverflow):
                raise
            _end_at(log, segment, unflushed[number + 1 :], bad)
            return


def _lost_between(log: LoadedLog, segment: Segment) -> str | None:
    """Why batches are missing before `segment`. Unsynced files reach the disk in any order: an older one may be short
    though a newer one is there. Compaction leaves such gaps too, in what is synced and below its checkpoint: that a
    topic is compacted does not tell, or a replica that lacks what is committed would join the ISR with it.
    """
    if segment.base_offset <= max(log.next_offset, log.recovery_point, log.cleaned_end):
        return None
    return f"the log ends at offset {log.next_offset}, but a segment begins at {segment.base_offset}"


def _recover_segment(log: LoadedLog, segment: Segment, walk: _Walk, end_offset: int | None) -> None:
    """The next segment begins at `end_offset`: a batch that reaches further has not the offset that it was given."""
    size = segment.size_bytes
    if size == 0 and not any(f"{segment.base_offset:020d}{suffix}" in log.names for suffix in INDEX_SUFFIXES):
        # Nothing to recover. The indexes are made when they have something to say.
        log.producers.end_offset = log.next_offset
        return
    segment.reset()
    # What is done for each batch decides how long the recovery of a node takes.
    next_offset = log.next_offset
    last_indexed = segment.base_offset + MAX_RELATIVE_OFFSET
    last_possible = last_indexed if end_offset is None else min(last_indexed, end_offset - 1)
    epochs = log.leader_epochs
    try:
        for batch in scan(segment.file, 0, size, verify=True):
            header = batch.header
            base_offset = header.base_offset
            last_offset = base_offset + header.last_offset_delta
            if not next_offset <= base_offset <= last_offset <= last_possible:
                is_risen = next_offset <= base_offset <= last_offset
                if is_risen and last_offset > last_indexed and not is_beyond(header, next_offset, end_offset):
                    raise overflow(segment.file.path, batch.position, segment.base_offset, last_offset)
                fault = offsets_fault(header, next_offset, last_possible + 1)
                raise BadBatch(f"{segment.file.path} at {batch.position}: {fault}", batch.position)
            epoch = header.partition_leader_epoch
            if epoch != walk.epoch:
                _on_epoch(segment, batch, walk, next_offset)
                if epoch > epochs.latest_epoch:
                    epochs.assign(epoch, base_offset)
            if header.producer_id >= 0:
                replay_batch(batch, log.producers, log.now_ms, segment)
            segment.note_batch(LENGTH_OVERHEAD + header.batch_length, last_offset, header.records_timestamp)
            segment.write_indexes_when_due()
            next_offset = last_offset + 1
    finally:
        log.next_offset = log.producers.end_offset = next_offset
        segment.write_indexes_if_room()


def _on_epoch(segment: Segment, batch: StoredBatch, walk: _Walk, next_offset: int) -> None:
    """The batch is not of the leader epoch of those before it, which end at `next_offset`.

    Raises BadBatch for one that cannot be taken, _NewerEpochError for the one before it.
    """
    header = batch.header
    epoch = header.partition_leader_epoch
    if walk.newer is not None and header.base_offset >= walk.newer.offset:
        raise BadBatch(f"{segment.file.path} at {batch.position}: {walk.newer}", batch.position)
    if NO_LEADER_EPOCH < epoch < walk.epoch:
        reason = epoch_fault(header, walk.epoch)
        assert reason is not None, "it is lower"
        if next_offset == walk.first_end:
            raise _NewerEpochError(reason, walk.first_offset)
        raise BadBatch(f"{segment.file.path} at {batch.position}: {reason}", batch.position)
    if epoch > walk.epoch:
        walk.epoch, walk.first_offset, walk.first_end = epoch, header.base_offset, header.next_offset


def _end_at(log: LoadedLog, segment: Segment, following: list[Segment], bad: BadBatch) -> None:
    """The log has no intact batch at `log.next_offset`, in `segment`, and those `following` cannot be trusted."""
    first = len(log.segments) - len(following)
    if log.next_offset < log.protected_end:
        log.damage = Damage(offset=log.next_offset, reason=str(bad))
        # What a first walk set aside is behind that.
        log.beyond_damage = [*log.segments.set_aside(first), *log.beyond_damage]
    else:
        segment.cut_at(bad.position)
        log.segments.delete(first, len(log.segments), due_ms=log.now_ms)
        log.snapshots.remove_above(log.next_offset)
        segment.file.sync()
        if following:
            log.files.sync_directory(log.directory)


def _rebuild_leader_epochs(log: LoadedLog) -> None:
    log.leader_epochs.clear()
    for segment in log.segments.from_slot(0):
        try:
            for batch in scan(segment.file, 0, segment.size_bytes):
                _take_leader_epoch(log.leader_epochs, batch)
        except BadBatch:
            # It was taken for intact, as it was synced. The walk takes in the epochs from there on.
            _recover(log, [segment])
            return


def _start_anew(log: LoadedLog) -> None:
    """Nothing is there, or all of it is below the log start offset."""
    log.segments.delete(0, len(log.segments), due_ms=log.now_ms)
    log.snapshots.remove_all()
    log.leader_epochs.clear()
    log.next_offset = log.log_start_offset
    log.producers.clear(log.next_offset)
    log.segments.create(log.next_offset, log.config, log.now_ms)
    # It may be long until the file is used.
    log.segments.close()


def _take_leader_epoch(epochs: LeaderEpochs, batch: StoredBatch) -> None:
    epoch = batch.header.partition_leader_epoch
    if epoch > epochs.latest_epoch:
        epochs.assign(epoch, batch.header.base_offset)
