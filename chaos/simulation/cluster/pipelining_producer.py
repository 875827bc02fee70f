"""An idempotent producer with several batches in flight, which speaks the protocol itself, as librdkafka does.

`aiokafka` has one batch of a partition in flight. This one sends up to five in one burst, some of which come before a
change of leader or ISR and some behind it; it asks again, in the order of the sequences, whatever came to no answer.
Of a producer that does so no batch is ever out of order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from struct import Struct
from typing import Any, Final, NamedTuple

from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.produce.v12.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.types import TopicName
from kio.static.primitive import Records, i16, i32

from ....client.addresses import parse_addresses
from ....client.connection import connect
from ....protocol.apis import ApiKey
from ....protocol.errors import CorruptData, ErrorCode, KafkaError, error_info
from ....protocol.messages import decode_response, encode_request
from ....protocol.records import Record, write_batch
from ...checkers.records import Sent
from ...checkers.transactions import Place
from ...workloads.bumping_producer import check, milliseconds
from .clients import History
from .loop import SimulatedLoop
from .simulated_client import RevivingClient

_IN_FLIGHT_MAX: Final = 5
_BACKOFFS_S: Final = (0.005, 0.02, 0.1)
# Between two bursts, on average.
_PACES_S: Final = (0.02, 0.05, 0.2)
_PRODUCE_VERSION: Final = 12
_SIZE: Final = Struct(">i")


class _Unanswered(NamedTuple):
    number: int
    frame: bytes


class _NotInTurnError(Exception):
    """An answer that a producer of this kind never gets."""


class PipeliningProducer(RevivingClient):
    """One after the other, until `is_stopping`."""

    failures = (KafkaError, OSError, CorruptData)
    is_idempotent = True

    def __init__(
        self, name: str, bootstrap: Sequence[str], history: History, *, loop: SimulatedLoop, random: Random,
        request_timeout_ms: int, leader: Callable[[Place], int | None], now_ms: Callable[[], int],
        trace: Callable[[str], None],
    ) -> None:  # fmt: skip
        """`leader` tells which node leads a partition now; the place of a node in `bootstrap` is its id, less one."""
        super().__init__(name, "10.0.1.41", history.errors, loop=loop, random=random)
        self.acknowledged_count = 0
        self._addresses = [(one.host, one.port) for one in parse_addresses(",".join(bootstrap))]
        self._history = history
        self._timeout_ms = request_timeout_ms
        self._leader = leader
        self._now_ms = now_ms
        self._trace = trace

    async def _live(self, name: str) -> None:
        try:
            await self._produce(name)
        except _NotInTurnError as error:
            self._history.violations.append(str(error))
            self.is_stopping = True

    async def _produce(self, name: str) -> None:
        address = self._random.choice(self._addresses)
        async with await connect(*address, client_id=name, timeout_ms=self._timeout_ms) as connection:
            answer: Any = await connection.call(
                InitProducerIdRequest(transactional_id=None, transaction_timeout=milliseconds(60_000))
            )
        check(answer.error_code)
        writers = [
            _PartitionWriter(self, name, partition, int(answer.producer_id), int(answer.producer_epoch))
            for partition in range(self._history.partition_count)
        ]
        await asyncio.gather(*(writer.run() for writer in writers))


class _PartitionWriter:
    """The bursts of one life to one partition."""

    def __init__(self, owner: PipeliningProducer, name: str, partition: int, producer_id: int, epoch: int) -> None:
        self._owner = owner
        self._name = name
        self._place = Place(owner._history.topic, partition)
        self._producer_id = producer_id
        self._epoch = epoch
        self._sent = owner._history.sent.setdefault((name, partition), [])
        self._unanswered: deque[_Unanswered] = deque()
        self._pace_s = owner._random.choice(_PACES_S)
        self._backoff_s = owner._random.choice(_BACKOFFS_S)

    async def run(self) -> None:
        owner = self._owner
        while not owner.is_stopping or self._unanswered:
            node_id = owner._leader(self._place)
            if node_id is None or node_id < 1:
                await asyncio.sleep(self._backoff_s)
                continue
            try:
                reader, writer = await asyncio.open_connection(*owner._addresses[node_id - 1])
            except OSError:
                await asyncio.sleep(self._backoff_s)
                continue
            try:
                await self._send_bursts(reader, writer)
            except (OSError, asyncio.IncompleteReadError):
                owner._history.errors["burst"] += 1
            finally:
                writer.transport.abort()
            await asyncio.sleep(self._backoff_s)

    async def _send_bursts(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until an answer says to ask again, all of the burst have come to theirs."""
        owner = self._owner
        while not owner.is_stopping or self._unanswered:
            if not owner.is_stopping:
                self._fill()
            burst = list(self._unanswered)
            for one in burst:
                writer.write(one.frame)
                if owner._random.random() < 0.3:
                    await asyncio.sleep(owner._random.expovariate(1 / 0.002))
            is_whole = True
            async with asyncio.timeout(owner._timeout_ms / 1000):
                for one in burst:
                    is_whole = await self._take_answer(reader, one) and is_whole
            if not is_whole:
                return
            await asyncio.sleep(owner._random.expovariate(1 / self._pace_s))

    def _fill(self) -> None:
        owner = self._owner
        for _ in range(owner._random.randint(1, _IN_FLIGHT_MAX)):
            if len(self._unanswered) == _IN_FLIGHT_MAX:
                return
            number = len(self._sent)
            value = f"{self._name} {self._place.partition} {number} ".encode()
            self._sent.append(Sent(producer=self._name, number=number, value=value))
            batch = write_batch(
                [Record(0, owner._now_ms(), None, value)], base_sequence=number, producer_id=self._producer_id,
                producer_epoch=self._epoch,
            )  # fmt: skip
            data = (PartitionProduceData(index=i32(self._place.partition), records=Records(batch)),)
            request = ProduceRequest(
                transactional_id=None, acks=i16(-1), timeout=milliseconds(owner._timeout_ms),
                topic_data=(TopicProduceData(name=TopicName(self._place.topic), partition_data=data),),
            )  # fmt: skip
            frame = encode_request(ApiKey.PRODUCE, _PRODUCE_VERSION, number, self._name, request)
            self._unanswered.append(_Unanswered(number, frame))

    async def _take_answer(self, reader: asyncio.StreamReader, one: _Unanswered) -> bool:
        """False: it is to be sent again."""
        owner = self._owner
        (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
        _, response = decode_response(ApiKey.PRODUCE, _PRODUCE_VERSION, await reader.readexactly(size))
        answer: Any = response
        told = answer.responses[0].partition_responses[0]
        code = ErrorCode(int(told.error_code))
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._unanswered.remove(one)
            offset = -1 if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER else int(told.base_offset)
            owner.acknowledged_count += 1
            owner._trace(f"acknowledged {self._sent[one.number].value!r} {offset}")
            owner._history.on_acknowledged(self._sent, one.number, self._place.partition, offset)
            return True
        owner._history.errors[code.name] += 1
        if not error_info(code).is_retriable:
            raise _NotInTurnError(
                f"{self._name} was told {code.name} of sequence {one.number} in partition {self._place.partition}, and "
                f"has none before {self._unanswered[0].number} to send again"
            )
        return False
