"""Many readers of the tier at a time, stores that fail in their own way, and searches by timestamp."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from types import SimpleNamespace
from typing import cast
from uuid import UUID

import pytest
from memory_tier import MemoryTier

from penstock.broker.replicas.partition import Partition
from penstock.broker.replicas.rules.topic_counters import TopicCounters
from penstock.broker.replication.rules.replication_quota import ReplicationQuota
from penstock.broker.tiers.metadata_log import MetadataLog
from penstock.broker.tiers.rules.remote_segment import RemoteSegment, SegmentState, SegmentUpdate, TierPartition
from penstock.broker.tiers.rules.remote_segments import RemoteSegments
from penstock.broker.tiers.tier_loader import TierLoader
from penstock.broker.tiers.tier_reader import TierReader
from penstock.broker.tiers.timestamp_search import TimestampSearch
from penstock.protocol.batches import HEADER_SIZE, read_header
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import LeaderEpoch, NodeId, TopicId
from penstock.protocol.records import Record, write_batch
from penstock.storage.log.leader_epochs import LeaderEpochs
from penstock.storage.log.rules.file_names import OFFSET_INDEX
from penstock.storage.tiers.rules.segment_objects import indexes_key, log_key, pack_parts

TOPIC_ID = TopicId(UUID(int=9))
RECORDS = 60
WINDOW_BYTES = 1000
"""A record takes some 170 bytes: of a segment's 60, five or six are in a window."""
ROOM_BYTES = 4 * WINDOW_BYTES
FETCH_BYTES = 400


class Hosted(SimpleNamespace):
    """The part of a partition, and of its log, that reads of the tier ask for."""

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    def __init__(self, index: int) -> None:
        super().__init__(topic_id=TOPIC_ID, index=index, counters=TopicCounters())
        self.log = SimpleNamespace(
            name=f"t-{index}",
            leader_epochs=LeaderEpochs(((0, 0),)),
            log_start_offset=0,
            local_log_start_offset=RECORDS,
            log_end_offset=RECORDS,
        )

    @property
    def partition(self) -> Partition:
        return cast("Partition", self)


class Readers:
    """Consumers that read a partition each, from a tier that has one segment of each."""

    def __init__(self, count: int, *, value_bytes: int = 100, is_indexed: bool = True, pending_max: int = 100) -> None:
        loop = asyncio.get_running_loop()
        self.tier = MemoryTier()
        self.hosted = [Hosted(index) for index in range(count)]
        self.segments = [RemoteSegments() for _ in range(count)]
        self.keys = [self._copy(index, value_bytes, is_indexed=is_indexed) for index in range(count)]
        self.events = {index: asyncio.Event() for index in range(count)}
        executor = ThreadPoolExecutor(3)
        quota = ReplicationQuota(window_count=11, window_ms=1000)

        def now_ms() -> int:
            return int(loop.time() * 1000)

        self.loader = TierLoader(
            self.tier,
            executor,
            pending_max=pending_max,
            index_bytes_max=lambda: 1 << 20,
            quota=quota,
            on_loaded=lambda partition: self.events[partition.index].set(),
            loop=loop,
            monotonic_ms=now_ms,
            window_bytes=WINDOW_BYTES,
            windows_bytes=ROOM_BYTES,
        )
        metadata = cast("MetadataLog", self)
        self.reader = TierReader(self.loader, metadata, max_wait_ms=lambda: 500)
        self.search = TimestampSearch(
            self.tier,
            metadata,
            executor,
            searches_max=1,
            timeout_ms=lambda: 1000,
            quota=quota,
            loop=loop,
            monotonic_ms=now_ms,
        )

    def segments_of(self, _topic_id: TopicId, index: int) -> RemoteSegments:
        return self.segments[index]

    def is_current(self, _topic_id: TopicId, _index: int) -> bool:
        return True

    def _copy(self, index: int, value_bytes: int, *, is_indexed: bool) -> str:
        """Records with their offset for a timestamp."""
        batches = [write_batch([Record(offset, offset, None, bytes(value_bytes))]) for offset in range(RECORDS)]
        raw = b"".join(batches)
        size = len(batches[0])
        partition = TierPartition("t", TOPIC_ID, index)
        segment = RemoteSegment(
            partition=partition,
            id=UUID(int=index),
            start_offset=0,
            end_offset=RECORDS - 1,
            max_timestamp_ms=RECORDS - 1,
            broker_id=NodeId(1),
            event_ms=0,
            size_bytes=len(raw),
            leader_epochs=((LeaderEpoch(0), 0),),
            state=SegmentState.COPY_SEGMENT_STARTED,
            has_aborted_transactions=False,
        )
        entries = range(0, RECORDS, 2) if is_indexed else ()
        index_bytes = b"".join(number.to_bytes(4) + (number * size).to_bytes(4) for number in entries)
        place = (*partition, 0, segment.id)
        self.tier.put(log_key(*place), raw)
        self.tier.put(indexes_key(*place), pack_parts({OFFSET_INDEX: index_bytes}))
        self.segments[index].apply(segment)
        self.segments[index].apply(
            SegmentUpdate(
                partition=partition,
                id=segment.id,
                broker_id=NodeId(1),
                event_ms=0,
                state=SegmentState.COPY_SEGMENT_FINISHED,
            )
        )
        return log_key(*place)

    async def read_all(self, index: int) -> None:
        """Each record once, in order, by fetches that are answered in some turns of the loop."""
        hosted = self.hosted[index]
        offset = 0
        while offset < RECORDS:
            self.events[index].clear()
            found = self.reader.read(hosted.partition, offset, FETCH_BYTES, min_one_batch=True, with_aborted=False)
            if found is None:
                if self.reader.is_loading(hosted.partition, offset):
                    await self.events[index].wait()
                else:
                    await asyncio.sleep(0.001)
                continue
            data = b"".join(piece.read(0, piece.size) for piece in found.slices)
            position = 0
            while (
                len(data) - position >= HEADER_SIZE and len(data) >= read_header(data, position).size_bytes + position
            ):
                header = read_header(data, position)
                assert header.base_offset == offset
                offset = header.next_offset
                position += header.size_bytes
            assert position, "a whole batch"
            for _ in range(3):
                await asyncio.sleep(0)

    def loads(self) -> int:
        return sum(1 for call, key in self.tier.calls if call == "get" and key.endswith(".log"))


