"""What the judge of replicas has seen of each partition, and of each of its replicas in one process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ....broker.replicas.partition import Partition
from ....protocol.batches import CONTROL_FLAG, read_header
from ....quorum.metadata.image import PartitionRegistration
from ....storage.log.log import Log
from .machine import Machine
from .process import Process
from .replica_logs import Batch, CompactedReplicaLog, ReplicaLog


class ReplicaState(NamedTuple):
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    leader_epoch: int
    is_leader: bool
    maximal_isr: frozenset[int]
    is_damaged: bool
    """The log takes nothing in until it is cut."""
    local_start_offset: int
    """What is before is in the tier, from the log start offset on."""

    @property
    def takes_records(self) -> bool:
        return self.is_leader and not self.is_damaged


NEW = ReplicaState(0, 0, 0, -1, False, frozenset(), False, 0)


@dataclass(slots=True, eq=False)
class WatchedReplica:
    """A replica in one process."""

    machine: Machine
    process: Process | None
    partition: Partition
    committed: Sequence[Batch]
    """Of its partition."""
    log: ReplicaLog
    source: Log
    """What `log` follows: another one once this one has moved to another log directory."""
    replaced: tuple[Log, ReplicaLog] | None = None
    """What was in the place of `source` and `log` before the last move."""
    state: ReplicaState = NEW

    def begin_anew(self) -> ReplicaLog:
        """Follow the log that the replica has now. Returns what the one had that it replaces."""
        replaced = self.log
        self.log = replaced.moved_to(self.partition.log.first_segment_base_offset)
        self.replaced = self.source, replaced
        self.source = self.partition.log
        return replaced

    @property
    def is_alive(self) -> bool:
        node = self.machine.node
        return (
            node is not None
            and node.has_parts
            and node.parts.partitions.find(self.partition.topic, self.partition.index) is self.partition
        )

    def has(self, last: Batch) -> bool:
        """Whether it has this batch and all before it, but for what was deleted or is in the tier alone."""
        if self.state.local_start_offset >= last.end_offset:
            return True
        own = self.log.last_below(last.end_offset)
        if own is not None and own.fingerprint == last.fingerprint:
            return True
        # What was compacted when this replica fetched it, or is compacted here.
        return (
            isinstance(self.log, CompactedReplicaLog)
            and self.state.log_end_offset >= last.end_offset
            and (own is None or any(one.fingerprint == own.fingerprint for one in reversed(self.committed)))
        )

    def is_safe(self, last: Batch) -> bool:
        """Whether a loss of power leaves this batch, which the replica has, and what is before it in its file.

        Until the names of a move are synced, the next start goes on with one log or the other: both must have it.
        """
        if self.partition.log is not self.source:
            # It has moved in this turn, and is looked at next.
            return True
        if self._is_safe_in(self.partition.log, self.log, last):
            return True
        return (
            self.replaced is not None
            and self._is_safe_in(self.partition.log, self.log, last, is_folder_renamed=True)
            and self._is_safe_in(*self.replaced, last, is_folder_renamed=True)
        )

    def _is_safe_in(self, log: Log, seen: ReplicaLog, last: Batch, *, is_folder_renamed: bool = False) -> bool:
        own = seen.last_below(last.end_offset)
        if own is None or own.segment < log.first_segment_base_offset:
            return True
        if isinstance(seen, CompactedReplicaLog):
            # Whatever takes the place of a segment is synced before.
            data = self.machine.written(f"{log.directory}/{own.segment:020}.log")
            if data is None or not own.is_at_its_place(data):
                return log.segment_base_offset_of(own.base_offset) != log.active_segment_base_offset
        return self.machine.is_safe(
            f"{log.directory}/{own.segment:020}.log", own.position + own.size, is_folder_renamed=is_folder_renamed
        )

    def last_of_producers(self, batches: Iterable[Batch]) -> dict[int, tuple[int, int]]:
        """Epoch and last sequence of the last of these batches by producer id, as its files have them."""
        last = {}
        for batch in batches:
            path = f"{self.partition.log.directory}/{batch.segment:020}.log"
            header = read_header(self.machine.written(path) or b"", batch.position)
            if header.has_producer_id and not header.attributes & CONTROL_FLAG:
                last[header.producer_id] = header.producer_epoch, header.last_sequence
        return last


@dataclass(slots=True)
class WatchedPartition:
    """One partition, as its metadata and its replicas have shown it so far."""

    registration: PartitionRegistration | None = None
    """The latest that was committed."""
    registrations: dict[int, PartitionRegistration] = field(default_factory=dict)
    leaders: dict[int, int] = field(default_factory=dict)
    """By leader epoch, the nodes that behave as leaders."""
    known: dict[tuple[int, int], Batch] = field(default_factory=dict)
    """By base offset and leader epoch, as the first replica had it."""
    committed: list[Batch] = field(default_factory=list)
    producers: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Epoch and last sequence of the last committed batch of each."""
    replicas: dict[int, WatchedReplica] = field(default_factory=dict)
    """By node, the replicas whose process lives."""
    highest_log_start: int = 0
    """Of any replica, ever."""

    def had_batch(self, base_offset: int, last_offset: int) -> bool:
        """Whether any replica had a batch with these offsets, whose records may lie between them by now."""
        return any(
            base == base_offset and last_offset <= batch.end_offset - 1 for (base, _), batch in self.known.items()
        )
