"""Random lives of a whole node on a disk in memory: clients at work, the disk full, the power or the process gone.

What is held after each start: whatever was acknowledged or shown to a consumer is there, at its offset, once; offsets
have no gap; what a topic of the same name had before is gone; every topic, partition count and configuration is one
that was acknowledged, or asked for last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from errno import ESTALE
from random import Random
from typing import Any, TypeVar, TypeVarTuple, cast

import pytest
from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.fetch.v18.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.types import ProducerId, TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from other_tasks import end_other_tasks
from produce_requests import produce_request

from penstock.broker.configuration.node_config import load
from penstock.broker.node.server import Node
from penstock.client.connection import Connection, connect
from penstock.protocol.batches import iterate_headers
from penstock.protocol.errors import ConfigError, CorruptData, ErrorCode
from penstock.protocol.records import Record, read_records, write_batch
from penstock.storage.disk.files import Files
from penstock.storage.disk.memory_files import MemoryFiles

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MINUTE = i32Timedelta.parse(timedelta(minutes=1))
NO_WAIT = i32Timedelta.parse(timedelta())
TOPIC = "orders"
PARTITIONS = 2
GONE = (ConnectionError, TimeoutError, CorruptData)
RETENTION = "retention.ms"

PROPERTIES = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "log.dirs": "/data",
    "log.flush.interval.messages": "1",
    "log.retention.ms": "-1",
    "log.dir.reserve.bytes": "0",
    # Everything that is done now and then is done all the time.
    "log.roll.ms": "40",
    "log.initial.task.delay.ms": "0",
    "log.flush.offset.checkpoint.interval.ms": "7",
    "log.flush.start.offset.checkpoint.interval.ms": "11",
    "replica.high.watermark.checkpoint.interval.ms": "13",
    "log.retention.check.interval.ms": "17",
    "log.segment.delete.delay.ms": "5",
    "metadata.log.max.record.bytes.between.snapshots": "1500",
}


class InlineLoop(asyncio.SelectorEventLoop):
    """What goes to the executor is done in a later turn: the same seed then asks the disk in nearly the same order."""

    def run_in_executor(self, _: Any, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self.create_future()

        def work() -> None:
            if not future.cancelled():
                try:
                    future.set_result(func(*args))
                except Exception as error:
                    future.set_exception(error)

        self.call_soon(work)
        return future


class ProcessFiles:
    """The disk as one process sees it: when the process is gone, nothing that is left of it gets to the disk."""

    def __init__(self, disk: MemoryFiles) -> None:
        self._disk = disk
        self.is_dead = False

    def __getattr__(self, name: str) -> Any:
        if self.is_dead:
            raise OSError(ESTALE, "the process is gone")
        return getattr(self._disk, name)


@dataclass(slots=True, kw_only=True)
class Producer:
    """One idempotent producer, which sends a batch again until it is acknowledged."""

    name: int
    producer_id: int = -1
    sequences: dict[int, int] = field(default_factory=dict)
    # Partition and number of records of the batch that has no answer yet.
    pending: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What the clients know of a topic that comes and goes."""

    partition_count: int = 1
    retention_ms: str = "-1"


