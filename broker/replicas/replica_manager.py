"""The partitions of this node: created, led and removed by metadata deltas, looked up by requests.

Kafka: `ReplicaManager`. A metadata publisher (`MetadataPublisher`), behind the configs. A partition is absent, hosted
(`Partition`) or offline, because its log directory has failed. Changes are applied in the order of the metadata, a few
at once and the others in later turns of the event loop, so that thousands of new partitions do not block requests;
until its turn comes, a partition keeps its old state. Partitions of a deleted topic are removed at once: a new topic of
the same name may exist already, and its requests must not reach the old logs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple, assert_never
from uuid import UUID

from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.ids import NO_LEADER_EPOCH, LeaderEpoch, NodeId, TopicId
from ...protocol.produce import NodeEndpoint
from ...quorum.metadata.delta import MetadataDelta
from ...quorum.metadata.image import EMPTY_IMAGE, ConfigResourceType, MetadataImage, PartitionRegistration, TopicImage
from ...quorum.metadata.records import NO_LEADER
from ...quorum.metadata.topics_delta import TopicDelta
from ...storage.disk.rules.disk_errors import leaves_directory_usable
from ...storage.log.rules.config import LogConfig
from ...storage.log.rules.producer_entry import ProducerEntry
from ...storage.log.rules.record_batch import ProducedBatch
from ...storage.log.rules.tiered_history import TieredHistory
from ..timing.purgatory import Purgatory
from ..timing.runtime import Runtime
from .change_queue import ChangeQueue
from .partition import Flusher, Partition
from .ports import AlterPartitions, Logs, ReplicaFetchers
from .rules.change_lines import log_changes
from .rules.damage import may_repair
from .rules.effects import (
    AdvanceHighWatermark,
    Effect,
    Follow,
    NoteLogStart,
    ProposeIsr,
    ReleaseWaiting,
    StartEpoch,
    StopFollowing,
)
from .rules.known_brokers import KnownBrokers
from .rules.refused_batches import RefusedByAbsence
from .rules.topic_counters import TopicCounters

logger = logging.getLogger(__name__)

SKIPPED_PER_CHANGE = 64
"""Partitions of other nodes that count as one change: skipping one takes some microseconds."""
CHECKED_PER_TURN: Final = 200
"""Partitions whose followers are checked in one turn of the loop: a fraction of a millisecond."""


class LeaderHint(NamedTuple):
    """A partition's current leader, for responses to clients that used a stale leader (KIP-951)."""

    leader: tuple[NodeId, LeaderEpoch]
    """Leader id and leader epoch; -1 each when unknown."""
    endpoint: NodeEndpoint | None
    """The leader's endpoint on the client's listener; None when it has none."""


