"""Reads of a tier in memory: whose records are given away, and what a reader is told that cannot have them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from struct import Struct
from typing import cast
from uuid import UUID

import pytest
from memory_tier import MemoryTier
from waiting import ask_until

from penstock.broker.replicas.partition import Partition
from penstock.broker.replicas.rules.topic_counters import TopicCounters
from penstock.broker.replication.rules.replication_quota import ReplicationQuota
from penstock.broker.tiers.metadata_log import MetadataLog
from penstock.broker.tiers.rules.remote_segment import RemoteSegment, SegmentState, SegmentUpdate, TierPartition
from penstock.broker.tiers.rules.remote_segments import RemoteSegments
from penstock.broker.tiers.tier_loader import TierLoader
from penstock.broker.tiers.tier_reader import TierRead, TierReader
from penstock.broker.tiers.timestamp_search import TimestampSearch
from penstock.protocol.batches import iterate_headers
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import LeaderEpoch, NodeId, TopicId
from penstock.protocol.records import Record, write_batch
from penstock.storage.log.leader_epochs import LeaderEpochs
from penstock.storage.log.rules.aborted_transaction import AbortedTransaction
from penstock.storage.log.rules.file_names import OFFSET_INDEX, TRANSACTION_INDEX
from penstock.storage.tiers.rules.segment_objects import indexes_key, log_key, pack_parts

PARTITION = TierPartition("t", TopicId(UUID(int=9)), 0)
PRODUCER_ID = 7
OFFSET_ENTRY = Struct(">ii")
TRANSACTION_ENTRY = Struct(">hqqqq")
PLENTY = 100_000


@dataclass
class Log:
    """The part of a log that reads of the tier ask for."""

    leader_epochs: LeaderEpochs
    local_log_start_offset: int
    log_start_offset: int = 0
    name: str = "t-0"
    local_aborted: list[AbortedTransaction] = field(default_factory=list)

    @property
    def log_end_offset(self) -> int:
        return self.local_log_start_offset + 1

    def aborted_transactions(self, _start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        return [one for one in self.local_aborted if one.first_offset < end_offset]


class Tiered:
    """A partition with copies in a tier, and their reader."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.tier = MemoryTier()
        self.segments = RemoteSegments()
        self.is_everything_known = True
        self.topic_id, self.index = PARTITION.topic_id, PARTITION.partition_index
        self.counters = TopicCounters()
        executor = ThreadPoolExecutor(1)
        quota = ReplicationQuota(window_count=11, window_ms=1000)
        loop = asyncio.get_running_loop()
        loader = TierLoader(
            self.tier,
            executor,
            pending_max=10,
            index_bytes_max=lambda: PLENTY,
            quota=quota,
            on_loaded=lambda _partition: None,
            loop=loop,
            monotonic_ms=lambda: 0,
        )
        metadata = cast("MetadataLog", self)
        self.reader = TierReader(loader, metadata, max_wait_ms=lambda: 1)
        self.search = TimestampSearch(
            self.tier,
            metadata,
            executor,
            searches_max=1,
            timeout_ms=lambda: 1,
            quota=quota,
            loop=loop,
            monotonic_ms=lambda: 0,
        )

    def segments_of(self, _topic_id: TopicId, _index: int) -> RemoteSegments:
        return self.segments

    def is_current(self, _topic_id: TopicId, _index: int) -> bool:
        return self.is_everything_known

    def with_storage_errors(self, use: object) -> object:
        assert callable(use)
        return use()

    @property
    def partition(self) -> Partition:
        return cast("Partition", self)

    def copy(
        self, number: int, start: int, end: int, *epochs: tuple[int, int], aborted: Sequence[AbortedTransaction] = ()
    ) -> RemoteSegment:
        """Records [start, end], each in a batch, with its offset for a timestamp."""
        raw = b"".join(
            write_batch(
                [Record(offset=offset, timestamp_ms=offset, key=None, value=b"x")],
                leader_epoch=max(epoch for epoch, first in epochs if first <= offset),
            )
            for offset in range(start, end + 1)
        )
        segment = RemoteSegment(
            partition=PARTITION,
            id=UUID(int=number),
            start_offset=start,
            end_offset=end,
            max_timestamp_ms=end,
            broker_id=NodeId(1),
            event_ms=0,
            size_bytes=len(raw),
            leader_epochs=tuple((LeaderEpoch(epoch), first) for epoch, first in epochs),
            state=SegmentState.COPY_SEGMENT_STARTED,
            has_aborted_transactions=bool(aborted),
        )
        indexes = {
            OFFSET_INDEX: b"".join(
                OFFSET_ENTRY.pack(header.last_offset - start, position)
                for position, header in iterate_headers(raw)
                if header.base_offset % 3 == 0
            ),
            TRANSACTION_INDEX: b"".join(TRANSACTION_ENTRY.pack(0, *one) for one in aborted),
        }
        place = (*PARTITION, start, segment.id)
        self.tier.put(log_key(*place), raw)
        self.tier.put(indexes_key(*place), pack_parts(indexes))
        self.segments.apply(segment)
        self.segments.apply(
            SegmentUpdate(
                partition=PARTITION,
                id=segment.id,
                broker_id=NodeId(1),
                event_ms=0,
                state=SegmentState.COPY_SEGMENT_FINISHED,
            )
        )
        return segment

    async def ask(self, offset: int, *, with_aborted: bool = False, max_bytes: int = PLENTY) -> TierRead | None:
        return self.reader.read(self.partition, offset, max_bytes, min_one_batch=True, with_aborted=with_aborted)

    async def read(self, offset: int, *, with_aborted: bool = False, max_bytes: int = PLENTY) -> TierRead:
        ask = partial(self.ask, offset, with_aborted=with_aborted, max_bytes=max_bytes)
        found = await ask_until(ask, lambda found: found is not None, "the read")
        assert found is not None
        return found


