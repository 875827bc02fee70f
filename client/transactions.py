"""Transactions as the terminal sees and ends them, through Kafka's own protocol (KIP-664, KIP-890)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kio.schema.describe_producers.v0.request import DescribeProducersRequest, TopicRequest
from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.types import ProducerId, TopicName, TransactionalId
from kio.schema.write_txn_markers.v2.request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kio.static.primitive import i8, i16, i32, i64
from msgspec import Struct

from ..protocol.errors import CorruptData, ErrorCode, KafkaError
from .bootstrap import Bootstrap
from .connection import Connection

NOT_OPEN: Final = -1
_TRANSACTION: Final = 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ENDING: Final = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})


class TransactionListing(Struct, frozen=True, kw_only=True):
    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


class TransactionDescription(Struct, frozen=True, kw_only=True):
    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    # None when there is no transaction.
    started_ms: int | None
    partitions: tuple[tuple[str, int], ...]


class OpenTransaction(Struct, frozen=True, kw_only=True):
    """One that a partition knows of."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_written_ms: int


@dataclass(slots=True)
class Cluster:
    """One connection to each broker that is asked. All methods raise KafkaError, CorruptData or OSError."""

    stack: AsyncExitStack
    bootstrap: Bootstrap
    first: Connection
    addresses: dict[int, tuple[str, int]] = field(default_factory=dict)
    connections: dict[int, Connection] = field(default_factory=dict)

    async def metadata(self, topics: Iterable[str] | None = ()) -> Any:
        """None asks for all topics."""
        wanted = (
            None
            if topics is None
            else tuple(MetadataRequestTopic(topic_id=None, name=TopicName(name)) for name in topics)
        )
        answer: Any = await self.first.call(
            MetadataRequest(topics=wanted, allow_auto_topic_creation=False, include_topic_authorized_operations=False)
        )
        self.addresses = {int(broker.node_id): (broker.host, int(broker.port)) for broker in answer.brokers}
        return answer

    async def broker(self, broker_id: int) -> Connection:
        if not self.addresses:
            await self.metadata()
        if broker_id not in self.addresses:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker {broker_id} is not there.")
        if broker_id not in self.connections:
            connecting = _connect(self.bootstrap, *self.addresses[broker_id])
            self.connections[broker_id] = await self.stack.enter_async_context(await connecting)
        return self.connections[broker_id]

    async def list_all(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        duration_ms: int = -1,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """By transactional id, from all brokers."""
        await self.metadata()
        request = ListTransactionsRequest(
            state_filters=tuple(states),
            producer_id_filters=tuple(map(ProducerId, producer_ids)),
            duration_filter=i64(duration_ms),
            transactional_id_pattern=pattern,
        )
        found = []
        for broker_id in sorted(self.addresses):
            answer: Any = await (await self.broker(broker_id)).call(request)
            _check(answer.error_code)
            found += [
                TransactionListing(
                    transactional_id=one.transactional_id,
                    coordinator=broker_id,
                    producer_id=int(one.producer_id),
                    state=one.transaction_state,
                )
                for one in answer.transaction_states
            ]
        return sorted(found, key=lambda one: one.transactional_id)

    async def describe(self, transactional_id: str) -> TransactionDescription:
        found: Any = await self.first.call(
            FindCoordinatorRequest(key_type=i8(_TRANSACTION), coordinator_keys=(transactional_id,))
        )
        (coordinator,) = found.coordinators
        _check(coordinator.error_code, coordinator.error_message)
        broker_id = int(coordinator.node_id)
        self.addresses.setdefault(broker_id, (coordinator.host, int(coordinator.port)))
        return await self._describe(broker_id, transactional_id)

    async def _describe(self, broker_id: int, transactional_id: str) -> TransactionDescription:
        answer: Any = await (await self.broker(broker_id)).call(
            DescribeTransactionsRequest(transactional_ids=(TransactionalId(transactional_id),))
        )
        (told,) = answer.transaction_states
        _check(told.error_code)
        start_time = told.transaction_start_time
        started_ms = None if start_time is None else (start_time - _EPOCH) // timedelta(milliseconds=1)
        return TransactionDescription(
            transactional_id=transactional_id,
            coordinator=broker_id,
            producer_id=int(told.producer_id),
            producer_epoch=int(told.producer_epoch),
            state=told.transaction_state,
            timeout_ms=told.transaction_timeout // timedelta(milliseconds=1),
            started_ms=started_ms if told.transaction_state in _ENDING else None,
            partitions=tuple(
                (str(topic.topic), int(index)) for topic in told.topics for index in sorted(topic.partitions)
            ),
        )

    async def open_transactions(self, partitions: Mapping[tuple[str, int], int]) -> list[OpenTransaction]:
        """What these partitions know of, by their leaders' ids."""
        by_leader: dict[int, dict[str, list[i32]]] = {}
        for (topic, index), leader in partitions.items():
            by_leader.setdefault(leader, {}).setdefault(topic, []).append(i32(index))
        found = []
        for leader, topics in sorted(by_leader.items()):
            request = DescribeProducersRequest(
                topics=tuple(
                    TopicRequest(name=TopicName(topic), partition_indexes=tuple(indexes))
                    for topic, indexes in topics.items()
                )
            )
            answer: Any = await (await self.broker(leader)).call(request)
            for topic in answer.topics:
                for partition in topic.partitions:
                    _check(partition.error_code, partition.error_message)
                    found += [
                        OpenTransaction(
                            topic=str(topic.name),
                            partition=int(partition.partition_index),
                            producer_id=int(one.producer_id),
                            producer_epoch=int(one.producer_epoch),
                            coordinator_epoch=int(one.coordinator_epoch),
                            start_offset=int(one.current_txn_start_offset),
                            last_written_ms=int(one.last_timestamp),
                        )
                        for one in partition.active_producers
                        if one.current_txn_start_offset != NOT_OPEN
                    ]
        return sorted(found, key=lambda one: (one.topic, one.partition, one.start_offset))

    async def leaders(self, topics: Iterable[str] | None, broker_id: int | None = None) -> dict[tuple[str, int], int]:
        """Of the partitions of these topics, or of all, that this broker leads, or any."""
        answer = await self.metadata(topics)
        for topic in answer.topics:
            _check(topic.error_code, f"Topic {topic.name} does not exist." if topic.error_code == 3 else None)
        return {
            (str(topic.name), int(partition.partition_index)): int(partition.leader_id)
            for topic in answer.topics
            for partition in topic.partitions
            if partition.leader_id >= 0 and broker_id in (None, int(partition.leader_id))
        }

    async def hanging(self, found: Iterable[OpenTransaction]) -> list[OpenTransaction]:
        """Those that no coordinator knows to be open in their partition, so that they never end."""
        open_ = list(found)
        if not open_:
            return []
        listed = await self.list_all(producer_ids={one.producer_id for one in open_})
        known: set[tuple[int, str, int]] = set()
        for listing in listed:
            if listing.state in _ENDING:
                described = await self._describe(listing.coordinator, listing.transactional_id)
                known.update((described.producer_id, topic, index) for topic, index in described.partitions)
        return [one for one in open_ if (one.producer_id, one.topic, one.partition) not in known]

    async def abort(self, transaction: OpenTransaction, leader: int) -> None:
        """In its partition, without its coordinator."""
        marker = WritableTxnMarker(
            producer_id=ProducerId(transaction.producer_id),
            producer_epoch=i16(transaction.producer_epoch),
            transaction_result=False,
            topics=(
                WritableTxnMarkerTopic(
                    name=TopicName(transaction.topic), partition_indexes=(i32(transaction.partition),)
                ),
            ),
            # As Apache Kafka's tool: a partition without a marker so far says -1.
            coordinator_epoch=i32(max(transaction.coordinator_epoch, 0)),
        )
        answer: Any = await (await self.broker(leader)).call(WriteTxnMarkersRequest(markers=(marker,)))
        for told in answer.markers:
            for topic in told.topics:
                for partition in topic.partitions:
                    _check(partition.error_code)


@asynccontextmanager
async def open_cluster(bootstrap: Bootstrap) -> AsyncIterator[Cluster]:
    """Through the first address that answers. Raises what the last one gave instead."""
    failure: KafkaError | CorruptData | OSError | None = None
    async with AsyncExitStack() as stack:
        for address in bootstrap.addresses:
            try:
                first = await stack.enter_async_context(await _connect(bootstrap, address.host, address.port))
            except (KafkaError, CorruptData, OSError) as error:
                failure = error
            else:
                yield Cluster(stack, bootstrap, first)
                return
        assert failure is not None, "there is an address"
        raise failure


async def _connect(bootstrap: Bootstrap, host: str, port: int) -> Connection:
    return await bootstrap.connect(host, port)


def _check(error_code: int, message: str | None = None) -> None:
    """Raises KafkaError."""
    code = ErrorCode(int(error_code))
    if code is not ErrorCode.NONE:
        raise KafkaError(code, message or None)
