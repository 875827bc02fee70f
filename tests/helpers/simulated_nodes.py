"""Three simulated machines with whole nodes, a topic with a replica on each, and a client that notes promises.

Time is virtual and everything that can end badly is at hand: processes, power, links and disks.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from random import Random
from types import CoroutineType
from typing import TypeVar
from uuid import UUID

from kio.schema.create_topics.v7.request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.fetch.v18.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v18.response import FetchResponse
from kio.schema.produce.v13.request import ProduceRequest
from kio.schema.produce.v13.response import ProduceResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from produce_requests import produce_request

from penstock.broker.replicas.partition import Partition
from penstock.chaos.simulation.cluster.loop import new_loop
from penstock.chaos.simulation.cluster.machine import BROKER_PORT, CONTROLLER_PORT, Machine, host_of
from penstock.chaos.simulation.cluster.network import Network
from penstock.chaos.simulation.cluster.process import Process
from penstock.client.connection import Connection, connect
from penstock.protocol.apis import ApiKey
from penstock.protocol.batches import iterate_headers
from penstock.protocol.errors import CorruptData, ErrorCode, KafkaError
from penstock.protocol.messages import encode_request
from penstock.protocol.records import Record, read_records, write_batch
from penstock.quorum.metadata.image import PartitionRegistration

T = TypeVar("T")

NODES = (1, 2, 3)
TOPIC = "promised"
START_MS = 1_767_225_600_000
CONTROLLERS = (4, 5, 6)
SETTINGS = {
    "broker.session.timeout.ms": "1500",
    "broker.heartbeat.interval.ms": "375",
    "replica.lag.time.max.ms": "1000",
    # Who leads is what the test makes of it.
    "auto.leader.rebalance.enable": "false",
}
# Of the simulation's time: longer than any session, back-off or election.
DEADLINE_S = 60.0
PRODUCE_TIMEOUT_MS = 400
GONE = (ConnectionError, TimeoutError, CorruptData)


@contextmanager
def simulated_nodes(
    min_isr: int,
    *,
    is_flushed: bool = False,
    has_own_controllers: bool = False,
    settings: Mapping[str, str] = SETTINGS,
    seed: int = 1,
) -> Iterator[SimulatedNodes]:
    """`min_isr` is the topic's `min.insync.replicas`; `is_flushed` gives it `flush.messages=1`."""
    configs = {"min.insync.replicas": str(min_isr), **({"flush.messages": "1"} if is_flushed else {})}
    nodes = SimulatedNodes(configs, has_own_controllers=has_own_controllers, settings=settings, seed=seed)
    try:
        yield nodes
    finally:
        nodes.close()


