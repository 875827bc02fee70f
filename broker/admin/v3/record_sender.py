"""Records to their leaders: partitions chosen, batches written, answers waited for. Kafka: `KafkaProducer`.

A record is sent again only after an answer that says that it was not written. Without an answer it may or may not be:
the client is told, and decides.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Final, TypeAlias

from kio.schema.produce.v13.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v13.response import PartitionProduceResponse, ProduceResponse
from kio.static.primitive import Records, i16, i32
from msgspec import Struct

from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.murmur2 import partition_of_key
from ....protocol.records import Record, write_batch
from ....quorum.metadata.image import TopicImage
from ..operation import Call
from ..rules.kafka_answers import check
from .answers import REQUEST_TIMEOUT, gather
from .lookups import NO_LEADER

ALL: Final = -1
"""Of acks."""
RETRY_S: Final = 10.0
"""How long a new leader is waited for."""
RETRY_INTERVAL_S: Final = 0.1
NOT_WRITTEN: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NOT_ENOUGH_REPLICAS,
    }
)
"""A leader that is new, or one whose metadata are behind."""
OF_ONE_RECORD: Final = frozenset(
    {
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
    }
)
"""The whole batch is refused for what may be wrong with one record of it."""


class RecordToSend(Struct, frozen=True, kw_only=True):
    """`partition_id` None: the key chooses, or without one the sender."""

    partition_id: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


class Placed(Struct, frozen=True, kw_only=True):
    """Where a record was written."""

    partition_id: int
    offset: int
    timestamp_ms: int


Outcome: TypeAlias = "Placed | KafkaError"
_Numbered: TypeAlias = tuple[int, RecordToSend]


class RecordSender:
    """For one topic. Records of one partition are written in the order in which they are sent."""

    def __init__(self, call: Call, topic_name: str) -> None:
        self._call = call
        self._topic_name = topic_name
        # Records without a key go to one partition in each batch (KIP-480), to another one in the next.
        self._turn = call.node.wall_clock_ms()

    async def send(self, records: Sequence[RecordToSend]) -> list[Outcome]:
        """What became of each record, in their order."""
        outcomes: dict[int, Outcome] = {}
        by_partition = self._placed(records, outcomes)
        await self._send_all(by_partition, outcomes)
        alone = [
            {index: [one]}
            for index, some in by_partition.items()
            if len(some) > 1
            for one in some
            if isinstance(outcome := outcomes[one[0]], KafkaError) and outcome.code in OF_ONE_RECORD
        ]
        for one in alone:
            await self._send_all(one, outcomes)
        return [outcomes[number] for number in range(len(records))]

    def _placed(self, records: Sequence[RecordToSend], outcomes: dict[int, Outcome]) -> dict[int, list[_Numbered]]:
        try:
            partition_count = len(self._topic().partitions)
        except KafkaError as error:
            outcomes.update(dict.fromkeys(range(len(records)), error))
            return {}
        self._turn += 1
        by_partition: defaultdict[int, list[_Numbered]] = defaultdict(list)
        for number, record in enumerate(records):
            index = record.partition_id
            if index is None:
                key = record.key
                index = self._turn % partition_count if key is None else partition_of_key(key, partition_count)
            if index < partition_count:
                by_partition[index].append((number, record))
            else:
                outcomes[number] = KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"Topic {self._topic_name!r} has no partition {index}; its last one is {partition_count - 1}.",
                )
        return by_partition

    def _topic(self) -> TopicImage:
        topic = self._call.node.image.topics.by_name.get(self._topic_name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {self._topic_name!r}.")
        return topic

    async def _send_all(self, by_partition: dict[int, list[_Numbered]], outcomes: dict[int, Outcome]) -> None:
        loop = self._call.node.loop
        deadline_s = loop.time() + RETRY_S
        pending = dict(by_partition)
        while pending:
            answers = await self._try(pending)
            again: dict[int, list[_Numbered]] = {}
            for index, answer in answers.items():
                some = pending[index]
                if isinstance(answer, KafkaError) and answer.code in NOT_WRITTEN:
                    again[index] = some
                outcomes.update(_outcomes(index, some, answer))
            if not again or loop.time() >= deadline_s or self._topic_name not in self._call.node.image.topics.by_name:
                return
            pending = again
            await asyncio.sleep(RETRY_INTERVAL_S)

    async def _try(self, pending: dict[int, list[_Numbered]]) -> dict[int, PartitionProduceResponse | KafkaError]:
        try:
            topic = self._topic()
        except KafkaError as error:
            return dict.fromkeys(pending, error)
        by_leader: defaultdict[int, list[int]] = defaultdict(list)
        answers: dict[int, PartitionProduceResponse | KafkaError] = {}
        for index in pending:
            leader = topic.partitions[index].leader
            if leader == NO_LEADER:
                name = f"{self._topic_name}-{index}"
                answers[index] = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"Partition {name} has no leader.")
            else:
                by_leader[leader].append(index)
        asked = await gather(
            [partial(self._ask, leader, topic, indexes, pending) for leader, indexes in by_leader.items()]
        )
        for indexes, answer in zip(by_leader.values(), asked, strict=True):
            if isinstance(answer, KafkaError):
                answers.update(dict.fromkeys(indexes, answer))
            else:
                answers.update(answer)
        return answers

    async def _ask(
        self, leader: int, topic: TopicImage, indexes: Sequence[int], pending: dict[int, list[_Numbered]]
    ) -> dict[int, PartitionProduceResponse | KafkaError]:
        data = tuple(
            PartitionProduceData(index=i32(index), records=Records(_batch([one for _, one in pending[index]])))
            for index in indexes
        )
        request = ProduceRequest(
            transactional_id=None,
            acks=i16(ALL),
            timeout=REQUEST_TIMEOUT,
            topic_data=(TopicProduceData(topic_id=topic.topic_id, partition_data=data),),
        )
        answer = await self._call.node.ask_broker(leader, request, ProduceResponse, self._call.context)
        found: dict[int, PartitionProduceResponse | KafkaError] = dict.fromkeys(
            indexes, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        )
        for told in answer.responses:
            for partition in told.partition_responses:
                found[partition.index] = _checked(partition)
        return found


def _checked(partition: PartitionProduceResponse) -> PartitionProduceResponse | KafkaError:
    said = next((one.batch_index_error_message for one in partition.record_errors), None)
    try:
        check(partition.error_code, said or partition.error_message)
    except KafkaError as error:
        return error
    return partition


def _batch(records: Sequence[RecordToSend]) -> bytes:
    return write_batch(
        [
            Record(
                offset=offset,
                timestamp_ms=record.timestamp_ms,
                key=record.key,
                value=record.value,
                headers=record.headers,
            )
            for offset, record in enumerate(records)
        ]
    )


def _outcomes(
    index: int, some: Sequence[_Numbered], answer: PartitionProduceResponse | KafkaError
) -> dict[int, Outcome]:
    if isinstance(answer, KafkaError):
        return {number: answer for number, _ in some}
    appended = answer.log_append_time
    return {
        number: Placed(
            partition_id=index,
            offset=answer.base_offset + place,
            timestamp_ms=record.timestamp_ms if appended is None else round(appended.timestamp() * 1000),
        )
        for place, (number, record) in enumerate(some)
    }
