"""A day, in virtual time, of committed offsets and transactions: the internal topics do not grow with it."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.structs import OffsetAndMetadata

from penstock.chaos.simulation.application.simulated_cluster import SimulatedCluster
from penstock.chaos.simulation.application.simulation import Simulation

DAY_S: Final = 24 * 3600.0
PACE_S: Final = 60.0
SEGMENT_BYTES: Final = 1024 * 1024
METADATA: Final = "." * 3000
"""Most of what a commit takes: the day writes several segments."""
TRANSACTIONS: Final = 2
CONFIG: Final = {
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "offsets.topic.segment.bytes": SEGMENT_BYTES,
    "transaction.state.log.segment.bytes": SEGMENT_BYTES,
    "min.insync.replicas": 1,
}

pytestmark = pytest.mark.timeout(300)


def sizes(cluster: SimulatedCluster) -> dict[str, int]:
    """Bytes of the logs of internal topics."""
    (machine,) = cluster._machines.values()
    found = {}
    for directory in machine.log_directories:
        for folder in ("__consumer_offsets-0", "__transaction_state-0"):
            names = [name for name in machine.files.look_into(f"{directory}/{folder}") if name.endswith(".log")]
            if names:
                found[folder] = sum(len(machine.files.look(f"{directory}/{folder}/{name}") or b"") for name in names)
    return found


@pytest.mark.penstock_sim(nodes=1, limit_s=DAY_S + 3600, config=CONFIG)
def test_internal_topics_are_bounded_however_much_is_committed(penstock_sim: Simulation) -> None:
    largest: dict[str, int] = {}
    written = 0

    async def scenario(cluster: SimulatedCluster) -> None:
        nonlocal written
        loop = asyncio.get_running_loop()
        topic = await cluster.topic(partitions=1)
        place = TopicPartition(topic, 0)
        producers = [
            AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id=f"transactional-{number}")
            for number in range(TRANSACTIONS)
        ]
        for producer in producers:
            await producer.start()
        consumer = AIOKafkaConsumer(bootstrap_servers=cluster.bootstrap, group_id="plain", enable_auto_commit=False)
        await consumer.start()
        consumer.assign([place])
        end_s, number = loop.time() + DAY_S, 0
        while loop.time() < end_s:
            number += 1
            await consumer.commit({place: OffsetAndMetadata(number, METADATA)})
            for producer in producers:
                async with producer.transaction():
                    await producer.send(topic, b"a record")
                    await producer.send_offsets_to_transaction({place: OffsetAndMetadata(number, METADATA)}, "sent")
            written += (1 + TRANSACTIONS) * len(METADATA)
            for name, size in sizes(cluster).items():
                largest[name] = max(size, largest.get(name, 0))
            await asyncio.sleep(PACE_S)
        await cluster.restart(1)
        # What a coordinator loads has all that counts.
        for group in ("plain", "sent"):
            async with AIOKafkaConsumer(bootstrap_servers=cluster.bootstrap, group_id=group) as reader:
                assert await reader.committed(place) == number, group
        for producer in producers:
            async with producer.transaction():
                await producer.send(topic, b"a record")
            await producer.stop()
        await consumer.stop()

    penstock_sim.run(scenario)
    assert written > 10 * SEGMENT_BYTES, written
    # The active segment, one that is to be compacted, and what compaction leaves.
    assert all(size < 3 * SEGMENT_BYTES for size in largest.values()), largest
    assert largest["__transaction_state-0"] > SEGMENT_BYTES, "a segment was full"
