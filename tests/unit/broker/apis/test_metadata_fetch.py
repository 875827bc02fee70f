"""The metadata log as a voter serves it to brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from random import Random
from uuid import UUID

import pytest
from kio.schema.fetch.v18.request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kio.schema.fetch.v18.response import PartitionData
from kio.schema.types import BrokerId
from kio.static.primitive import i32, i32Timedelta, i64

from penstock.broker.apis.metadata_fetch import MetadataFetchHandler
from penstock.broker.network.request import RequestContext
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import NodeId
from penstock.quorum.controller.controller import Controller
from penstock.quorum.decisions.context import ControllerConfig
from penstock.quorum.metadata.metadata_log import METADATA_TOPIC_ID, decode_batches
from penstock.quorum.metadata.publishers import Publishers
from penstock.quorum.voter.snapshots import Snapshots
from penstock.quorum.voter.voter import RaftVoter
from penstock.storage.disk.memory_files import MemoryFiles

A_NODE = RequestContext(listener_name="CONTROLLER", peer_host="127.0.0.1", client_id=None, node_id=NodeId(4))


async def asked(handler: MetadataFetchHandler, offset: int, epoch: int, context: RequestContext) -> PartitionData:
    partition = FetchPartition(
        partition=i32(0), fetch_offset=i64(offset), last_fetched_epoch=i32(epoch), partition_max_bytes=i32(1_000)
    )
    request = FetchRequest(
        cluster_id=None,
        replica_state=ReplicaState(replica_id=BrokerId(4)),
        max_wait=i32Timedelta.parse(timedelta(milliseconds=0)),
        min_bytes=i32(1),
        max_bytes=i32(1_000),
        topics=(FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(partition,)),),
        forgotten_topics_data=(),
    )
    return (await handler.fetch(request, context)).responses[0].partitions[0]


def run(scenario: Callable[[MetadataFetchHandler, RaftVoter], object]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        files = MemoryFiles()
        voter = RaftVoter(
            files, "/metadata", node_id=NodeId(1), directory_id=UUID(int=1), random=Random(1), loop=loop,
            wall_clock_ms=lambda: 0, reserve_bytes=4096,
        )  # fmt: skip
        controller = Controller(
            voter, Publishers(), config=ControllerConfig(node_id=NodeId(1)), bootstrap=(), random=Random(1), loop=loop,
            wall_clock_ms=lambda: 0, on_failure=pytest.fail,
        )  # fmt: skip
        await controller.start()
        handler = MetadataFetchHandler(controller, Snapshots(files, "/metadata"), consensus=voter, loop=loop)
        result = scenario(handler, voter)
        assert asyncio.iscoroutine(result)
        await result
        await controller.stop()

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_voter_serves_only_while_it_knows_of_a_leader() -> None:
    async def scenario(handler: MetadataFetchHandler, voter: RaftVoter) -> None:
        served = await asked(handler, 0, -1, A_NODE)
        assert [entry.offset for entry in decode_batches(bytes(served.records or b""))] == [0]
        voter.leader_id = None
        refused = await asked(handler, 0, -1, A_NODE)
        assert refused.error_code == int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert not refused.records

    run(scenario)


def test_a_fetch_beyond_the_committed_log_waits_and_another_history_is_told() -> None:
    async def scenario(handler: MetadataFetchHandler, _: RaftVoter) -> None:
        ahead = await asked(handler, 5, 1, A_NODE)
        assert (ahead.error_code, ahead.records, ahead.diverging_epoch.end_offset) == (0, b"", -1)
        other = await asked(handler, 1, 7, A_NODE)
        assert other.diverging_epoch.epoch == 1

    run(scenario)


@pytest.mark.parametrize("offset", [-1, -(2**63), 2**63 - 1])
def test_absurd_offsets_are_answered(offset: int) -> None:
    async def scenario(handler: MetadataFetchHandler, _: RaftVoter) -> None:
        answer = await asked(handler, offset, 1, A_NODE)
        assert not answer.records

    run(scenario)


def test_a_forged_follower_is_refused() -> None:
    async def scenario(handler: MetadataFetchHandler, _: RaftVoter) -> None:
        stranger = RequestContext(listener_name="CONTROLLER", peer_host="127.0.0.1", client_id=None)
        with pytest.raises(KafkaError) as refused:
            await asked(handler, 0, -1, stranger)
        assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    run(scenario)