@pytest.mark.thorough
@pytest.mark.parametrize("count", [1, 4, 32, 100])
def test_a_window_is_loaded_once_however_many_readers_there_are(count: int) -> None:
    async def scenario() -> None:
        readers = Readers(count)
        async with asyncio.timeout(30):
            await asyncio.gather(*(readers.read_all(index) for index in range(count)))
        size = len(readers.tier.objects[readers.keys[0]])
        # A window begins with the batch that the one before has not got whole.
        windows = -(-size // (WINDOW_BYTES - size // RECORDS * 2))
        assert readers.loads() <= count * windows
        assert readers.loader.pending_count == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("value_bytes", [2 * WINDOW_BYTES, 2 * ROOM_BYTES])
def test_batches_larger_than_a_window_and_than_all_the_room_are_read(value_bytes: int) -> None:
    async def scenario() -> None:
        readers = Readers(3, value_bytes=value_bytes)
        async with asyncio.timeout(30):
            await asyncio.gather(*(readers.read_all(index) for index in range(3)))

    asyncio.run(scenario())


def test_a_segment_without_an_index_is_read() -> None:
    """Recovery on a full disk leaves one that was never written."""

    async def scenario() -> None:
        readers = Readers(5, is_indexed=False)
        async with asyncio.timeout(30):
            await asyncio.gather(*(readers.read_all(index) for index in range(5)))

    asyncio.run(scenario())


def test_readers_beyond_the_pending_loads_are_served_later() -> None:
    async def scenario() -> None:
        readers = Readers(20, pending_max=2)
        async with asyncio.timeout(30):
            await asyncio.gather(*(readers.read_all(index) for index in range(20)))

    asyncio.run(scenario())


@pytest.mark.thorough
def test_readers_that_never_come_back_do_not_hold_up_others() -> None:
    """Their connections ended while the loads were under way."""

    async def scenario() -> None:
        readers = Readers(20)
        for hosted in readers.hosted[1:]:
            readers.reader.read(hosted.partition, 0, FETCH_BYTES, min_one_batch=True, with_aborted=False)
            await asyncio.wait_for(readers.events[hosted.index].wait(), 5)
            readers.reader.read(hosted.partition, 0, FETCH_BYTES, min_one_batch=True, with_aborted=False)
        async with asyncio.timeout(30):
            await readers.read_all(0)

    asyncio.run(scenario())


def test_a_store_that_raises_something_else_is_an_error_of_storage(caplog: pytest.LogCaptureFixture) -> None:
    """A fetch must not wait for ever, nor the error be nowhere."""

    def explode(call: str, key: str) -> bool:
        raise RuntimeError(f"{call} of {key} is not what a store is to raise")

    async def scenario() -> None:
        readers = Readers(1)
        readers.tier.fails = explode
        with pytest.raises(KafkaError, match="not what a store is to raise") as refused:
            async with asyncio.timeout(30):
                await readers.read_all(0)
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert not readers.reader.is_loading(readers.hosted[0].partition, 0)
        readers.tier.fails = lambda _call, _key: False
        async with asyncio.timeout(30):
            await readers.read_all(0)

    asyncio.run(scenario())
    assert "Failed to read from the tier" in caplog.text


def test_an_object_that_is_shorter_than_its_segment_is_an_error_of_storage() -> None:
    async def scenario() -> None:
        readers = Readers(1)
        readers.tier.objects[readers.keys[0]] = readers.tier.objects[readers.keys[0]][:-1]
        with pytest.raises(KafkaError, match="ends at") as refused:
            async with asyncio.timeout(30):
                await readers.read_all(0)
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        with pytest.raises(KafkaError, match="ends") as refused:
            await readers.search.find_by_timestamp(readers.hosted[0].partition, RECORDS - 1)
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR

    asyncio.run(scenario())


def test_no_more_searches_are_under_way_than_may_be() -> None:
    """They share threads with reads."""

    async def scenario() -> None:
        readers = Readers(5)
        readers.tier.calls.clear()
        searches = (readers.search.find_by_timestamp(hosted.partition, 33) for hosted in readers.hosted)
        found = await asyncio.gather(*searches)
        assert [None if one is None else one.offset for one in found] == [33] * 5
        asked = [key.split("/")[2] for _, key in readers.tier.calls]
        assert len(asked) == 10
        assert len(list(groupby(asked))) == 5, "one after the other"

    asyncio.run(scenario())