def batches(found: TierRead) -> list[tuple[int, int]]:
    """Offset and leader epoch of each."""
    data = b"".join(piece.read(0, piece.size) for piece in found.slices)
    return [(header.base_offset, header.partition_leader_epoch) for _, header in iterate_headers(data)]


def test_records_of_a_dead_lineage_are_not_given_away() -> None:
    """An unclean election: the leader of epoch 6 had what came before offset 6, another one's copy has more."""

    async def scenario() -> None:
        tiered = Tiered(Log(LeaderEpochs(((5, 0), (6, 6))), 12))
        dead = AbortedTransaction(PRODUCER_ID, 3, 8, 3)
        live = AbortedTransaction(PRODUCER_ID + 1, 4, 7, 4)
        tiered.copy(1, 0, 9, (5, 0), aborted=[dead])
        tiered.copy(2, 4, 11, (5, 4), (6, 6), aborted=[live])
        found = await tiered.read(3, with_aborted=True)
        assert batches(found) == [(3, 5), (4, 5), (5, 5)]
        assert found.aborted == [(PRODUCER_ID + 1, 4)]
        assert batches(await tiered.read(6)) == [(offset, 6) for offset in range(6, 12)]
        assert batches(await tiered.read(3, max_bytes=1)) == [(3, 5)]
        by_time = await tiered.search.find_by_timestamp(tiered.partition, 8)
        assert by_time is not None
        assert (by_time.offset, by_time.leader_epoch) == (8, 6)

    asyncio.run(scenario())


def test_a_copy_of_several_epochs_of_the_log_is_read_to_its_end() -> None:
    async def scenario() -> None:
        tiered = Tiered(Log(LeaderEpochs(((5, 0), (6, 6))), 12))
        tiered.copy(1, 0, 11, (5, 0), (6, 6))
        assert batches(await tiered.read(4)) == [(4, 5), (5, 5)] + [(offset, 6) for offset in range(6, 12)]

    asyncio.run(scenario())


def test_aborted_transactions_are_told_once_all_metadata_are_known() -> None:
    """The marker lies in a copy that the replay has not come to."""

    async def scenario() -> None:
        tiered = Tiered(Log(LeaderEpochs(((5, 0),)), 12))
        tiered.copy(1, 0, 5, (5, 0))
        tiered.is_everything_known = False
        await ask_until(
            partial(tiered.ask, 3, with_aborted=False), lambda found: found is not None, "records of any kind"
        )
        assert await tiered.ask(3, with_aborted=True) is None
        tiered.is_everything_known = True
        with pytest.raises(KafkaError) as refused:
            await tiered.ask(3, with_aborted=True)
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        tiered.copy(2, 6, 11, (5, 6), aborted=[AbortedTransaction(PRODUCER_ID, 3, 8, 3)])
        assert (await tiered.read(3, with_aborted=True)).aborted == [(PRODUCER_ID, 3)]

    asyncio.run(scenario())


def test_a_damaged_header_in_the_tier_is_an_error_of_storage() -> None:
    async def scenario() -> None:
        tiered = Tiered(Log(LeaderEpochs(((5, 0),)), 12))
        segment = tiered.copy(1, 0, 11, (5, 0))
        tiered.tier.objects[log_key(*PARTITION, 0, segment.id)] = bytes(segment.size_bytes)
        with pytest.raises(KafkaError, match="has magic 0") as refused:
            await tiered.read(3)
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR

    asyncio.run(scenario())