class Life:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.disk = MemoryFiles()
        self.now_ms = 1_700_000_000_000
        self.files = ProcessFiles(self.disk)
        self.node: Node
        self.producers = [Producer(name=number) for number in range(3)]
        self.producer_ids: set[int] = set()
        # What was acknowledged or read, by partition and offset.
        self.known: dict[int, dict[int, bytes]] = {index: {} for index in range(PARTITIONS)}
        # By name, all states that it may have; more than one while an answer is missing.
        self.topics: dict[str, set[Topic | None]] = {name: {None} for name in ("x", "y")}
        # By topic id: how many records were acknowledged, and the id that the topic had when it was deleted.
        self.acknowledged: dict[object, int] = {}
        self.deleted_ids: set[object] = set()

    # The node

    def wall_clock_ms(self) -> int:
        self.now_ms += self.random.randrange(10)
        return self.now_ms

    async def start(self) -> None:
        self.files = ProcessFiles(self.disk)
        self.node = Node(
            load(PROPERTIES),
            cast(Files, self.files),
            loop=asyncio.get_running_loop(),
            wall_clock_ms=self.wall_clock_ms,
            random=self.random,
        )
        await self.node.start()

    async def end(self, *, is_power_lost: bool) -> None:
        """Whatever the process was doing, it does no more."""
        self.files.is_dead = True
        self.disk.heal()
        self.disk.capacity_bytes = None
        if is_power_lost:
            self.disk.crash(self.random)
        else:
            self.disk.kill()
        # What was about to begin finds that the disk is gone.
        await end_other_tasks()
        # Not earlier: a connection cannot be taken in when its listener is closed in the turn in which it was accepted.
        with suppress(AssertionError):
            self.node.parts.listeners.close()

    async def connect(self) -> Connection:
        return await connect("127.0.0.1", self.node.bound_ports["PLAINTEXT"])

    async def restart(self) -> None:
        """Start, sometimes on a disk that fails in the middle of it."""
        while self.random.random() < 0.2:
            self.disk.fail(skip=self.random.randrange(200), count=None)
            with suppress(ConfigError):
                await self.start()
            await self.end(is_power_lost=True)
        await self.start()

    async def live(self) -> None:
        """Clients at work, and then the end of the process in one of the ways that there are."""
        workers = [self.produce(producer) for producer in self.producers]
        tasks = [asyncio.ensure_future(self.serve(worker)) for worker in (*workers, self.administer, self.consume)]
        way = self.random.choice(["power", "power", "kill", "disk", "disk", "full", "full", "stop"])
        if way == "disk":
            self.disk.fail(skip=self.random.randrange(150), count=None)
            await asyncio.wait([self.node.failure], timeout=0.1)
        else:
            await self.pass_turns()
        if way == "full":
            used_bytes = self.disk.total_bytes("/data") - self.disk.free_bytes("/data")
            self.disk.capacity_bytes = used_bytes + self.random.randrange(5_000)
            await self.pass_turns()
            assert not self.node.failure.done()
            if self.random.random() < 0.5:
                self.disk.capacity_bytes = None
                await self.pass_turns()
        if way == "stop":
            await self.node.stop()
        for task in tasks:
            if task.done():
                task.result()
        await self.end(is_power_lost=way != "kill")
        for task in tasks:
            if not task.cancelled():
                task.result()

    async def pass_turns(self) -> None:
        for _ in range(self.random.randrange(400)):
            await asyncio.sleep(0)

    async def serve(self, work: Callable[[Connection], Coroutine[Any, Any, None]]) -> None:
        with suppress(*GONE):
            async with await self.connect() as connection:
                await work(connection)

    # The clients

    def produce(self, producer: Producer) -> Callable[[Connection], Coroutine[Any, Any, None]]:
        async def work(connection: Connection) -> None:
            if producer.producer_id < 0:
                answer: Any = await connection.call(
                    InitProducerIdRequest(
                        transactional_id=None,
                        transaction_timeout=MINUTE,
                        producer_id=ProducerId(-1),
                        producer_epoch=i16(-1),
                    )
                )
                if answer.error_code:
                    return
                assert answer.producer_id not in self.producer_ids, "an id was given twice"
                producer.producer_id = answer.producer_id
                self.producer_ids.add(answer.producer_id)
            topic_id = await self.topic_id(connection, TOPIC)
            while topic_id is not None and not self.node.failure.done():
                await self.send(connection, producer, topic_id)

        return work

    async def send(self, connection: Connection, producer: Producer, topic_id: Any) -> None:
        if producer.pending is None:
            producer.pending = self.random.randrange(PARTITIONS), self.random.randint(1, 3)
        partition, count = producer.pending
        sequence = producer.sequences.get(partition, 0)
        values = [b"%d %d" % (producer.name, sequence + number) for number in range(count)]
        acks = self.random.choice([1, -1])
        error, base_offset = await self.append(
            connection, topic_id, partition, values, acks, producer_id=producer.producer_id, sequence=sequence
        )
        if error == ErrorCode.NONE:
            for offset, value in enumerate(values, base_offset):
                assert self.known[partition].setdefault(offset, value or b"") == value
            producer.sequences[partition] = sequence + count
            producer.pending = None
        else:
            assert error in (
                ErrorCode.KAFKA_STORAGE_ERROR,
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                ErrorCode.REQUEST_TIMED_OUT,
                ErrorCode.UNKNOWN_TOPIC_ID,
            ), error
            await asyncio.sleep(0.001)

    async def append(
        self,
        connection: Connection,
        topic_id: Any,
        partition: int,
        values: list[bytes],
        acks: int = -1,
        *,
        producer_id: int = -1,
        sequence: int = -1,
    ) -> tuple[ErrorCode, int]:
        now_ms = self.wall_clock_ms()
        batch = write_batch(
            [Record(offset=n, timestamp_ms=now_ms, key=None, value=value) for n, value in enumerate(values)],
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence,
        )
        answer: Any = await connection.call(produce_request(topic_id, partition, batch, acks=acks))
        result = answer.responses[0].partition_responses[0]
        return ErrorCode(int(result.error_code)), result.base_offset

    async def consume(self, connection: Connection) -> None:
        topic_id = await self.topic_id(connection, TOPIC)
        offsets = dict.fromkeys(range(PARTITIONS), 0)
        while topic_id is not None and not self.node.failure.done():
            for partition in offsets:
                for offset, value in await self.fetch(connection, topic_id, partition, offsets[partition]):
                    assert self.known[partition].setdefault(offset, value or b"") == value
                    offsets[partition] = offset + 1

    async def administer(self, connection: Connection) -> None:
        while not self.node.failure.done():
            name = self.random.choice(sorted(self.topics))
            (state,) = self.topics[name]
            action = self.random.choice(["delete", "configure", "extend", "append"])
            if state is None:
                await self.change(connection, name, Topic(), self.creation(name))
            elif action == "delete":
                topic_id = await self.topic_id(connection, name)
                await self.change(connection, name, None, DeleteTopicsRequest(topics=(_named(name),), timeout=MINUTE))
                if self.topics[name] == {None}:
                    self.deleted_ids.add(topic_id)
            elif action == "configure":
                value = str(self.random.randrange(10**12, 10**13))
                await self.change(connection, name, replace(state, retention_ms=value), _alteration(name, value))
            elif action == "extend":
                count = state.partition_count + 1
                await self.change(connection, name, replace(state, partition_count=count), _extension(name, count))
            else:
                await self.append_to_passing_topic(connection, name)

    async def append_to_passing_topic(self, connection: Connection, name: str) -> None:
        topic_id = await self.topic_id(connection, name)
        if topic_id is not None:
            error, offset = await self.append(connection, topic_id, 0, [str(topic_id).encode()])
            if error == ErrorCode.NONE:
                assert offset >= self.acknowledged.get(topic_id, 0)
                self.acknowledged[topic_id] = offset + 1

    async def change(self, connection: Connection, name: str, after: Topic | None, request: Any) -> None:
        self.topics[name].add(after)
        answer: Any = await connection.call(request)
        (result,) = getattr(answer, "topics", None) or getattr(answer, "responses", None) or answer.results
        error = ErrorCode(int(result.error_code))
        assert error in (ErrorCode.NONE, ErrorCode.NOT_CONTROLLER, ErrorCode.INVALID_REPLICATION_FACTOR), error
        if error == ErrorCode.NONE:
            self.topics[name] = {after}
        else:
            raise ConnectionError("the node has failed")

    def creation(self, name: str) -> CreateTopicsRequest:
        topic = CreatableTopic(
            name=TopicName(name), num_partitions=i32(1), replication_factor=i16(1), assignments=(), configs=()
        )
        return CreateTopicsRequest(topics=(topic,))

    # What is there

    async def topic_id(self, connection: Connection, name: str) -> Any:
        described = await self.describe(connection, name)
        return None if described is None else described.topic_id

    async def describe(self, connection: Connection, name: str) -> Any:
        answer: Any = await connection.call(
            MetadataRequest(
                topics=(MetadataRequestTopic(topic_id=None, name=TopicName(name)),),
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=False,
            )
        )
        (topic,) = answer.topics
        return topic if topic.error_code == ErrorCode.NONE else None

    async def fetch(
        self, connection: Connection, topic_id: Any, partition: int, offset: int
    ) -> list[tuple[int, bytes | None]]:
        wanted = FetchPartition(partition=i32(partition), fetch_offset=i64(offset), partition_max_bytes=i32(1 << 20))
        answer: Any = await connection.call(
            FetchRequest(
                max_wait=NO_WAIT,
                min_bytes=i32(1),
                isolation_level=i8(0),
                topics=(FetchTopic(topic_id=topic_id, partitions=(wanted,)),),
                forgotten_topics_data=(),
                session_epoch=i32(-1),
            )
        )
        result = answer.responses[0].partitions[0]
        if result.error_code:
            return []
        data = memoryview(result.records or b"")
        return [
            (record.offset, record.value)
            for position, header in iterate_headers(data)
            for record in read_records(data[position : position + header.size_bytes], header)
            if record.offset >= offset
        ]

    async def read_all(self, connection: Connection, topic_id: Any, partition: int) -> list[bytes]:
        found: list[tuple[int, bytes | None]] = []
        while more := await self.fetch(connection, topic_id, partition, len(found)):
            found += more
        assert [offset for offset, _ in found] == list(range(len(found)))
        return [value or b"" for _, value in found]

    async def check(self) -> None:
        async with await self.connect() as connection:
            topic_id = await self.topic_id(connection, TOPIC)
            for partition, known in self.known.items():
                values = await self.read_all(connection, topic_id, partition)
                for offset, value in known.items():
                    assert values[offset : offset + 1] == [value], (partition, offset)
                known.update(enumerate(values))
                for producer in self.producers:
                    mine = [value for value in values if value.startswith(b"%d " % producer.name)]
                    assert mine == [b"%d %d" % (producer.name, number) for number in range(len(mine))]
                    assert len(mine) >= producer.sequences.get(partition, 0)
            for name, states in self.topics.items():
                found, found_id = await self.look_at(connection, name)
                assert found in states, (name, found, states)
                assert found_id not in self.deleted_ids
                self.topics[name] = {found}

    async def look_at(self, connection: Connection, name: str) -> tuple[Topic | None, object]:
        topic = await self.describe(connection, name)
        if topic is None:
            return None, None
        values = await self.read_all(connection, topic.topic_id, 0)
        assert set(values) <= {str(topic.topic_id).encode()}
        assert len(values) >= self.acknowledged.get(topic.topic_id, 0)
        resource = DescribeConfigsResource(resource_type=i8(2), resource_name=name, configuration_keys=(RETENTION,))
        answer: Any = await connection.call(DescribeConfigsRequest(resources=(resource,)))
        assert [one.leader_id for one in topic.partitions] == [1] * len(topic.partitions)
        retention_ms = answer.results[0].configs[0].value
        return Topic(partition_count=len(topic.partitions), retention_ms=retention_ms), topic.topic_id


