"""Three brokers that replicate, the first a controller too: each on its own disk, in one loop over the loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from random import Random

from kio.schema.create_topics.v7.request import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i16, i32
from memory_node import produce, run_then_stop
from waiting import loop_until

from penstock.broker.configuration.node_config import load
from penstock.broker.node.server import Node
from penstock.broker.replicas.partition import Partition
from penstock.client.connection import Connection, connect
from penstock.protocol.errors import ErrorCode
from penstock.storage.disk.memory_files import MemoryFiles

DEADLINE_S = 20
TOPIC = "flights"


class World:
    """The disks of nodes 1 to 3, and those of them that run."""

    def __init__(self) -> None:
        self.random = Random(7)
        self.disks = {node_id: MemoryFiles() for node_id in (1, 2, 3)}
        self.controller_port = 0
        self.nodes: dict[int, Node] = {}

    async def start(self, *node_ids: int) -> None:
        for node_id in node_ids:
            node = self.nodes[node_id] = Node(
                load(self._properties(node_id)),
                self.disks[node_id],
                loop=asyncio.get_running_loop(),
                wall_clock_ms=lambda: 1_700_000_000_000,
                random=self.random,
            )
            await node.start()
            if node_id == 1:
                self.controller_port = node.bound_ports["CONTROLLER"]

    def _properties(self, node_id: int) -> Mapping[str, str]:
        is_controller = node_id == 1
        return {
            "node.id": str(node_id),
            "process.roles": "broker,controller" if is_controller else "broker",
            "listeners": "PLAINTEXT://127.0.0.1:0"
            + (f",CONTROLLER://127.0.0.1:{self.controller_port}" if is_controller else ""),
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port or 1}",
            "cluster.secret": "hush",
            "log.dirs": "/data",
            "replica.fetch.wait.max.ms": "100",
        }

    async def stop(self, *node_ids: int) -> None:
        for node_id in node_ids:
            await self.nodes.pop(node_id).stop()

    @asynccontextmanager
    async def asking(self, node_id: int) -> AsyncIterator[Connection]:
        async with await connect("127.0.0.1", self.nodes[node_id].bound_ports["PLAINTEXT"]) as connection:
            yield connection

    def hosted(self, node_id: int) -> Partition | None:
        return self.nodes[node_id].parts.partitions.find(TOPIC, 0)

    async def wait_in_sync(self, *node_ids: int) -> None:
        def are_in_sync() -> bool:
            for node in self.nodes.values():
                partition = node.metadata.image.topics.partition(TOPIC, 0)
                if partition is None or set(partition.isr) != set(node_ids):
                    return False
            return True

        await loop_until(are_in_sync, f"in-sync replicas {node_ids}")

    async def wait_equal(self, *node_ids: int) -> None:
        """Until the logs and the high watermarks of these are the same."""

        def are_equal() -> bool:
            found = [self.hosted(node_id) for node_id in node_ids]
            states = {
                None
                if partition is None
                else (partition.log.log_start_offset, partition.log.log_end_offset, partition.state.high_watermark)
                for partition in found
            }
            return len(states) == 1 and None not in states

        await loop_until(are_equal, f"equal logs on {node_ids}")
        assert len({self.stored(node_id) for node_id in node_ids}) == 1

    def stored(self, node_id: int) -> bytes:
        folder = f"/data/{TOPIC}-0"
        files = self.disks[node_id]
        names = sorted(name for name in files.list_directory(folder) if name.endswith(".log"))
        return b"".join(files.read(f"{folder}/{name}") for name in names)


def run(scenario: Callable[[World], Awaitable[None]]) -> None:
    world = World()

    async def whole() -> None:
        await world.start(1, 2, 3)
        await scenario(world)

    run_then_stop(whole, lambda: world.stop(*sorted(world.nodes, reverse=True)))


async def create(connection: Connection, *replicas: int) -> None:
    assignment = CreatableReplicaAssignment(partition_index=i32(0), broker_ids=tuple(map(BrokerId, replicas)))
    topic = CreatableTopic(
        name=TopicName(TOPIC), num_partitions=i32(-1), replication_factor=i16(-1), assignments=(assignment,), configs=()
    )
    response = await connection.call(CreateTopicsRequest(topics=(topic,)))
    assert isinstance(response, CreateTopicsResponse)
    assert ErrorCode(int(response.topics[0].error_code)) is ErrorCode.NONE


async def produce_some(connection: Connection, count: int) -> None:
    for number in range(count):
        assert await produce(connection, TOPIC, b"%d" % number) is ErrorCode.NONE


def leads(world: World, node_id: int) -> bool:
    partition = world.hosted(node_id)
    return partition is not None and partition.state.is_leader
