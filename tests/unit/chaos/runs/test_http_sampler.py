"""Samples of a cluster: asked of nodes over HTTP, as they answer or do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import pytest
from waiting import wait_for

from penstock.chaos.histories.cluster_sample import ClusterSample, PartitionSample, read_samples
from penstock.chaos.runs.http_sampler import HttpSampler
from penstock.client import clock
from penstock.protocol.rest.clusters import Cluster, ClusterList
from penstock.protocol.rest.partitions import ReplicaStatus, ReplicaStatusList
from penstock.protocol.rest.quorum import Quorum
from penstock.protocol.rest.resources import CollectionMetadata, Relationship, ResourceMetadata
from penstock.protocol.rest.topic_overview import PartitionOverview, TopicOverview, TopicOverviewList

RESOURCE: Final = ResourceMetadata(self_="", resource_name="")
COLLECTION: Final = CollectionMetadata(self_="")


class FakeNode:
    """What one node says of the quorum and of `t-0`."""

    def __init__(self, *, quorum: tuple[int, int | None], leader: int | None, epoch: int, hw: int | None) -> None:
        self.quorum = quorum
        self.leader = leader
        self.epoch = epoch
        self.hw = hw
        self.isr = [1, 2]
        self.partition_epoch = 0
        self.ends: dict[int, int | None] = {1: 5, 2: 4}
        # What other nodes have to be asked for takes too long.
        self.is_waiting = False

    def answer(self, path: str, query: str) -> Any:
        """None: it does not answer in time."""
        asks_others = path.endswith("replica-status") or (path == "/v1/topics" and "offsets=false" not in query)
        if self.is_waiting and asks_others:
            return None
        if path == "/v1/quorum":
            epoch, leader = self.quorum
            return Quorum(
                is_known_by_leader=True,
                reason=None,
                leader_id=leader,
                epoch=epoch,
                high_watermark=None,
                voters=[],
                observers=[],
            )
        if path == "/v1/topics":
            return TopicOverviewList(asked_ms=0, topics=[self._topic()], next=None, unanswered=[])
        if path == "/v3/clusters":
            return ClusterList(metadata=COLLECTION, data=[self._cluster()])
        assert path == "/v3/clusters/id/topics/t/partitions/-/replica-status"
        return ReplicaStatusList(metadata=COLLECTION, data=[self._status(*item) for item in self.ends.items()])

    def _topic(self) -> TopicOverview:
        partition = PartitionOverview(
            partition=0,
            leader=self.leader,
            leader_epoch=self.epoch,
            partition_epoch=self.partition_epoch,
            replicas=[1, 2],
            isr=self.isr,
            elr=[],
            last_known_elr=[],
            adding=[],
            removing=[],
            high_watermark=self.hw,
            log_start_offset=0,
            size_bytes=0,
        )
        return TopicOverview(
            name="t",
            topic_id="",
            is_internal=False,
            partition_count=1,
            replication_factor=2,
            leaderless_count=0,
            under_replicated_count=0,
            moving_count=0,
            is_complete=True,
            high_watermarks=0,
            records=0,
            size_bytes=0,
            partitions=[partition],
        )

    @staticmethod
    def _status(node: int, end: int | None) -> ReplicaStatus:
        return ReplicaStatus(
            metadata=RESOURCE,
            cluster_id="id",
            topic_name="t",
            partition_id=0,
            broker_id=node,
            is_leader=False,
            is_in_isr=True,
            is_caught_up=None,
            log_start_offset=0,
            log_end_offset=end,
            lag=None,
        )

    @staticmethod
    def _cluster() -> Cluster:
        empty = Relationship(related="")
        return Cluster(
            metadata=RESOURCE,
            cluster_id="id",
            controller=empty,
            acls=empty,
            brokers=empty,
            broker_configs=empty,
            consumer_groups=empty,
            topics=empty,
            partition_reassignments=empty,
        )


@contextmanager
def served(node: FakeNode) -> Iterator[str]:
    """Its HTTP address."""

    is_over = Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            answer = node.answer(asked.path, asked.query)
            if answer is None:
                is_over.wait()
                self.close_connection = True
                return
            body = msgspec.json.encode(answer)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with ThreadPoolExecutor(1) as pool:
        pool.submit(server.serve_forever, 0.01)
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            is_over.set()
            server.shutdown()
            server.server_close()


def sampled(
    path: Path,
    admins: dict[int, str],
    states: Mapping[int, str] | None = None,
    *,
    until: Callable[[ClusterSample], object] = lambda sample: sample.partitions,
) -> ClusterSample:
    """The first sample that is so. On a busy machine the answers of a node come too late for some."""
    told = states or dict.fromkeys(admins, "up")

    def find() -> ClusterSample | None:
        return next(filter(until, read_samples(path) if path.exists() else ()), None)

    with HttpSampler(path, admins=lambda: admins, state=told.__getitem__, topics=["t"], start_ns=clock.monotonic_ns()):
        found = wait_for(find, "a sample that is so")
    assert found is not None
    return found


def test_the_leader_of_the_highest_epoch_is_believed_and_ends_are_of_all_replicas(tmp_path: Path) -> None:
    stale = FakeNode(quorum=(3, 1), leader=1, epoch=6, hw=9)
    stale.ends = {1: 9, 2: None}
    fresh = FakeNode(quorum=(4, 2), leader=2, epoch=7, hw=4)
    fresh.isr = [2]
    expected = {"t-0": PartitionSample(2, 7, [2], 4, {"1": 9, "2": 4})}
    with served(stale) as one, served(fresh) as two:
        sample = sampled(
            tmp_path / "samples",
            {1: one, 2: two},
            until=lambda sample: sample.controller == 2 and sample.partitions == expected,
        )
    assert sample.nodes == {"1": "up", "2": "up"}


@pytest.mark.thorough
def test_of_one_leader_epoch_the_newest_isr_is_believed(tmp_path: Path) -> None:
    stale, fresh = (FakeNode(quorum=(1, 1), leader=1, epoch=3, hw=5) for _ in range(2))
    fresh.partition_epoch, fresh.isr = 1, [2]
    with served(stale) as one, served(fresh) as two:
        for number, admins in enumerate(({1: one, 2: two}, {1: two, 2: one})):
            sampled(
                tmp_path / f"samples-{number}",
                admins,
                until=lambda sample: sample.partitions and sample.partitions["t-0"].isr == [2],
            )


def test_an_answer_that_waits_for_a_node_that_is_cut_off_takes_no_other_away(tmp_path: Path) -> None:
    node = FakeNode(quorum=(1, 1), leader=1, epoch=3, hw=5)
    node.is_waiting = True
    with served(node) as address:
        sample = sampled(
            tmp_path / "samples",
            {1: address},
            until=lambda sample: sample.controller is not None and sample.partitions,
        )
    assert sample.controller == 1
    assert sample.partitions == {"t-0": PartitionSample(1, 3, [1, 2])}


def test_a_partition_without_a_leader_has_none(tmp_path: Path) -> None:
    with served(FakeNode(quorum=(1, None), leader=None, epoch=2, hw=None)) as address:
        sample = sampled(tmp_path / "samples", {1: address})
    assert sample.controller is None
    assert sample.partitions["t-0"].leader is None


def test_nodes_that_are_down_or_paused_are_not_asked(tmp_path: Path) -> None:
    with served(FakeNode(quorum=(1, 1), leader=1, epoch=0, hw=0)) as address:
        states = {1: "up", 2: "paused", 3: "down"}
        # A port that nothing listens on: the address of a node that is asked all the same would fail the sample.
        sample = sampled(tmp_path / "samples", {1: address, 2: "http://127.0.0.1:1", 3: ""}, states)
    assert sample.nodes == {"1": "up", "2": "paused", "3": "down"}
    assert sample.partitions["t-0"].leader == 1


def test_a_node_that_does_not_answer_is_left_out(tmp_path: Path) -> None:
    with served(FakeNode(quorum=(1, 1), leader=1, epoch=0, hw=0)) as address:
        sample = sampled(tmp_path / "samples", {1: address, 2: "http://127.0.0.1:1"})
    assert sample.nodes["2"] == "up"
    assert sample.partitions["t-0"].leader == 1


def test_a_sample_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "samples"
    whole = msgspec.json.encode(ClusterSample(1, 1, {"1": "up"}, {}))
    path.write_bytes(whole + b"\n" + whole[:20])
    assert [sample.time for sample in read_samples(path)] == [1]
