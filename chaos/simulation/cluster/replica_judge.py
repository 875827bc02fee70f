"""What must hold of all replicas at every instant: the invariants of Kafka's replication, over all nodes' states.

| invariant | what it says |
|---|---|
| LeaderInIsr | a leader that the metadata name is in the ISR that they name |
| OneLeader | an epoch of a partition has one leader, and one registration has one content, on every node |
| Monotone | leader epoch, partition epoch and high watermark never fall while a process lives |
| LogMatching | logs that have a batch of one offset and one epoch are equal up to there |
| Committed | what is below any replica's high watermark is the same on all, and in the log of every later leader |
| MaximalIsr | whom the metadata name in the ISR or the ELR counts for the leader of that epoch |
| StrongIsr | everything that any replica has committed is on every member of the true ISR and ELR |
| Joining | so it is on whom a leader proposes for the ISR, by the broker epoch that the controller knows |
| Synced | where only what is synced counts, no loss of power takes that from any of them |
| Deleted | a log begins nowhere behind what was asked to be deleted, or behind what is committed |
| Tiered | what a log has that its disk has not is in the tier, as it was committed |
| Remembered | a log that was opened or cut, or is a new leader's, has the leader epochs, producers and aborted
transactions that its batches say (`memory_judge.py`) |
| Moved | a log that takes over in another log directory has what the one had that it replaces |
| Producers | a new leader remembers the last batch of every producer in what is committed, though it may be deleted |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ....broker.replicas.partition import Partition
from ....protocol.ids import NO_BROKER_EPOCH, NodeId
from ....quorum.metadata.image import MetadataImage, PartitionRegistration
from .machine import Machine
from .memory_judge import look_at_memory
from .process import Process
from .replica_logs import Batch, CompactedReplicaLog, ReplicaLog
from .simulated_tier import SimulatedTier
from .watched_replicas import NEW, ReplicaState, WatchedPartition, WatchedReplica

_NO_LEADER = -1


class ReplicaJudge:
    """Looks at the nodes after every turn of the loop; skips those that did not change."""

    def __init__(
        self,
        machines: Iterable[Machine],
        deletable_end: Callable[[str, int], int | None],
        *,
        is_flushed: bool = False,
        is_compacted: Callable[[str], bool] = lambda _: False,
        tier: SimulatedTier | None = None,
    ) -> None:
        """`deletable_end` gives the highest offset that DeleteRecords has asked for in a topic's partition; None: the
        nodes may delete all that is committed. `is_flushed`: all topics have `flush.messages=1`.
        `is_compacted` tells it of a topic."""
        self.violations: list[str] = []
        self.check_count = 0
        self._machines = tuple(machines)
        self._deletable_end = deletable_end
        self._is_flushed = is_flushed
        self._is_compacted = is_compacted
        self._tier = tier
        self._images: dict[int, MetadataImage] = {}
        self._image_offset = -1
        self.image: MetadataImage | None = None
        """The newest of any node."""
        self._partitions: dict[tuple[str, int], WatchedPartition] = {}
        # By node, of its process: what it hosts, by identity. In most turns nothing of that changes.
        self._hosted: dict[int, tuple[Process | None, dict[int, tuple[WatchedPartition, WatchedReplica]]]] = {}

    def committed_end(self, topic: str, index: int) -> int:
        truth = self._partitions.get((topic, index))
        return truth.committed[-1].end_offset if truth is not None and truth.committed else 0

    def log_start(self, topic: str, index: int) -> int:
        """Where the log of any replica that is up begins at the latest."""
        truth = self._partitions.get((topic, index))
        replicas = truth.replicas.values() if truth is not None else ()
        return max((one.state.log_start_offset for one in replicas if one.is_alive), default=0)

    def highest_log_start(self, topic: str, index: int) -> int:
        """Where the log of any replica ever began at the latest."""
        truth = self._partitions.get((topic, index))
        return 0 if truth is None else truth.highest_log_start

    def is_awaited(self, topic: str, index: int, node_id: int) -> bool:
        """Whether any leader takes this node for one that may be in sync."""
        truth = self._partitions.get((topic, index))
        return truth is not None and any(
            node_id in replica.partition.state.maximal_isr for replica in truth.replicas.values()
        )

    def registration(self, topic: str, index: int) -> PartitionRegistration | None:
        truth = self._partitions.get((topic, index))
        return None if truth is None else truth.registration

    @property
    def leader_epoch_count(self) -> int:
        return sum(len(truth.leaders) for truth in self._partitions.values())

    def look(self, turn: int) -> None:
        """After this turn of the loop."""
        awake = [
            (machine, machine.node)
            for machine in self._machines
            if machine.node is not None and machine.process is not None and machine.process.last_turn == turn
        ]
        # First what all know, then how they behave: one node's replica is compared with those of others.
        changed: list[tuple[str, WatchedPartition]] = []
        for machine, node in awake:
            image = node.metadata.image
            if self._images.get(machine.node_id) is not image:
                self._images[machine.node_id] = image
                changed += self._on_image(image)
        for machine, node in awake:
            if node.has_parts:
                process, known = self._hosted.get(machine.node_id, (None, {}))
                if process is not machine.process:
                    known = {}
                    self._hosted[machine.node_id] = machine.process, known
                count = 0
                for count, partition in enumerate(node.parts.partitions.hosted, 1):  # noqa: B007 - how many there were
                    truth, replica = known.get(id(partition)) or self._begin(machine, partition, known)
                    self._on_partition(machine, partition, truth, replica)
                if count < len(known):
                    self._look_at_those_gone(machine, known)
        for place, truth in changed:
            self._check_isr(place, truth)

    # The metadata.

    def _on_image(self, image: MetadataImage) -> list[tuple[str, WatchedPartition]]:
        """Returns the partitions whose registration is new."""
        is_newest = image.offset > self._image_offset
        if is_newest:
            self.image = image
        self._image_offset = max(image.offset, self._image_offset)
        changed = []
        for topic in image.topics.by_name.values():
            for index, registration in enumerate(topic.partitions):
                truth = self._partitions.setdefault((topic.name, index), WatchedPartition())
                if is_newest and registration is not truth.registration:
                    self._on_registration(f"{topic.name}-{index}", truth, registration)
                    changed.append((f"{topic.name}-{index}", truth))
                epoch = registration.partition_epoch
                if truth.registrations.setdefault(epoch, registration) != registration:
                    self._violate(f"OneLeader: {topic.name}-{index} has two contents in partition epoch {epoch}")
        return changed

    def _on_registration(self, name: str, truth: WatchedPartition, new: PartitionRegistration) -> None:
        old, truth.registration = truth.registration, new
        if new.leader != _NO_LEADER and new.leader not in new.isr:
            self._violate(f"LeaderInIsr: {name} is led by {new.leader}, which is not in {new.isr}")
        if old is None or old == new:
            return
        if new.leader_epoch < old.leader_epoch or new.partition_epoch <= old.partition_epoch:
            self._violate(f"Monotone: {name} goes from {_epochs(old)} to {_epochs(new)}")
        if new.leader != old.leader and new.leader_epoch == old.leader_epoch:
            self._violate(f"OneLeader: {name} goes from leader {old.leader} to {new.leader} in {_epochs(new)}")

    # Replicas.

    def _look_at_those_gone(self, machine: Machine, known: dict[int, tuple[WatchedPartition, WatchedReplica]]) -> None:
        """In the turn in which its disk failed, a replica may have advanced, and told clients so, just before."""
        for key, (truth, replica) in list(known.items()):
            if not replica.is_alive:
                self._on_partition(machine, replica.partition, truth, replica)
                del known[key]

    def _begin(
        self, machine: Machine, partition: Partition, known: dict[int, tuple[WatchedPartition, WatchedReplica]]
    ) -> tuple[WatchedPartition, WatchedReplica]:
        truth = self._partitions.setdefault((partition.topic, partition.index), WatchedPartition())
        log = CompactedReplicaLog() if self._is_compacted(partition.topic) else ReplicaLog()
        replica = WatchedReplica(machine, machine.process, partition, truth.committed, log, partition.log)
        truth.replicas[machine.node_id] = replica
        known[id(partition)] = truth, replica
        return truth, replica

    def _on_partition(
        self, machine: Machine, partition: Partition, truth: WatchedPartition, replica: WatchedReplica
    ) -> None:
        rules, log, old = partition.state, partition.log, replica.state
        now = (
            log.log_start_offset, log.log_end_offset, rules.high_watermark, rules.leader_epoch,
            rules.is_leader, rules.maximal_isr, log.damage is not None, log.local_log_start_offset,
        )  # fmt: skip
        is_moved = log is not replica.source
        if now == old and not is_moved:
            return
        state = replica.state = ReplicaState(*now)
        truth.highest_log_start = max(truth.highest_log_start, state.log_start_offset)
        self.check_count += 1
        name = f"{partition.topic}-{partition.index} of node {machine.node_id}"
        if state.leader_epoch < old.leader_epoch:
            self._violate(f"Monotone: {name}: leader epoch {old.leader_epoch} becomes {state.leader_epoch}")
        # A log that held nothing begins anew with the whole batch that the leader's log begins in the midst of. One
        # that its disk kept from beginning anew is damaged, and holds nothing.
        is_lost = state.is_damaged and state.local_start_offset == state.log_end_offset
        if state.high_watermark < old.high_watermark and old.local_start_offset < old.log_end_offset and not is_lost:
            self._violate(f"Monotone: {name}: high watermark {old.high_watermark} becomes {state.high_watermark}")
        if state.is_leader:
            other = truth.leaders.setdefault(state.leader_epoch, machine.node_id)
            if other != machine.node_id:
                self._violate(f"OneLeader: {name} leads epoch {state.leader_epoch} as node {other} does")
        replaced = replica.begin_anew() if is_moved else None
        self._follow_log(name, truth, replica)
        if replaced is not None:
            self._check_moved(name, replica, replaced)
        self._check_committed(name, truth, replica)
        is_opened_or_cut = old is NEW or is_moved or state.log_end_offset < old.log_end_offset
        is_same_epoch = old.leader_epoch == state.leader_epoch
        begins_to_lead = state.is_leader and not (old.is_leader and is_same_epoch)
        # Where a disk refuses calls, what an index lacks waits in memory.
        is_index_written = is_opened_or_cut and not replica.machine.is_failure_expected
        if (is_opened_or_cut or begins_to_lead) and not machine.is_damaged_in(log.directory):
            for sentence in look_at_memory(
                log,
                replica.machine.files,
                is_index_written=is_index_written,
                is_compacted=self._is_compacted(partition.topic),
                was_appended=truth.had_batch,
            ):
                self._violate(f"Remembered: {name}: {sentence}")
        if state.log_start_offset > old.log_start_offset:
            self._check_deleted(name, truth, replica)
        if state.local_start_offset > state.log_start_offset and (
            is_opened_or_cut or state.local_start_offset > old.local_start_offset
        ):
            self._check_tiered(name, truth, replica)
        if begins_to_lead:
            self._check_leader(name, truth, replica)
        if state.takes_records and not (old.takes_records and is_same_epoch):
            self._check_producers(name, truth, replica)
        if state.is_leader and not begins_to_lead:
            self._check_joining(name, truth, replica, state.maximal_isr - old.maximal_isr)
        self._check_isr(f"{partition.topic}-{partition.index}", truth)

    def _follow_log(self, name: str, truth: WatchedPartition, replica: WatchedReplica) -> None:
        log, machine = replica.partition.log, replica.machine

        def data_of(base_offset: int) -> bytes | bytearray | None:
            path = f"{log.directory}/{base_offset:020}.log"
            # In the midst of a swap.
            data = machine.written(path)
            return machine.files.look(f"{path}.swap") if data is None else data

        end_offset = replica.state.log_end_offset
        if isinstance(replica.log, CompactedReplicaLog):
            segments = [*(one.base_offset for one in log.inactive_segments), log.active_segment_base_offset]
            new = replica.log.follow_compacted(data_of, segments=segments, end_offset=end_offset, known=truth.known)
        else:
            new = replica.log.follow(
                data_of,
                first_segment=log.first_segment_base_offset,
                start_offset=replica.state.local_start_offset,
                end_offset=end_offset,
                known=truth.known,
            )
        for batch in new:
            known = truth.known.setdefault((batch.base_offset, batch.leader_epoch), batch)
            if known.fingerprint != batch.fingerprint:
                self._violate(
                    f"LogMatching: {name} has another log up to offset {batch.base_offset} of epoch "
                    f"{batch.leader_epoch} than others have"
                )

    def _check_committed(self, name: str, truth: WatchedPartition, replica: WatchedReplica) -> None:
        last = replica.log.last_below(replica.state.high_watermark)
        if last is None:
            return
        committed = truth.committed
        if not committed or last.end_offset > committed[-1].end_offset:
            start = committed[-1].end_offset if committed else 0
            new = replica.log.between(start, last.end_offset)
            committed += new
            truth.producers |= replica.last_of_producers(new)
        known = _ending_at(committed, last.end_offset)
        if last.end_offset > replica.state.local_start_offset and (
            known is None or known.fingerprint != last.fingerprint
        ):
            self._violate(
                f"Committed: {name} has committed up to offset {last.end_offset}, with other batches than others have"
            )

    def _check_moved(self, name: str, replica: WatchedReplica, replaced: ReplicaLog) -> None:
        last = replaced.last_below(replica.state.log_end_offset)
        end_offset = replaced.batches[-1].end_offset if replaced.batches else 0
        # A follower that was cut in the turn in which its log arrived says so.
        if min(end_offset, replica.partition.log.lowest_cut.offset) > replica.state.log_end_offset:
            self._violate(
                f"Moved: {name} ends at {replica.state.log_end_offset} in {replica.partition.log.directory}, and ended "
                f"at {end_offset} where it was before"
            )
        elif last is not None and not replica.has(last):
            self._violate(
                f"Moved: {name} has another log in {replica.partition.log.directory} than where it was before, up to "
                f"offset {last.end_offset}"
            )

    def _check_deleted(self, name: str, truth: WatchedPartition, replica: WatchedReplica) -> None:
        start = replica.state.log_start_offset
        deletable_end = self._deletable_end(replica.partition.topic, replica.partition.index)
        committed_end = truth.committed[-1].end_offset if truth.committed else 0
        if start > (committed_end if deletable_end is None else min(deletable_end, committed_end)):
            self._violate(
                f"Deleted: {name} begins at {start}, but what is committed ends at {committed_end}, and up to "
                f"{deletable_end} records were to be deleted"
            )

    def _check_tiered(self, name: str, truth: WatchedPartition, replica: WatchedReplica) -> None:
        """What this disk does not have any more is in the tier, and its leader epochs are not others."""
        # Where it begins later elsewhere, what is before may be gone from the tier.
        start, end = max(replica.state.log_start_offset, truth.highest_log_start), replica.state.local_start_offset
        there = {} if self._tier is None else self._tier.batches_of(replica.partition.topic, replica.partition.index)
        for batch in truth.committed:
            if batch.end_offset <= start or batch.base_offset >= end:
                continue
            copy = there.get(batch.base_offset)
            if copy is None or (copy.leader_epoch, copy.crc) != (batch.leader_epoch, batch.crc):
                self._violate(
                    f"Tiered: {name} begins at {start}, on its disk at {end}, and the tier lacks the batch at "
                    f"{batch.base_offset}"
                )
                return
            epoch = replica.partition.log.leader_epochs.epoch_of(max(batch.base_offset, start))
            # One that a loss of power took from its checkpoint is found out anew.
            if epoch not in (None, batch.leader_epoch):
                self._violate(
                    f"Tiered: {name} knows leader epoch {epoch} at {batch.base_offset}, which is in the tier alone: it "
                    f"was appended in {batch.leader_epoch}"
                )
                return

    def untiered(self) -> list[str]:
        """What leaders are to copy to the tier still, and which leader epochs of what is there are to be found out:
        sentences."""
        sentences = []
        for (topic, index), truth in self._partitions.items():
            for node_id, replica in truth.replicas.items():
                log = replica.partition.log
                if not replica.is_alive or not log.config.remote_storage_enable:
                    continue
                start, end = log.log_start_offset, log.local_log_start_offset
                if start < end and log.leader_epochs.epoch_of(start) is None:
                    sentences.append(f"the leader epoch of {topic}-{index} at {start} is not known to node {node_id}")
                closed_end = log.active_segment_base_offset
                if replica.state.is_leader and log.tiered_end_offset < closed_end:
                    sentences.append(f"{topic}-{index} is in the tier up to {log.tiered_end_offset}, not {closed_end}")
        return sentences

    def _check_leader(self, name: str, truth: WatchedPartition, replica: WatchedReplica) -> None:
        if not _leads_what_is_committed(truth, replica):
            return
        last = truth.committed[-1]
        if not replica.has(last):
            self._violate(
                f"Committed: {name} leads epoch {replica.state.leader_epoch} and lacks what was committed up to offset "
                f"{last.end_offset}: its log ends at {replica.state.log_end_offset}"
            )

    def _check_producers(self, name: str, truth: WatchedPartition, replica: WatchedReplica) -> None:
        """What it remembers of them decides what it takes in again."""
        if not _leads_what_is_committed(truth, replica):
            return
        for producer_id, written in truth.producers.items():
            entry = replica.partition.log.producers.entries.get(producer_id)
            known = None if entry is None else (entry.epoch, entry.last_sequence)
            if known is None or known < written:
                self._violate(
                    f"Producers: {name} leads epoch {replica.state.leader_epoch}, and knows {known} of producer "
                    f"{producer_id}, of which epoch and sequence {written} are committed"
                )

    def _check_joining(self, name: str, truth: WatchedPartition, leader: WatchedReplica, added: frozenset[int]) -> None:
        """Those who begin to count for a leader without the metadata's word are those whom it proposes."""
        registration = truth.registration
        if registration is None or registration.leader_epoch != leader.state.leader_epoch or not truth.committed:
            return
        last = truth.committed[-1]
        for node_id in added - {*registration.isr, *registration.elr}:
            joining = truth.replicas.get(node_id)
            if (
                joining is not None
                and joining.is_alive
                and not joining.has(last)
                and not self._is_replaced(node_id, leader)
            ):
                self._violate(
                    f"Joining: {name} proposes node {node_id} for the ISR, which lacks what is committed below "
                    f"{last.end_offset}: its log ends at {joining.state.log_end_offset}"
                )

    def _is_replaced(self, node_id: int, leader: WatchedReplica) -> bool:
        """Whether the leader speaks of a process whose place another one has: the controller refuses that (KIP-903).

        A leader that was paused goes on with the fetches that came before, and with the metadata of that time.
        """
        proposal = leader.partition.state.pending_isr
        broker = None if self.image is None else self.image.brokers.get(node_id)
        if proposal is None or broker is None:
            return False
        return dict(proposal.members).get(NodeId(node_id), NO_BROKER_EPOCH) not in (NO_BROKER_EPOCH, broker.epoch)

    def _check_isr(self, place: str, truth: WatchedPartition) -> None:
        registration = truth.registration
        leader = None if registration is None else truth.replicas.get(registration.leader)
        if registration is None or leader is None or not leader.state.is_leader or not leader.is_alive:
            return
        if leader.state.leader_epoch != registration.leader_epoch:
            return
        rules = leader.partition.state
        missing = {*registration.isr, *registration.elr} - {registration.leader} - rules.maximal_isr
        if missing:
            self._violate(
                f"MaximalIsr: node {registration.leader}, the leader of {place}, counts "
                f"{sorted(rules.maximal_isr)}, but the metadata have the ISR {registration.isr} and the ELR "
                f"{registration.elr}"
            )
        if not truth.committed:
            return
        last = truth.committed[-1]
        for node_id in (*registration.isr, *registration.elr):
            member = truth.replicas.get(node_id)
            if member is None or not member.is_alive:
                continue
            if not member.has(last):
                which = f"ISR {registration.isr}" if node_id in registration.isr else f"ELR {registration.elr}"
                self._violate(
                    f"StrongIsr: node {node_id} is in the {which}, but lacks what is below {last.end_offset}, the high "
                    f"watermark of {place}: its log ends at {member.state.log_end_offset}"
                )
            elif self._is_flushed and not member.is_safe(last):
                self._violate(
                    f"Synced: node {node_id} has not synced what is below {last.end_offset}, the high watermark of "
                    f"{place}: no loss of power may take that"
                )

    def _violate(self, sentence: str) -> None:
        if sentence not in self.violations:
            self.violations.append(sentence)


def _leads_what_is_committed(truth: WatchedPartition, replica: WatchedReplica) -> bool:
    """There is something, and no other leads a later epoch."""
    return bool(truth.committed) and replica.state.leader_epoch >= max(truth.leaders)


def _ending_at(batches: list[Batch], end_offset: int) -> Batch | None:
    low, high = 0, len(batches)
    while low < high:
        middle = (low + high) // 2
        if batches[middle].end_offset < end_offset:
            low = middle + 1
        else:
            high = middle
    return batches[low] if low < len(batches) and batches[low].end_offset == end_offset else None


def _epochs(registration: PartitionRegistration) -> str:
    return f"leader epoch {registration.leader_epoch}, partition epoch {registration.partition_epoch}"
