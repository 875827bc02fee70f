"""A leader stands still (SIGSTOP) for longer than its session, others lead meanwhile, and it comes back under load.

It stands still for 30 seconds in a soak, with the default session of 9; for 5 with one of 2 otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from cluster_views import brokers, metadata
from confluent_kafka import Producer
from kio.schema.fetch.v18.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v18.response import FetchResponse
from kio.schema.produce.v13.request import ProduceRequest
from kio.schema.produce.v13.response import ProduceResponse
from kio.static.primitive import i32, i32Timedelta, i64
from produce_requests import produce_request
from replicated_cluster import DEADLINE_S, RECORDS_BETWEEN_FAULTS, ReplicatedCluster, is_soak, say
from waiting import wait_for

from penstock.bench.quorum_state import wait_settled
from penstock.chaos.checkers.records import Stored
from penstock.chaos.workloads.numbered_records import read_all
from penstock.client import clock
from penstock.client.connection import connect
from penstock.local.cluster import LocalCluster
from penstock.protocol.batches import iterate_headers
from penstock.protocol.errors import ErrorCode
from penstock.protocol.messages import Request
from penstock.protocol.records import Record, read_records, write_batch

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

SHORT = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "200"}
PAUSE_S = 30.0 if is_soak() else 5.0
# A client that would wait a minute for an answer from a node that stands still would not see who leads now.
CLIENT_TIMEOUT_MS = 1_000
ANSWER_MS = int(DEADLINE_S * 1000)
# Given to the leader for each question.
TIMEOUT_MS = 5_000
STALE = "stale"
COMMITTED = 20


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ReplicatedCluster]:
    with LocalCluster(tmp_path / "cluster", node_count=3, properties={} if is_soak() else SHORT) as cluster:
        yield ReplicatedCluster(cluster)


class StaleQuestions:
    """What is asked of a leader that stands still, on connections that it had, so that it finds it when it goes on."""

    def __init__(self, runner: asyncio.Runner, port: int) -> None:
        self._runner = runner
        self._connections = [runner.run(connect("127.0.0.1", port)) for _ in range(3)]

    def ask(self, topic_id: UUID, first_offset: int) -> None:
        """Two records with acks=all and acks=1, and whatever comes behind an offset."""
        timeout = i32Timedelta.parse(timedelta(milliseconds=TIMEOUT_MS))

        def produce(acks: int) -> ProduceRequest:
            batch = write_batch([Record(0, clock.now_ms(), None, f"acks={acks}".encode())])
            return produce_request(topic_id, 0, batch, acks=acks, timeout_ms=TIMEOUT_MS)

        partition = FetchPartition(partition=i32(0), fetch_offset=i64(first_offset), partition_max_bytes=i32(100_000))
        fetch = FetchRequest(
            max_wait=timeout,
            min_bytes=i32(100_000),
            max_bytes=i32(100_000),
            topics=(FetchTopic(topic_id=topic_id, partitions=(partition,)),),
            forgotten_topics_data=(),
        )

        async def send() -> None:
            requests: tuple[Request, ...] = (produce(-1), produce(1), fetch)
            self._answers = [
                asyncio.ensure_future(connection.call(request, timeout_ms=ANSWER_MS))
                for connection, request in zip(self._connections, requests, strict=True)
            ]
            done, _ = await asyncio.wait(self._answers, timeout=0.5)
            assert not done, "it stands still"

        self._runner.run(send())

    def answers(self) -> tuple[object, object, object]:
        """In that order."""

        async def wait() -> list[object]:
            found: list[object] = list(await asyncio.gather(*self._answers))
            for connection in self._connections:
                await connection.close()
            return found

        by_all, by_one, fetched = self._runner.run(wait())
        return by_all, by_one, fetched


def records_of(answer: object) -> tuple[list[Stored], ErrorCode]:
    """What a fetch of one partition was answered."""
    assert isinstance(answer, FetchResponse)
    if not answer.responses:
        return [], ErrorCode(int(answer.error_code))
    (told,) = answer.responses[0].partitions
    data = bytes(told.records or b"")
    return [
        Stored(record.offset, record.value or b"")
        for position, header in iterate_headers(data)
        for record in read_records(memoryview(data)[position : position + header.size_bytes], header)
    ], ErrorCode(int(told.error_code))


@pytest.mark.parametrize("is_controller", [False, True], ids=["a leader", "a leader that is the active controller"])
def test_a_leader_that_stood_still_is_fenced_and_cut_and_shows_and_acknowledges_nothing_stale(
    world: ReplicatedCluster, is_controller: bool
) -> None:
    cluster = world.cluster
    leaders = world.balance().values()
    controller_id = wait_settled(cluster).leader_id
    paused_id = controller_id if is_controller else next(one for one in leaders if one != controller_id)
    others = [node.address for node in cluster.nodes.values() if node.id != paused_id]
    world.create_topic(STALE, (paused_id, *(cluster.nodes.keys() - {paused_id})))
    write(cluster.bootstrap, "before", COMMITTED)
    stored_before = read_all(cluster.bootstrap, STALE, 0, timeout_s=DEADLINE_S)

    with asyncio.Runner() as runner, world.writer(socket_timeout_ms=CLIENT_TIMEOUT_MS) as writer:
        questions = StaleQuestions(runner, cluster.nodes[paused_id].port)
        writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
        cluster.pause_node(paused_id)
        paused_s = clock.monotonic_s()
        (topic_id,) = [one.topic_id for one in metadata(others[0]).topics if one.name == STALE]
        assert topic_id is not None
        questions.ask(topic_id, len(stored_before))
        wait_for(lambda: paused_id not in brokers(others[0]), "it is fenced")
        wait_for(lambda: paused_id not in leaders_at(others[0]), "others lead what it led")
        write(",".join(others), "meanwhile", COMMITTED)
        writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
        # How long it stands still is the fault.
        clock.pause(max(0.0, paused_s + PAUSE_S - clock.monotonic_s()))
        cluster.resume_node(paused_id)
        acknowledged_by_all, acknowledged_by_one, fetched = questions.answers()
        world.wait_in_sync()
        writer.wait_acknowledged(RECORDS_BETWEEN_FAULTS, timeout_s=DEADLINE_S)
    world.check(writer)
    world.check_leaderships()

    stored = read_all(cluster.bootstrap, STALE, 0, timeout_s=DEADLINE_S)
    code, offset = outcome(acknowledged_by_all)
    assert code is not ErrorCode.NONE or stored[offset].value == b"acks=-1"
    shown, fetch_code = records_of(fetched)
    assert set(shown) <= set(stored), "what it showed is what is there"
    say(
        f"stood still for {PAUSE_S:g} s; found when it went on: acks=all {code.name},",
        f"acks=1 {outcome(acknowledged_by_one)[0].name}, fetch {fetch_code.name} with {len(shown)} records",
    )
    cluster.stop()
    world.check_replicas_equal()
    world.check_replicas_equal(STALE, 1)


def outcome(answer: object) -> tuple[ErrorCode, int]:
    assert isinstance(answer, ProduceResponse)
    told = answer.responses[0].partition_responses[0]
    return ErrorCode(int(told.error_code)), int(told.base_offset)


def write(bootstrap: str, name: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
    for number in range(count):
        producer.produce(STALE, f"{name} {number}".encode(), partition=0)
    assert producer.flush(DEADLINE_S) == 0


def leaders_at(address: str) -> set[int]:
    """Who leads anything, as the node at this address tells."""
    return {int(one.leader_id) for topic in metadata(address).topics for one in topic.partitions}
