"""A transactional producer of the first version of the protocol, which speaks it itself and need not be patient.

`aiokafka` waits for the answer of every batch before it ends a transaction, so no batch of it is ever on its way behind
the end. Others do not: a client whose delivery timeout is over aborts, and goes on under a new epoch. It also commits
offsets in its transactions one by one, and does not ask a second time: what came to no answer may yet happen.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kio.schema.add_offsets_to_txn.v3.request import AddOffsetsToTxnRequest
from kio.schema.add_partitions_to_txn.v3.request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kio.schema.end_txn.v4.request import EndTxnRequest
from kio.schema.offset_commit.v9 import request as offset_commit
from kio.schema.offset_fetch.v9.request import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kio.schema.txn_offset_commit.v3 import request as txn_offset_commit
from kio.schema.types import GroupId, ProducerId, TopicName
from kio.static.primitive import i16, i32, i64

from ...protocol.messages import Request
from ..checkers.transactions import Place
from .bumping_producer import GROUP_KEY, Address, BumpingProducer, Delivered, check

_NO_EPOCH: Final = i32(-1)


class GaveUpError(Exception):
    """A batch was not answered in time; it may be appended at any time until its producer has a new epoch."""


class FirstVersionProducer(BumpingProducer):
    """All of a life has one epoch, and one row of sequences."""

    def __init__(self, *arguments: Any, patience_s: float, **options: Any) -> None:
        """For `patience_s` a batch is waited for."""
        super().__init__(*arguments, **options)
        self._patience_s = patience_s
        self._parts: set[Place] = set()
        self._given_up: list[asyncio.Future[int]] = []

    async def send(self, topic: str, value: bytes, *, partition: int) -> asyncio.Future[Delivered]:
        """Raises GaveUpError."""
        place = Place(topic, partition)
        if place not in self._parts:
            await self._add(place)
        request = self._produce_request(place, value)
        producing = asyncio.ensure_future(self._produce(place, request))
        await asyncio.wait([producing], timeout=self._patience_s)
        if not producing.done():
            self._given_up.append(producing)
            raise GaveUpError
        delivered: asyncio.Future[Delivered] = asyncio.get_running_loop().create_future()
        delivered.set_result(Delivered(producing.result()))
        return delivered

    async def _add(self, place: Place) -> None:
        topic = AddPartitionsToTxnTopic(name=TopicName(place.topic), partitions=(i32(place.partition),))
        await self._ask_coordinator(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._id,
                v3_and_below_producer_id=ProducerId(self._producer_id),
                v3_and_below_producer_epoch=i16(self._epoch),
                v3_and_below_topics=(topic,),
            ),
            code_of=_code_of_partition,
        )
        self._parts.add(place)

    async def _end(self, *, is_commit: bool) -> None:
        self._parts.clear()
        await self._ask_coordinator(
            EndTxnRequest(
                transactional_id=self._id, producer_id=ProducerId(self._producer_id),
                producer_epoch=i16(self._epoch), committed=is_commit,
            )
        )  # fmt: skip

    async def stop(self) -> None:
        for producing in self._given_up:
            producing.cancel()
        await asyncio.gather(*self._given_up, return_exceptions=True)
        await super().stop()

    # Offsets.

    async def find_group(self, group: str) -> Address:
        """Its coordinator. Raises as `Connection.call`, KafkaError."""
        return await self._find_coordinator(GROUP_KEY, group)

    async def add_group(self, group: str) -> None:
        """To the transaction."""
        await self._ask_coordinator(
            AddOffsetsToTxnRequest(
                transactional_id=self._id, producer_id=ProducerId(self._producer_id),
                producer_epoch=i16(self._epoch), group_id=GroupId(group),
            )
        )  # fmt: skip

    async def commit_offset(self, coordinator: Address, group: str, place: Place, offset: int) -> None:
        """In no transaction, as a consumer that is no member. Once. Raises as `Connection.call`, KafkaError."""
        one = offset_commit.OffsetCommitRequestPartition(
            partition_index=i32(place.partition), committed_offset=i64(offset), committed_metadata=None
        )
        topic = offset_commit.OffsetCommitRequestTopic(name=TopicName(place.topic), partitions=(one,))
        request = offset_commit.OffsetCommitRequest(
            group_id=GroupId(group), generation_id_or_member_epoch=_NO_EPOCH, member_id="", topics=(topic,)
        )
        await self._ask_for_place(coordinator, request)

    async def commit_offset_in_transaction(self, coordinator: Address, group: str, place: Place, offset: int) -> None:
        """Once. Raises as `Connection.call`, KafkaError."""
        one = txn_offset_commit.TxnOffsetCommitRequestPartition(
            partition_index=i32(place.partition), committed_offset=i64(offset), committed_metadata=None
        )
        topic = txn_offset_commit.TxnOffsetCommitRequestTopic(name=TopicName(place.topic), partitions=(one,))
        request = txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=self._id, group_id=GroupId(group), producer_id=ProducerId(self._producer_id),
            producer_epoch=i16(self._epoch), topics=(topic,),
        )  # fmt: skip
        await self._ask_for_place(coordinator, request)

    async def fetch_offset(self, coordinator: Address, group: str, place: Place) -> int:
        """What is stable. Raises as `Connection.call`, KafkaError."""
        topic = OffsetFetchRequestTopics(name=TopicName(place.topic), partition_indexes=(i32(place.partition),))
        wanted = OffsetFetchRequestGroup(
            group_id=GroupId(group), member_id=None, member_epoch=_NO_EPOCH, topics=(topic,)
        )
        answer = await self._ask(coordinator, OffsetFetchRequest(groups=(wanted,), require_stable=True))
        (told,) = answer.groups
        check(told.error_code)
        (one,) = told.topics[0].partitions
        check(one.error_code)
        return int(one.committed_offset)

    async def _ask_for_place(self, address: Address, request: Request) -> None:
        answer = await self._ask(address, request)
        check(answer.topics[0].partitions[0].error_code)


def _code_of_partition(answer: Any) -> int:
    """Of AddPartitionsToTxn, in the form of its latest version."""
    return int(answer.results_by_transaction[0].topic_results[0].results_by_partition[0].partition_error_code)
