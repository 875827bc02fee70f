"""A transactional producer of the second version of the protocol (KIP-890), which speaks it itself.

No client in Python that runs on a loop does. A partition becomes part of a transaction by Produce, every transaction
has an epoch of its own, and whatever came to no answer is asked again, for as long as its caller waits. It has the
methods of `AIOKafkaProducer` that the simulation calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from random import Random
from typing import Any, Final, NamedTuple

from kio.schema.end_txn.v5.request import EndTxnRequest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.produce.v12.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.types import ProducerId, TopicName, TransactionalId
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta

from ...client.addresses import parse_addresses
from ...client.connection import Connection, connect
from ...protocol.errors import CorruptData, ErrorCode, KafkaError, error_info
from ...protocol.messages import Request
from ...protocol.records import Record, write_batch
from ..checkers.transactions import Place

# Key types of FindCoordinator.
GROUP_KEY: Final = 0
_TRANSACTION_KEY: Final = 1
_BACKOFF_S: Final = 0.1

Address = tuple[str, int]


class Delivered(NamedTuple):
    offset: int


class FormerProducer(NamedTuple):
    """Who a producer was, before another took over its transactional id."""

    producer_id: int
    producer_epoch: int
    next_sequences: dict[Place, int]


class BumpingProducer:
    def __init__(
        self, bootstrap: Sequence[str], transactional_id: str, *, client_id: str, request_timeout_ms: int,
        transaction_timeout_ms: int, leader: Callable[[Place], Address | None], now_ms: Callable[[], int],
        random: Random,
    ) -> None:  # fmt: skip
        """`leader` tells where a partition is led now."""
        self._addresses = [(one.host, one.port) for one in parse_addresses(",".join(bootstrap))]
        self._id = TransactionalId(transactional_id)
        self._client_id = client_id
        self._timeout_ms = request_timeout_ms
        self._transaction_timeout_ms = transaction_timeout_ms
        self._leader = leader
        self._now_ms = now_ms
        self._random = random
        self._producer_id = -1
        self._epoch = -1
        self._sequences: dict[Place, int] = {}
        self._coordinator: Address | None = None
        self._leaders: dict[Place, Address] = {}
        self._connections: dict[Address, Connection] = {}

    @property
    def former(self) -> FormerProducer:
        """Who it is, for when it is so no more."""
        return FormerProducer(self._producer_id, self._epoch, dict(self._sequences))

    async def start(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=self._id, transaction_timeout=milliseconds(self._transaction_timeout_ms)
        )
        answer = await self._ask_coordinator(request)
        self._become(answer)

    async def begin_transaction(self) -> None:
        """That is what the first Produce does."""

    async def send(self, topic: str, value: bytes, *, partition: int) -> asyncio.Future[Delivered]:
        place = Place(topic, partition)
        request = self._produce_request(place, value)
        delivered: asyncio.Future[Delivered] = asyncio.get_running_loop().create_future()
        delivered.set_result(Delivered(await self._produce(place, request)))
        return delivered

    async def commit_transaction(self) -> None:
        await self._end(is_commit=True)

    async def abort_transaction(self) -> None:
        await self._end(is_commit=False)

    async def stop(self) -> None:
        for address in list(self._connections):
            await self._drop(address)

    def _produce_request(self, place: Place, value: bytes) -> ProduceRequest:
        """Of one record, with the next sequence of the partition."""
        sequence = self._sequences.get(place, 0)
        self._sequences[place] = sequence + 1
        batch = write_batch(
            [Record(0, self._now_ms(), None, value)], base_sequence=sequence, is_transactional=True,
            producer_id=self._producer_id, producer_epoch=self._epoch,
        )  # fmt: skip
        data = (PartitionProduceData(index=i32(place.partition), records=Records(batch)),)
        return ProduceRequest(
            transactional_id=self._id, acks=i16(-1), timeout=milliseconds(self._timeout_ms),
            topic_data=(TopicProduceData(name=TopicName(place.topic), partition_data=data),),
        )  # fmt: skip

    async def _end(self, *, is_commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self._id, producer_id=ProducerId(self._producer_id), producer_epoch=i16(self._epoch),
            committed=is_commit,
        )  # fmt: skip
        self._become(await self._ask_coordinator(request))

    def _become(self, answer: Any) -> None:
        """As whom it goes on: with an epoch that begins with sequence 0 everywhere."""
        self._producer_id, self._epoch = int(answer.producer_id), int(answer.producer_epoch)
        self._sequences.clear()

    # Asking again.

    async def _ask_coordinator(
        self, request: Request, code_of: Callable[[Any], int] = lambda answer: int(answer.error_code)
    ) -> Any:
        """The answer that has no error. Raises KafkaError for what asking again does not mend."""
        while True:
            try:
                if self._coordinator is None:
                    self._coordinator = await self._find_coordinator(_TRANSACTION_KEY, self._id)
                answer = await self._ask(self._coordinator, request)
                check(code_of(answer))
            except KafkaError as error:
                if not error_info(error.code).is_retriable:
                    raise
                if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                    self._coordinator = None
            except (OSError, CorruptData):
                self._coordinator = None
            else:
                return answer
            await asyncio.sleep(_BACKOFF_S)

    async def _find_coordinator(self, key_type: int, key: str) -> Address:
        wanted = FindCoordinatorRequest(key_type=i8(key_type), coordinator_keys=(key,))
        answer = await self._ask(self._random.choice(self._addresses), wanted)
        (found,) = answer.coordinators
        check(found.error_code)
        return found.host, int(found.port)

    async def _produce(self, place: Place, request: Request) -> int:
        """Returns the offset, or -1 when only the answer before told it."""
        while True:
            try:
                if place not in self._leaders:
                    leader = self._leader(place)
                    if leader is None:
                        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
                    self._leaders[place] = leader
                answer = await self._ask(self._leaders[place], request)
                told = answer.responses[0].partition_responses[0]
                check(told.error_code)
            except KafkaError as error:
                if error.code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                    return -1
                if not error_info(error.code).is_retriable:
                    raise
                self._leaders.pop(place, None)
            except (OSError, CorruptData):
                self._leaders.pop(place, None)
            else:
                return int(told.base_offset)
            await asyncio.sleep(_BACKOFF_S)

    async def _ask(self, address: Address, request: Request) -> Any:
        try:
            connection = self._connections.get(address)
            if connection is None:
                connection = await connect(*address, client_id=self._client_id, timeout_ms=self._timeout_ms)
                self._connections[address] = connection
            return await connection.call(request)
        except (OSError, CorruptData):
            await self._drop(address)
            raise

    async def _drop(self, address: Address) -> None:
        connection = self._connections.pop(address, None)
        if connection is not None:
            await connection.close()


def milliseconds(count: int) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(milliseconds=count))


def check(code: int) -> None:
    """Raises KafkaError."""
    if int(code):
        raise KafkaError(ErrorCode(int(code)))