def _named(name: str) -> DeleteTopicState:
    return DeleteTopicState(name=TopicName(name), topic_id=None)


def _alteration(name: str, value: str) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name=RETENTION, config_operation=i8(0), value=value)
    resource = AlterConfigsResource(resource_type=i8(2), resource_name=name, configs=(config,))
    return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)


def _extension(name: str, count: int) -> CreatePartitionsRequest:
    topic = CreatePartitionsTopic(name=TopicName(name), count=i32(count), assignments=None)
    return CreatePartitionsRequest(topics=(topic,), timeout=MINUTE, validate_only=False)


async def lives(seed: int, count: int) -> None:
    async with asyncio.timeout(60):
        await _lives(Life(seed), count)


async def _lives(life: Life, count: int) -> None:
    await life.start()
    async with await life.connect() as connection:
        request = life.creation(TOPIC)
        topic = replace(request.topics[0], num_partitions=i32(PARTITIONS))
        answer: Any = await connection.call(replace(request, topics=(topic,)))
        assert answer.topics[0].error_code == ErrorCode.NONE
    for _ in range(count):
        await life.live()
        await life.restart()
        await life.check()
    assert any(life.known.values()), "nothing was written: this run shows nothing"
    await life.node.stop()


@pytest.mark.parametrize("seed", range(5))
def test_everything_acknowledged_survives_whatever_ends_the_process(seed: int) -> None:
    with asyncio.Runner(loop_factory=InlineLoop) as runner:
        runner.run(lives(seed, count=5))