class ReplicaManager:
    """Owns the hosted partitions and the delayed operations parked on them."""

    def __init__(
        self,
        *,
        node_id: NodeId,
        logs: Logs,
        flusher: Flusher,
        log_config: Callable[[MetadataImage, str], LogConfig],
        high_watermarks: Mapping[tuple[str, int], int],
        produces: Purgatory,
        fetches: Purgatory,
        deletes: Purgatory,
        make_fetchers: Callable[[ReplicaManager], ReplicaFetchers],
        alter_partitions: AlterPartitions,
        lag_ms_max: int,
        on_disk_error: Callable[[str, OSError], None],
        on_internal_change: Callable[[Partition], None],
        on_damage: Callable[[Partition], None],
        suspected: Container[NodeId],
        runtime: Runtime,
    ) -> None:
        """`lag_ms_max` is `replica.lag.time.max.ms`, by the monotonic clock. `high_watermarks` are those
        checkpointed before this start. `on_disk_error` takes a log directory offline, and then calls
        `on_directory_failure`. `on_internal_change` is called after every change of an internal topic's partition: a
        new leader or epoch, or its removal. `on_damage` reports a replica with a damaged log to the controller.
        Clients are not sent to `suspected` brokers.
        """
        self.produces = produces
        self.fetches = fetches
        self.deletes = deletes
        self.node_id = node_id
        self._brokers = KnownBrokers()
        self._fetchers = make_fetchers(self)
        self._alter_partitions = alter_partitions
        self._lag_ms_max = lag_ms_max
        self._monotonic_ms = runtime.monotonic_ms
        self._steady_clock_ms = runtime.steady_clock_ms
        self._logs = logs
        self._flusher = flusher
        self._log_config = log_config
        self._checkpointed = dict(high_watermarks)
        self._on_disk_error = on_disk_error
        self._on_internal_change = on_internal_change
        self._on_damage = on_damage
        self._suspected = suspected
        self._changes = ChangeQueue(runtime.loop, runtime.fail)
        self._image: MetadataImage = EMPTY_IMAGE
        self._hosted: dict[str, dict[int, Partition]] = {}
        # The same dictionaries by the bytes of the topic id, which compare without Python code.
        self._hosted_by_id: dict[bytes, dict[int, Partition]] = {}
        self._refused = RefusedByAbsence()
        self._counters: dict[str, TopicCounters] = {}
        # Of topics without a partition here any more, together: totals never fall.
        self._former_counters = TopicCounters()
        self.repair_count = 0
        """Damaged logs whose repair from the leader has begun, since start."""
        # Partitions whose sync failed before it began.
        self._unsynced: dict[Partition, None] = {}

    async def stop(self) -> None:
        """Nothing is fetched from leaders any more. Kafka: `ReplicaManager.shutdown`."""
        await self._fetchers.stop()

    # Finding a partition.

    @property
    def image(self) -> MetadataImage:
        return self._image

    def find(self, topic: str, index: int) -> Partition | None:
        """Returns the hosted partition, or None; `absence` has the reason."""
        partitions = self._hosted.get(topic)
        return None if partitions is None else partitions.get(index)

    def find_by_id(self, topic_id: bytes, index: int) -> Partition | None:
        """The same by the 16 bytes of the topic id."""
        partitions = self._hosted_by_id.get(topic_id)
        return None if partitions is None else partitions.get(index)

    def hosted_of(self, topic: str | None, topic_id: UUID | None) -> Mapping[int, Partition]:
        """Those of a topic by their index; the topic is given by its name or its id."""
        found = self._hosted.get(topic or "") if topic_id is None else self._hosted_by_id.get(topic_id.bytes)
        return {} if found is None else found

    def get_online(self, topic: str, index: int) -> Partition:
        """Returns the partition or raises KafkaError(`absence`). Kafka: `ReplicaManager.getPartitionOrException`."""
        partition = self.find(topic, index)
        if partition is None:
            raise KafkaError(self.absence(topic, index))
        return partition

    def absence(self, topic: str, index: int) -> ErrorCode:
        """Returns the error code for a partition that `find` does not return."""
        if (topic, index) in self._logs.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if self._image.topics.partition(topic, index) is not None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def note_refused(self, topic: str | UUID | None, index: int, batch: ProducedBatch, error: KafkaError) -> None:
        """Notes a batch that was refused because the partition is not hosted; it may be when the next batch comes."""
        if topic is not None:
            self._refused.note((topic, index), batch.header, error, self._monotonic_ms())

    def is_postponed(self, topic: str, index: int) -> bool:
        """True if a full disk kept the partition from opening; opening is retried."""
        return self._logs.offline.is_retried((topic, index))

    def has_switched_off_tier(self, topic: str) -> bool:
        """True for a topic without `remote.storage.enable`: what it has in a tier is to be deleted (KIP-950)."""
        return not self._log_config(self._image, topic).remote_storage_enable

    def topic_name(self, topic_id: TopicId) -> str | None:
        topic = self._image.topics.by_id.get(topic_id)
        return None if topic is None else topic.name

    def leader_hint(self, topic: str | None, index: int, listener_name: str) -> LeaderHint:
        registration = None if topic is None else self._image.topics.partition(topic, index)
        if registration is None or registration.leader in self._suspected:
            return LeaderHint((NO_LEADER, NO_LEADER_EPOCH), None)
        leader = (registration.leader, registration.leader_epoch)
        broker = self._image.brokers.get(registration.leader)
        endpoint = None if broker is None or broker.is_fenced else broker.endpoint(listener_name)
        if broker is None or endpoint is None:
            return LeaderHint(leader, None)
        return LeaderHint(leader, NodeEndpoint(broker.id, endpoint.host, endpoint.port, broker.rack))

    @property
    def hosted(self) -> Iterable[Partition]:
        return (partition for partitions in self._hosted.values() for partition in partitions.values())

    @property
    def counters(self) -> Mapping[str, TopicCounters]:
        """By topic, of those that have, or had, a partition here."""
        return self._counters

    def total_counters(self) -> TopicCounters:
        """Those of all topics together, gone ones too."""
        total = TopicCounters()
        for counters in (self._former_counters, *self._counters.values()):
            total.add(counters)
        return total

    def _forget_counters(self, topic: str) -> None:
        self._former_counters.add(self._counters.pop(topic, TopicCounters()))

    @property
    def offline_count(self) -> int:
        """Replicas of this node that are not hosted, because their log could not be opened or its directory failed."""
        return len(self._logs.offline)

    def high_watermarks(self) -> dict[tuple[str, int], int]:
        """Returns the content of `replication-offset-checkpoint`."""
        return {(partition.topic, partition.index): partition.state.high_watermark for partition in self.hosted}

    # Applying the metadata.

    async def settled(self) -> None:
        """Wait until all published deltas are applied."""
        await self._changes.settled()

    async def settled_soon(self) -> None:
        """The same, with the time limit of `ChangeQueue.settled_soon`."""
        await self._changes.settled_soon()

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._image = image
        self._brokers.registrations = image.brokers
        self._update_configs(delta)
        self._changes.add(self._changes_of(delta))

    def _changes_of(self, delta: MetadataDelta) -> list[Iterator[None]]:
        log_changes(delta)
        changes: list[Iterator[None]] = []
        for topic in delta.topics.deleted.values():
            partitions = self._hosted.pop(topic.name, {})
            self._forget_counters(topic.name)
            self._hosted_by_id.pop(topic.topic_id.bytes, None)
            for partition in partitions.values():
                self._take_offline(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            changes.append(self._remove_all(topic, partitions))
        for change in delta.topics.changed.values():
            changes.append(self._follow(change, is_first=delta.base.offset < 0))
        return changes

    def _follow(self, change: TopicDelta, *, is_first: bool) -> Iterator[None]:
        """Applies a topic's changes; yields after each hosted partition, and after some of those of other nodes.

        Kafka: `Partition.makeLeader`, `Partition.makeFollower`.
        """
        for index, registration in change.changed.items():
            if self.node_id in registration.replicas:
                # A partition in the first delta may have existed before the restart: it is not known to be new.
                is_new = not is_first and change.base_partition(index) is None
                self._assign(change.name, change.topic_id, index, registration, is_new=is_new)
                yield
            else:
                is_hosted = self.find(change.name, index) is not None
                self._leave(change.name, index)
                if is_hosted or index % SKIPPED_PER_CHANGE == 0:
                    yield

    def _remove_all(self, topic: TopicImage, partitions: Mapping[int, Partition]) -> Iterator[None]:
        """Yields as `_follow` does."""
        for index in range(len(topic.partitions)):
            partition = partitions.get(index)
            self._remove(topic.name, index, partition)
            if partition is not None or index % SKIPPED_PER_CHANGE == 0:
                yield

    def _update_configs(self, delta: MetadataDelta) -> None:
        topics: Iterable[str] = ()
        if any(resource.type == ConfigResourceType.BROKER for resource in delta.configs):
            # Topics inherit the broker's configs.
            topics = list(self._hosted)
        elif delta.configs:
            topics = [r.name for r in delta.configs if r.type == ConfigResourceType.TOPIC and r.name in self._hosted]
        for topic in topics:
            config = self._log_config(self._image, topic)
            self._logs.update_config(topic, config)
            for partition in self._hosted.get(topic, {}).values():
                count = config.min_insync_replicas
                self.apply_effects(partition, partition.state.set_min_insync_replicas(count, self._monotonic_ms()))

    def _assign(
        self,
        topic: str,
        topic_id: TopicId,
        index: int,
        registration: PartitionRegistration,
        *,
        is_new: bool,
        is_retry: bool = False,
    ) -> None:
        partition = self.find(topic, index)
        if partition is None:
            if topic_id not in self._image.topics.by_id:
                # The topic was deleted before this change had its turn.
                return
            if is_retry or (topic, index) not in self._logs.offline:
                partition = self._open(topic, topic_id, index, registration.directory_of(self.node_id), is_new=is_new)
            if partition is None:
                if may_repair(registration, self.node_id, is_hosted=False):
                    self._begin_repair(topic, index)
                return
        elif (
            partition.damage is not None
            and may_repair(registration, self.node_id, is_hosted=True)
            and self._begin_repair(topic, index, partition)
        ):
            return
        effects = partition.state.register(
            registration, log_end_offset=partition.log.log_end_offset, now_ms=self._monotonic_ms()
        )
        self.apply_effects(partition, effects)
        if partition.is_internal:
            self._on_internal_change(partition)
        # DeleteRecords waits for live replicas only, and one may be fenced now.
        self.deletes.check_and_complete(partition)
        if partition.watchers:
            # An idle partition of a fetch session must be read again if its follower has left the ISR.
            self.complete_fetches(partition)

    def _open(self, topic: str, topic_id: TopicId, index: int, directory_id: UUID, *, is_new: bool) -> Partition | None:
        try:
            return self._create(topic, topic_id, index, directory_id, is_new=is_new)
        except (CorruptData, OSError, KafkaError) as error:
            self._note_unopened(topic, index, error, is_new=is_new)
            return None

    def _begin_repair(self, topic: str, index: int, partition: Partition | None = None) -> bool:
        """Truncates a damaged log, or recreates it; `retry_offline_partitions` opens it later and follows the leader.

        Returns False if there is nothing to repair, as in a log directory that has failed.
        """
        if self.is_postponed(topic, index):
            return False
        offset = None if partition is None or partition.damage is None else partition.damage.offset
        try:
            if not self._logs.begin_repair(topic, index, offset):
                return False
        except OSError as error:
            logger.error("Failed to repair damaged log: topic=%s partition=%d reason=%s", topic, index, error)
            return False
        logger.warning("Repairing damaged log from the leader: topic=%s partition=%d", topic, index)
        self.repair_count += 1
        if partition is not None:
            self._checkpointed[topic, index] = partition.state.high_watermark
            del self._hosted[topic][index]
            self._take_offline(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            self.complete_waiting(partition)
        return True

    def _note_unopened(self, topic: str, index: int, error: Exception, *, is_new: bool) -> None:
        if not isinstance(error, OSError) or not leaves_directory_usable(error):
            self._logs.offline.fail((topic, index), error)
        elif self.is_postponed(topic, index):
            return
        else:
            self._logs.offline.refuse((topic, index), error, is_new=is_new)
        logger.error("Failed to open log, partition is offline: topic=%s partition=%d error=%s", topic, index, error)

    def retry_offline_partitions(self) -> None:
        """Hosts partitions whose logs were reopened, and retries what a full disk refused; called periodically.

        A log that turned out not to be readable while it was repaired is repaired as a whole: the metadata had been
        told before that it is lost, so that no change of them is to come.
        """
        for topic, index in self._logs.not_counted_on():
            registration = self._image.topics.partition(topic, index)
            if (
                registration is not None
                and self.node_id in registration.replicas
                and may_repair(registration, self.node_id, is_hosted=False)
            ):
                self._begin_repair(topic, index)
        for (topic, index), offline in self._logs.offline.retries().items():
            found = self._image.topics.by_name.get(topic)
            registration = self._image.topics.partition(topic, index)
            if found is not None and registration is not None and self.node_id in registration.replicas:
                self._assign(topic, found.topic_id, index, registration, is_new=offline.is_new, is_retry=True)
            else:
                self._logs.offline.forget((topic, index))
        unsynced, self._unsynced = self._unsynced, {}
        for partition in unsynced:
            partition.flush_again()

    def _create(self, topic: str, topic_id: TopicId, index: int, directory_id: UUID, *, is_new: bool) -> Partition:
        config = self._log_config(self._image, topic)
        log = self._logs.get_or_create(topic, index, topic_id, config, directory_id=directory_id, is_new=is_new)
        if log.damage is not None:
            # It must not lead: acknowledged records are lost, and the remaining log must not count as complete.
            raise log.damage.refusal(log.name)
        partition = Partition(
            node_id=self.node_id,
            brokers=self._brokers,
            lag_ms_max=self._lag_ms_max,
            topic=topic,
            topic_id=topic_id,
            index=index,
            log=log,
            high_watermark=self._checkpointed.pop((topic, index), log.log_start_offset),
            refused=self._refused.take(topic, topic_id, index),
            counters=self._counters.setdefault(topic, TopicCounters()),
            flusher=self._flusher,
            monotonic_ms=self._monotonic_ms,
            steady_clock_ms=self._steady_clock_ms,
            on_progress=self.complete_waiting,
            on_disk_error=self._report_disk_error,
            on_damage=self._on_damage,
        )
        self._logs.offline.forget((topic, index))
        partitions = self._hosted.setdefault(topic, {})
        partitions[index] = partition
        self._hosted_by_id[topic_id.bytes] = partitions
        return partition

    def apply_effects(self, partition: Partition, effects: Iterable[Effect]) -> None:
        """Carries out the effects of the partition's rules, in order."""
        for effect in effects:
            match effect:
                case StartEpoch():
                    partition.log.assign_leader_epoch(effect.leader_epoch)
                    logger.debug(
                        "Leader starts at leader epoch: topic=%s partition=%d leader_epoch=%d offset=%d",
                        partition.topic,
                        partition.index,
                        effect.leader_epoch,
                        effect.start_offset,
                    )
                case AdvanceHighWatermark():
                    self._complete_committed(partition)
                case ReleaseWaiting():
                    self.complete_waiting(partition)
                case NoteLogStart():
                    self.deletes.check_and_complete(partition)
                case ProposeIsr():
                    self._alter_partitions.submit(partition, effect.proposal)
                case Follow():
                    self._fetchers.follow(partition)
                case StopFollowing():
                    self._fetchers.unfollow(partition)
                case _:
                    assert_never(effect)

    def _leave(self, topic: str, index: int) -> None:
        """The partition is no longer assigned to this node. Kafka: `ReplicaManager.stopPartitions`."""
        partitions = self._hosted.get(topic, {})
        partition = partitions.pop(index, None)
        if partition is not None:
            if not partitions:
                del self._hosted[topic], self._hosted_by_id[partition.topic_id.bytes]
                self._forget_counters(topic)
            self._take_offline(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._remove(topic, index, partition)

    def _remove(self, topic: str, index: int, partition: Partition | None) -> None:
        """Deletes the log, if any, and completes the partition's operations; `find` does not return it any more."""
        self._logs.delete(topic, index)
        if partition is not None:
            self.complete_waiting(partition)

    # Events of hosted partitions.

    async def watch_followers(self) -> None:
        """Lets followers leave the ISR that fall behind; until cancelled. Kafka: `ReplicaManager.maybeShrinkIsr`."""
        while True:
            await asyncio.sleep(self._lag_ms_max / 2000)
            for number, partition in enumerate(list(self.hosted)):
                if number % CHECKED_PER_TURN == 0:
                    await asyncio.sleep(0)
                self.apply_effects(partition, partition.state.on_time(self._monotonic_ms()))

    def complete_waiting(self, partition: Partition) -> None:
        """Rechecks all delayed operations of the partition. Kafka: `DelayedOperations.checkAndCompleteAll`."""
        self.produces.check_and_complete(partition)
        self.complete_fetches(partition)
        self.deletes.check_and_complete(partition)

    def _complete_committed(self, partition: Partition) -> None:
        """The same after the high watermark advanced; followers' fetches do not wait for that."""
        self.produces.check_and_complete(partition)
        self.fetches.complete_in_turns(partition)
        self.deletes.check_and_complete(partition)
        for place, watcher in partition.watchers.items():
            watcher.mark_changed(place)

    def complete_fetches(self, partition: Partition) -> None:
        """The same for fetches alone: an append completes nothing else before the high watermark advances.

        A crowd of consumers is not answered before the producer is."""
        self.fetches.complete_in_turns(partition)
        if partition.watchers:
            # A response may start requests that change the watchers.
            for place, watcher in tuple(partition.watchers.items()):
                watcher.mark_ready(place)

    def on_retention(self, topic: str, index: int) -> None:
        """Retention advanced the log start offset: notifies leader and followers, completes fetches below it."""
        partition = self.find(topic, index)
        if partition is not None:
            self._fetchers.on_log_start(partition)
            self.complete_fetches(partition)

    def truncate(self, offsets: Mapping[Partition, int]) -> None:
        """Truncates followers' logs and completes operations on truncated records. Raises KafkaError (disk failure).

        Kafka: `Partition.truncateTo`.
        """
        by_directory: dict[str, dict[Partition, int]] = {}
        for partition, offset in offsets.items():
            by_directory.setdefault(partition.log.directory.rpartition("/")[0], {})[partition] = offset
        for some in by_directory.values():
            logs = {partition.log: offset for partition, offset in some.items()}
            try:
                next(iter(some)).with_storage_errors(partial(self._logs.truncate, logs))
            finally:
                for partition in some:
                    self._on_cut(partition)

    def restart(
        self,
        partition: Partition,
        offset: int,
        producers: Iterable[ProducerEntry],
        tiered: TieredHistory | None = None,
    ) -> None:
        """Truncates a follower's log fully and restarts it at `offset`, where the leader's log on its disk starts.

        `producers` is the leader's producer state below `offset`; `tiered` says what the tier has before it. Raises
        KafkaError when the disk fails.
        Kafka: `Partition.truncateFullyAndStartAt`.
        """
        try:
            partition.with_storage_errors(
                partial(self._logs.restart, partition.log, offset, producers, self._steady_clock_ms(), tiered)
            )
        finally:
            self._on_cut(partition)

    def _on_cut(self, partition: Partition) -> None:
        """Called after failures too: the log's end has changed even if truncation or restart did not finish."""
        if partition.error is ErrorCode.NONE:
            partition.on_cut()
            self.complete_waiting(partition)

    def on_directory_failure(self, path: str) -> None:
        """The log directory `path`, and with it its logs, has failed: the partitions answer KAFKA_STORAGE_ERROR.

        Kafka: `ReplicaManager.handleLogDirFailure`.
        """
        failed = [partition for partition in self.hosted if partition.log.directory.startswith(path + "/")]
        for partition in failed:
            del self._hosted[partition.topic][partition.index]
            self._take_offline(partition, ErrorCode.KAFKA_STORAGE_ERROR)
        for partition in failed:
            self.complete_waiting(partition)

    def _take_offline(self, partition: Partition, error: ErrorCode) -> None:
        partition.take_offline(error)
        self._fetchers.unfollow(partition)
        if partition.is_internal:
            self._on_internal_change(partition)

    def _report_disk_error(self, partition: Partition, error: OSError) -> None:
        if partition.is_flush_due:
            self._unsynced[partition] = None
        self._on_disk_error(partition.log.directory, error)
