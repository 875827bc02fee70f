"""A node that is told to stop hands over, answers what has begun, and leaves the mark of a clean stop last."""

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from cluster_views import DEADLINE_S, ask, brokers, create_topic, leaders
from fourth_broker import FourthBroker
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.describe_topic_partitions.v0.request import DescribeTopicPartitionsRequest, TopicRequest
from kio.schema.describe_topic_partitions.v0.response import DescribeTopicPartitionsResponse
from kio.schema.fetch.v18.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v18.response import FetchResponse
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32, i32Timedelta, i64
from waiting import wait_for

from penstock.client.connection import connect
from penstock.local.cluster import LocalCluster
from penstock.local.readiness import wait_ready
from penstock.protocol.errors import ErrorCode
from penstock.protocol.messages import Request, Response

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
# Its session would last for minutes.
TIMES = {"broker.session.timeout.ms": "120000", "broker.heartbeat.interval.ms": "200"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path, node_count=3, properties=TIMES) as started:
        yield started


def eligible(address: str, topic: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the ISR and the ELR of the topic's only partition."""
    request = DescribeTopicPartitionsRequest(
        topics=(TopicRequest(name=TopicName(topic)),), response_partition_limit=i32(10)
    )
    (partition,) = ask(address, request, DescribeTopicPartitionsResponse).topics[0].partitions
    return tuple(map(int, partition.isr_nodes)), tuple(map(int, partition.eligible_leader_replicas or ()))


async def fetch_while_it_stops(fourth: FourthBroker, topic_id: object) -> FetchResponse:
    """Let a fetch wait for records that no producer sends, and the node stop meanwhile."""
    partition = FetchPartition(partition=i32(0), fetch_offset=i64(0), partition_max_bytes=i32(1_000))
    request = FetchRequest(
        max_wait=i32Timedelta.parse(timedelta(minutes=10)),
        min_bytes=i32(1),
        max_bytes=i32(1_000),
        topics=(FetchTopic(topic_id=topic_id, partitions=(partition,)),),  # type: ignore[arg-type]
        forgotten_topics_data=(),
    )
    answer = await ask_while_it_stops(fourth, request)
    assert isinstance(answer, FetchResponse)
    return answer


async def ask_while_it_stops(fourth: FourthBroker, request: Request) -> Response:
    """Return the answer to a request that waits when the node is told to stop."""
    host, _, port = fourth.node.address.rpartition(":")
    async with await connect(host, int(port)) as connection:
        waiting = asyncio.ensure_future(connection.call(request, timeout_ms=int(DEADLINE_S * 1000)))
        await asyncio.wait({waiting}, timeout=0.5)
        assert not waiting.done()
        fourth.node.begin_stop()
        return await waiting


def test_a_node_that_stops_hands_over_answers_and_leaves_the_mark_last(cluster: LocalCluster, tmp_path: Path) -> None:
    others = cluster.nodes[1].address
    with FourthBroker(cluster, tmp_path, TIMES) as fourth:
        fourth.start()
        wait_for(lambda: 4 in brokers(others))
        created = create_topic(others, "flights", {0: (4,)})
        wait_for(lambda: leaders(fourth.node.address, "flights") != [])
        (before,) = leaders(others, "flights")
        mark = fourth.node.data / CLEAN_SHUTDOWN
        assert not mark.exists()

        answer = asyncio.run(fetch_while_it_stops(fourth, created.topic_id))
        # Answered long before its time: by a follower, which may serve consumers, or by one that is nothing any more.
        (code,) = (int(topic.partitions[0].error_code) for topic in answer.responses)
        assert code in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        fourth.node.finish_stop(timeout_s=DEADLINE_S)
        assert fourth.node.exit_status == 0
        wait_for(lambda: 4 not in brokers(others))
        assert leaders(others, "flights")[0].broker_id == -1
        assert eligible(others, "flights") == ((), (4,))
        assert json.loads(mark.read_text())["brokerEpoch"] > 0
        written_ns = {
            file: file.stat().st_mtime_ns
            for file in fourth.node.data.rglob("*")
            if file.is_file() and "__cluster_metadata-0" not in file.parts
        }
        assert written_ns[mark] == max(written_ns.values())

        fourth.start()
        wait_for(lambda: leaders(others, "flights")[0].broker_id == 4)
        assert leaders(others, "flights")[0].epoch > before.epoch
        assert not mark.exists()
        assert eligible(others, "flights") == ((4,), ())


def test_a_node_that_stops_gives_up_what_no_controller_answers(cluster: LocalCluster, tmp_path: Path) -> None:
    creation = CreateTopicsRequest(
        topics=(
            CreatableTopic(
                name=TopicName("flights"),
                num_partitions=i32(1),
                replication_factor=i16(1),
                assignments=(),
                configs=(),
            ),
        ),
        timeout=i32Timedelta.parse(timedelta(seconds=DEADLINE_S)),
    )
    with FourthBroker(cluster, tmp_path, TIMES) as fourth:
        fourth.start()
        wait_ready((fourth.node,), timeout_s=DEADLINE_S)
        fourth.cut()
        answer = asyncio.run(ask_while_it_stops(fourth, creation))
        assert isinstance(answer, CreateTopicsResponse)
        assert int(answer.topics[0].error_code) == ErrorCode.REQUEST_TIMED_OUT
        fourth.node.finish_stop(timeout_s=DEADLINE_S)
        assert fourth.node.exit_status == 0
        assert (fourth.node.data / CLEAN_SHUTDOWN).exists()
