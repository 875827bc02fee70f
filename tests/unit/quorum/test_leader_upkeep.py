"""The active controller elects of itself, at its intervals."""

import asyncio
from random import Random
from uuid import UUID

from penstock.quorum.controller import Controller
from penstock.quorum.decisions.bootstrap import bootstrap_records
from penstock.quorum.decisions.context import ControllerConfig
from penstock.quorum.leader_upkeep import LeaderUpkeep
from penstock.quorum.metadata.publishers import Publishers
from penstock.quorum.metadata.records import PartitionRecord, RegisterBrokerRecord, TopicRecord
from penstock.quorum.raft.voter import RaftVoter
from penstock.storage.memory_files import MemoryFiles

CLUSTER_ID = "kVg0FJXuTjOXMxXGnN9MPA"
TOPIC_ID = UUID(int=900)
DIRECTORIES = (UUID(int=501), UUID(int=502))
# Broker 2 leads a partition that 1 would lead by preference.
IMBALANCED = (
    *bootstrap_records(CLUSTER_ID, min_insync_replicas=1),
    *(
        RegisterBrokerRecord(
            broker_id=index + 1,
            incarnation_id=UUID(int=index),
            broker_epoch=5,
            is_fenced=False,
            log_dirs=(directory,),
        )
        for index, directory in enumerate(DIRECTORIES)
    ),
    TopicRecord(name="t", topic_id=TOPIC_ID),
    PartitionRecord(
        topic_id=TOPIC_ID,
        partition_id=0,
        replicas=(1, 2),
        isr=(1, 2),
        leader=2,
        leader_epoch=0,
        partition_epoch=0,
        directories=DIRECTORIES,
    ),
)


def test_preferred_replicas_get_their_leaderships_back_without_being_asked() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        voter = RaftVoter(
            MemoryFiles(),
            "/data/quorum",
            node_id=1,
            directory_id=UUID(int=500),
            random=Random(5),
            loop=loop,
            wall_clock_ms=lambda: 0,
            reserve_bytes=4096,
        )
        controller = Controller(
            voter,
            Publishers(),
            config=ControllerConfig(node_id=1),
            bootstrap=IMBALANCED,
            random=Random(1),
            loop=loop,
            wall_clock_ms=lambda: 1_700_000_000_000,
            on_failure=lambda _sentence: None,
        )
        upkeep = LeaderUpkeep(controller, balance_interval_ms=5, unclean_interval_ms=5)
        duty = loop.create_task(upkeep.run())
        await controller.start()
        try:
            async with asyncio.timeout(20):
                while True:
                    await controller.wait_growth()
                    partition = controller.image.topics.partition("t", 0)
                    if partition is not None and partition.leader == 1:
                        break
        finally:
            duty.cancel()
            await asyncio.wait([duty])
            await controller.stop()

    asyncio.run(scenario())