class SimulatedNodes:
    """Node 1 leads at first. What the disks lose with their power is drawn from `seed`.

    Brokers are controllers too, so that whatever happens to one happens to both; with `has_own_controllers` these are
    three machines more, which nothing happens to.
    """

    def __init__(
        self, configs: Mapping[str, str], *, has_own_controllers: bool, settings: Mapping[str, str], seed: int
    ) -> None:
        random = Random(seed)
        self.loop = loop = new_loop(Random(random.getrandbits(64)))
        self.network = loop.network = Network(loop, Random(random.getrandbits(64)), lambda _: None)
        self.client = Process("client", "10.0.1.1")
        # What was acknowledged, by its offset.
        self.acknowledged: dict[int, bytes] = {}
        self._processes = [self.client]
        voters = CONTROLLERS if has_own_controllers else NODES
        self.machines = {
            node_id: Machine(
                node_id,
                voters,
                {**settings, **_roles(node_id, has_own_controllers)},
                loop=loop,
                network=self.network,
                wall_clock_ms=lambda: START_MS + int(loop.time() * 1000),
                random=Random(random.getrandbits(64)),
                trace=lambda _: None,
                on_failure=lambda _machine, _reason: None,
            )
            for node_id in sorted({*voters, *NODES})
        }
        self.start(*self.machines)
        self.wait(lambda: all(machine.is_ready for machine in self.machines.values()), "start of all nodes")
        self._create_topic(configs)
        self.wait_in_sync(*NODES)

    def close(self) -> None:
        """End what is left of all processes: no later test sees their exceptions."""
        self.loop.on_exception = lambda _: None
        for process in self._processes:
            process.is_dead = process.is_paused = False
            for task in process._tasks:
                _close_unbegun(task)
                task.cancel()
        self.loop.run_for(10)
        for process in self._processes:
            self.network.end_process(process, is_told=False)
        self.loop.close()

    # Time.

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        end_s = self.loop.time() + DEADLINE_S
        while not condition():
            assert self.loop.time() < end_s, f"no {what} within {DEADLINE_S} virtual seconds"
            self.loop.run_for(0.02)

    def pass_ms(self, milliseconds: int) -> None:
        self.loop.run_for(milliseconds / 1000)

    def ask(self, work: Callable[[], Awaitable[T]]) -> T:
        """As the client, which is a process of its own."""

        async def wait() -> T:
            return await work()

        task: asyncio.Task[T] = self.client.run(lambda: self.loop.create_task(wait()))
        self.wait(task.done, "answer")
        return task.result()

    # What the metadata say.

    def registration(self) -> PartitionRegistration | None:
        """As the node that has heard most says."""
        images = [
            machine.node.metadata.image
            for machine in self.machines.values()
            if machine.node is not None and machine.is_ready
        ]
        newest = max(images, key=lambda image: image.offset, default=None)
        return None if newest is None else newest.topics.partition(TOPIC, 0)

    @property
    def leader_id(self) -> int:
        """-1 while there is none."""
        found = self.registration()
        return -1 if found is None else found.leader

    def wait_leader(self, *node_ids: int) -> int:
        """Until one of these leads, and knows so; without any, one that is up."""
        wanted = node_ids or NODES

        def leads() -> bool:
            partition = self.hosted(self.leader_id)
            return self.leader_id in wanted and partition is not None and partition.state.is_leader

        self.wait(leads, f"leader among {wanted}")
        return self.leader_id

    def wait_in_sync(self, *node_ids: int) -> None:
        def are_in_sync() -> bool:
            found = self.registration()
            return found is not None and found.leader >= 0 and set(found.isr) == set(node_ids)

        self.wait(are_in_sync, f"in-sync replicas {node_ids}")

    def _have_followers_fetched(self) -> bool:
        """A follower that was refused by a leader which was not one yet fetches again a second later: a producer that
        waits for it would run into its timeout."""
        leader = self.hosted(self.leader_id)
        return leader is not None and all(one.log_end_offset >= 0 for one in leader.state.in_sync_followers())

    def hosted(self, node_id: int) -> Partition | None:
        machine = self.machines.get(node_id)
        if machine is None or machine.node is None or not machine.is_ready:
            return None
        return machine.node.parts.partitions.find(TOPIC, 0)

    # What happens.

    def start(self, *node_ids: int) -> None:
        for node_id in node_ids:
            machine = self.machines[node_id]
            machine.files.heal()
            machine.start()
            assert machine.process is not None
            self._processes.append(machine.process)

    def kill(self, *node_ids: int, has_power: bool = True) -> None:
        """At once. Without power what was not synced is gone, or some of it."""
        for node_id in node_ids:
            self.machines[node_id].kill(has_power=has_power)

    def isolate(self, node_id: int) -> None:
        """From the other nodes that have replicas, which hear no more of it; clients reach it."""
        for other in NODES:
            if other != node_id:
                self.network.cut(host_of(node_id), host_of(other))
                self.network.cut(host_of(other), host_of(node_id))
                # What is under way would arrive when the link is healed.
                self.network.break_connections(host_of(node_id), host_of(other))

    def heal(self) -> None:
        for source, target in self.network.cuts:
            self.network.heal(source, target)

    def leave_alone_in_sync(self, node_id: int) -> None:
        """The others reach its controllers, but not it; it leads on."""
        self.isolate(node_id)
        # Who has all there is does not lag.
        assert self.append(b"what the others lack", acks=1) is ErrorCode.NONE
        self.wait_in_sync(node_id)

    # What the client does.

    def _create_topic(self, configs: Mapping[str, str]) -> None:
        assignment = CreatableReplicaAssignment(partition_index=i32(0), broker_ids=tuple(map(BrokerId, NODES)))
        topic = CreatableTopic(
            name=TopicName(TOPIC),
            num_partitions=i32(-1),
            replication_factor=i16(-1),
            assignments=(assignment,),
            configs=tuple(CreatableTopicConfig(name=name, value=value) for name, value in configs.items()),
        )

        async def create() -> UUID | None:
            async with await self._connect(1) as connection:
                response = await connection.call(CreateTopicsRequest(topics=(topic,)))
            assert isinstance(response, CreateTopicsResponse)
            assert response.topics[0].error_message is None
            return response.topics[0].topic_id

        self._topic_id = self.ask(create)

    def append(self, value: bytes, *, acks: int = -1, to: int | None = None) -> ErrorCode | None:
        """Send one record to the leader, or to the node `to`: the answer's code, None when there was no answer.

        What is acknowledged is noted.
        """
        target = self.leader_id if to is None else to
        request = self._produce_request(value, acks)

        async def send() -> ErrorCode | None:
            try:
                async with await self._connect(target) as connection:
                    response = await connection.call(request, timeout_ms=2 * PRODUCE_TIMEOUT_MS)
            except GONE:
                return None
            assert isinstance(response, ProduceResponse)
            answer = response.responses[0].partition_responses[0]
            if not answer.error_code:
                self.acknowledged[answer.base_offset] = value
            return ErrorCode(int(answer.error_code))

        return self.ask(send)

    def append_unasked(self, value: bytes, *, to: int) -> None:
        """With acks=0: sent, and that is all."""
        frame = encode_request(ApiKey.PRODUCE, 13, 1, "client", self._produce_request(value, 0))

        async def send() -> None:
            _, writer = await asyncio.open_connection(host_of(to), BROKER_PORT)
            writer.write(frame)
            await writer.drain()
            writer.close()

        self.ask(send)

    def append_some(self, count: int, **options: int) -> None:
        self.wait(self._have_followers_fetched, "first fetch of all in-sync followers")
        for number in range(count):
            value = b"%d of %d" % (number, len(self.acknowledged))
            assert self.append(value, **options) is ErrorCode.NONE

    def _produce_request(self, value: bytes, acks: int) -> ProduceRequest:
        records = write_batch([Record(offset=0, timestamp_ms=START_MS, key=None, value=value, headers=())])
        return produce_request(self._topic_id, 0, records, acks=acks, timeout_ms=PRODUCE_TIMEOUT_MS)

    def read(self) -> dict[int, bytes]:
        """All that a consumer is shown, by its offset."""
        found: dict[int, bytes] = {}

        async def fetch(offset: int) -> bytes:
            partition = FetchPartition(partition=i32(0), fetch_offset=i64(offset), partition_max_bytes=i32(1_000_000))
            request = FetchRequest(
                max_wait=_milliseconds(0),
                min_bytes=i32(0),
                isolation_level=i8(0),
                session_epoch=i32(-1),
                topics=(FetchTopic(topic_id=self._topic_id, partitions=(partition,)),),
                forgotten_topics_data=(),
                rack_id="",
            )
            async with await self._connect(self.leader_id) as connection:
                response = await connection.call(request)
            assert isinstance(response, FetchResponse)
            answer = response.responses[0].partitions[0]
            if answer.error_code:
                raise KafkaError(ErrorCode(int(answer.error_code)))
            return bytes(answer.records or b"")

        offset = 0
        while records := self.ask(partial(fetch, offset)):
            for position, header in iterate_headers(records):
                for record in read_records(records[position : position + header.size_bytes], header):
                    found[record.offset] = record.value or b""
                    offset = record.offset + 1
        return found

    async def _connect(self, node_id: int) -> Connection:
        return await connect(host_of(node_id), BROKER_PORT, timeout_ms=2_000)

    # What is held.

    def lost(self) -> dict[int, bytes]:
        """What was acknowledged and a consumer does not find at its offset, once all replicas are in sync again."""
        self.wait(lambda: all(self.machines[node_id].is_ready for node_id in NODES), "start of all nodes")
        self.wait_leader()
        self.wait_in_sync(*NODES)
        # A replica may join with what was committed before; what came behind that is shown once it has that too.
        self.wait(self._is_all_committed, "high watermark at the log's end")
        stored = self.read()
        assert sorted(stored) == list(range(len(stored))), "offsets without a gap"
        self._check_equal()
        return {offset: value for offset, value in self.acknowledged.items() if stored.get(offset) != value}

    def _is_all_committed(self) -> bool:
        leader = self.hosted(self.leader_id)
        return leader is not None and leader.state.high_watermark == leader.log.log_end_offset

    def _check_equal(self) -> None:
        def ends() -> set[tuple[int, int] | None]:
            return {
                None if one is None else (one.log.log_end_offset, one.state.high_watermark)
                for one in map(self.hosted, NODES)
            }

        self.wait(lambda: len(ends()) == 1 and None not in ends(), "equal logs")
        logs = {self._stored_bytes(node_id) for node_id in NODES}
        assert len(logs) == 1, "replicas differ"

    def _stored_bytes(self, node_id: int) -> bytes:
        files, folder = self.machines[node_id].files, f"/data/{TOPIC}-0"
        names = sorted(name for name in files.list_directory(folder) if name.endswith(".log"))
        return b"".join(files.read(f"{folder}/{name}") for name in names)


def _close_unbegun(task: asyncio.Task[object]) -> None:
    """Python warns of a coroutine that is never begun: what a request that arrived in the last instant would do."""
    coroutine = task.get_coro()
    if isinstance(coroutine, CoroutineType) and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
        for inner in inspect.getcoroutinelocals(coroutine).values():
            if isinstance(inner, CoroutineType):
                inner.close()


def _roles(node_id: int, has_own_controllers: bool) -> dict[str, str]:
    if not has_own_controllers:
        return {}
    if node_id in CONTROLLERS:
        return {"process.roles": "controller", "listeners": f"CONTROLLER://{host_of(node_id)}:{CONTROLLER_PORT}"}
    return {"process.roles": "broker", "listeners": f"PLAINTEXT://{host_of(node_id)}:{BROKER_PORT}"}


def _milliseconds(value: int) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(milliseconds=value))
