"""The topic `__remote_log_metadata`: events are produced to its leaders, and replayed from local replicas or leaders.

Kafka: `TopicBasedRemoteLogMetadataManager`, `ConsumerTask`. The leaders are asked by `MetadataLeaders`.

A partition of it is replayed while this node has a partition whose segments are told there, or leads it: who leads it
deletes what deleted topics have left in the tier. What was replayed stays in memory. Nothing but committed records is
replayed; a replica here is read up to its own high watermark, any other partition is asked of its leader.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Final

from ...protocol.batches import HEADER_SIZE, is_crc_valid, read_header
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.ids import TopicId
from ...protocol.records import Record, read_records
from ...quorum.metadata.image import TopicImage
from ...quorum.metadata.records import NO_LEADER
from ...storage.log.file_slice import FileSlice
from ..cluster.rules.offset_questions import OffsetTime
from ..replicas.partition import CHECK_BYTES, Partition
from ..replicas.replica_manager import ReplicaManager
from .metadata_leaders import READ_BYTES, WRITE_TIMEOUT_MS, MetadataLeaders, Peers
from .rules.metadata_records import METADATA_TOPIC, decode_event, encode_event, metadata_partition
from .rules.remote_segment import RemoteSegment, SegmentUpdate, TierPartition
from .rules.remote_segments import RemoteSegments

logger = logging.getLogger(__name__)

POLL_MS: Final = 500
"""How often leaders on other nodes are asked; local replicas say themselves that there is more."""
RECORDS_PER_TURN: Final = 500
"""Replayed before other requests have their turn: some milliseconds."""


class MetadataLog:
    def __init__(
        self,
        replicas: ReplicaManager,
        peers: Peers,
        ensure_topic: Callable[[], Awaitable[None]],
        *,
        loop: asyncio.AbstractEventLoop,
        wall_clock_ms: Callable[[], int],
    ) -> None:
        """`ensure_topic` makes the topic where it is missing, or begins to."""
        self._replicas = replicas
        self._leaders = MetadataLeaders(peers)
        self.ensure_topic = ensure_topic
        self._loop = loop
        self._wall_clock_ms = wall_clock_ms
        self._segments: dict[tuple[TopicId, int], RemoteSegments] = {}
        # By partition of the topic: what is replayed next.
        self._positions: dict[int, int] = {}
        # Those that were replayed once as far as their leader had them.
        self._current: set[int] = set()
        # How far each is waited for: then its leader is asked, whose high watermark a follower here learns later.
        self._targets: dict[int, int] = {}
        self._news = asyncio.Event()
        self._progress = asyncio.Condition()
        self._watched: dict[int, Partition] = {}

    @property
    def topic(self) -> TopicImage | None:
        return self._replicas.image.topics.by_name.get(METADATA_TOPIC)

    @property
    def record_count(self) -> int:
        """Segments that are remembered."""
        return sum(map(len, self._segments.values()))

    def segments_of(self, topic_id: TopicId, index: int) -> RemoteSegments:
        """What is known of a partition's segments; replayed as far as `catch_up` has seen to."""
        return self._segments.setdefault((topic_id, index), RemoteSegments())

    def is_current(self, topic_id: TopicId, index: int) -> bool:
        """Whether what is known of the partition was once all that there was."""
        topic = self.topic
        return topic is not None and metadata_partition(topic_id, index, len(topic.partitions)) in self._current

    def led_here(self) -> Iterator[tuple[tuple[TopicId, int], RemoteSegments]]:
        """The partitions told in what this node leads and has replayed."""
        topic = self.topic
        if topic is None:
            return
        count = len(topic.partitions)
        for key, segments in list(self._segments.items()):
            told_in = metadata_partition(*key, count)
            if told_in in self._current and self._leads(told_in):
                yield key, segments

    def _leads(self, index: int) -> bool:
        hosted = self._replicas.find(METADATA_TOPIC, index)
        return hosted is not None and hosted.state.is_leader

    def mark_changed(self, _place: object) -> None:
        """A local replica has more that is committed."""
        self._news.set()

    mark_ready = mark_changed

    # Writing.

    async def publish(self, events: Sequence[RemoteSegment | SegmentUpdate]) -> None:
        """Write events of one partition, and wait until they are replayed here. KafkaError: they may have been written
        all the same, and then are replayed like any other."""
        topic = self._existing_topic()
        first = events[0].partition
        index = metadata_partition(first.topic_id, first.partition_index, len(topic.partitions))
        now_ms = self._wall_clock_ms()
        records = [
            Record(offset=number, timestamp_ms=now_ms, key=None, value=encode_event(event))
            for number, event in enumerate(events)
        ]
        await self._wait_for(index, await self._leaders.produce(topic, index, records) + len(events))

    async def catch_up(self, topic_id: TopicId, partition_index: int) -> None:
        """Wait until all is replayed that the leader had committed when this was called. KafkaError."""
        topic = self._existing_topic()
        await self._catch_up(topic, metadata_partition(topic_id, partition_index, len(topic.partitions)))

    async def catch_up_led(self) -> None:
        """The same for what this node leads, and was never asked for. KafkaError."""
        topic = self._existing_topic()
        for index in range(len(topic.partitions)):
            if index not in self._current and self._leads(index):
                await self._catch_up(topic, index)

    async def _catch_up(self, topic: TopicImage, index: int) -> None:
        await self._wait_for(index, await self._leaders.offset_of(topic, index, OffsetTime.LATEST))
        self._current.add(index)

    def _existing_topic(self) -> TopicImage:
        topic = self.topic
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{METADATA_TOPIC} is not there yet")
        return topic

    async def _wait_for(self, index: int, offset: int) -> None:
        self._targets[index] = max(self._targets.get(index, 0), offset)
        self._news.set()
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_MS / 1000), self._progress:
                await self._progress.wait_for(lambda: self._positions.get(index, 0) >= offset)
        except TimeoutError:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, f"{METADATA_TOPIC}-{index} is not replayed up to offset {offset}"
            ) from None

    # Replaying.

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._news.clear()
            topic = self.topic
            if topic is not None:
                try:
                    await self._replay_all(topic, self._needed(len(topic.partitions)))
                except KafkaError as error:
                    logger.info("Remote log metadata cannot be read for now: reason=%s", error)
            try:
                async with asyncio.timeout(POLL_MS / 1000):
                    await self._news.wait()
            except TimeoutError:
                pass

    def _needed(self, count: int) -> set[int]:
        needed = {
            metadata_partition(partition.topic_id, partition.index, count)
            for partition in self._replicas.hosted
            if partition.log.config.remote_storage_enable
        }
        return needed | self._positions.keys() | {index for index in range(count) if self._leads(index)}

    async def _replay_all(self, topic: TopicImage, needed: Iterable[int]) -> None:
        by_leader: dict[int, list[int]] = {}
        for index in sorted(needed):
            self._positions.setdefault(index, 0)
            hosted = self._replicas.find(METADATA_TOPIC, index)
            if hosted is not None and hosted.error is ErrorCode.NONE:
                self._watch(index, hosted)
                is_read = await self._is_read_locally(index, hosted)
                if hosted.state.is_leader or (is_read and self._positions[index] >= self._targets.get(index, 0)):
                    continue
            if topic.partitions[index].leader != NO_LEADER:
                by_leader.setdefault(topic.partitions[index].leader, []).append(index)
        # One leader that does not answer holds up no other's.
        asking = (self._replay_remote(topic, leader, indexes) for leader, indexes in by_leader.items())
        for failure in await asyncio.gather(*asking, return_exceptions=True):
            if isinstance(failure, KafkaError):
                logger.info("Remote log metadata cannot be read for now: reason=%s", failure)
            elif failure is not None:
                raise failure

    def _watch(self, index: int, hosted: Partition) -> None:
        if self._watched.get(index) is not hosted:
            self._watched[index] = hosted
            hosted.watchers[self] = self

    async def _is_read_locally(self, index: int, hosted: Partition) -> bool:
        """False where this replica cannot be read: the other partitions can, and another replica may have it intact."""
        try:
            await self._replay_local(index, hosted)
        except (CorruptData, KafkaError) as error:
            logger.info("Failed to read remote log metadata here: partition=%d reason=%s", index, error)
            if isinstance(error, CorruptData):
                hosted.check(max(self._positions[index], hosted.log.log_start_offset), CHECK_BYTES)
            return False
        return True

    async def _replay_local(self, index: int, hosted: Partition) -> None:
        while True:
            offset = max(self._positions[index], hosted.log.log_start_offset)
            end_offset = hosted.state.high_watermark
            if offset >= end_offset:
                return
            data = hosted.read(offset, READ_BYTES, end_offset, True)
            try:
                raw = await self._loop.run_in_executor(None, _read_all, data.slices)
            except OSError as error:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
            if not await self._replay(index, raw, offset):
                return

    async def _replay_remote(self, topic: TopicImage, leader: int, indexes: Sequence[int]) -> None:
        positions = {index: self._positions[index] for index in indexes}
        for index, error, records in await self._leaders.fetch(topic, leader, positions):
            if error is ErrorCode.OFFSET_OUT_OF_RANGE:
                self._positions[index] = await self._leaders.offset_of(topic, index, OffsetTime.EARLIEST)
                self._news.set()
            elif error is not ErrorCode.NONE:
                logger.debug("Remote log metadata cannot be read for now: partition=%d reason=%s", index, error.name)
            elif records:
                try:
                    has_more = await self._replay(index, records, self._positions[index])
                except CorruptData as failure:
                    logger.info("Failed to read remote log metadata: partition=%d reason=%s", index, failure)
                    continue
                if has_more:
                    self._news.set()

    async def _replay(self, index: int, raw: bytes, start_offset: int) -> bool:
        """All whole batches; False when there was none. CorruptData at the first that is not intact."""
        position = since_pause = 0
        offset = start_offset
        try:
            while len(raw) - position >= HEADER_SIZE:
                header = read_header(raw, position)
                if position + header.size_bytes > len(raw):
                    break
                if not is_crc_valid(raw, position, header):
                    raise CorruptData(f"the batch at offset {header.base_offset} does not have its CRC")
                if not header.is_control:
                    batch = memoryview(raw)[position : position + header.size_bytes]
                    for record in read_records(batch, header):
                        if record.offset >= start_offset:
                            self._apply(index, record)
                        since_pause += 1
                        if since_pause % RECORDS_PER_TURN == 0:
                            await asyncio.sleep(0)
                position += header.size_bytes
                offset = header.next_offset
        finally:
            self._positions[index] = max(self._positions[index], offset)
            async with self._progress:
                self._progress.notify_all()
        return position > 0

    def _apply(self, index: int, record: Record) -> None:
        try:
            event = decode_event(record.value or b"")
        except CorruptData as error:
            # Were one that cannot be read to end the replay, no other partition's segments would be known.
            logger.error("Passed over remote log metadata: partition=%d offset=%d: %s", index, record.offset, error)
            return
        if event is None:
            return
        key = event.partition.topic_id, event.partition.partition_index
        segments = self.segments_of(*key)
        if not segments.apply(event):
            logger.debug(
                "Dropped remote log metadata that cannot follow: partition=%d offset=%d segment=%s state=%s",
                index,
                record.offset,
                event.id,
                event.state.name,
            )
        if not len(segments):
            del self._segments[key]


def tier_partition_of(partition: Partition) -> TierPartition:
    return TierPartition(partition.topic, partition.topic_id, partition.index)


def _read_all(slices: Sequence[FileSlice]) -> bytes:
    """In a thread. OSError."""
    return b"".join(piece.read(0, piece.size) for piece in slices)
