"""Three real nodes, a tier in a real S3 server: copies, reads, killed leaders, an empty disk, an outage, deletion."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from s3_server import BUCKET, S3Server
from waiting import wait_for

from penstock.client import clock
from penstock.client.cluster_metadata import ask_metadata
from penstock.local.cluster import LocalCluster
from penstock.local.local_node import environment_without_properties
from penstock.storage.tiers.object_tier import open_tier
from penstock.storage.tiers.rules.tier_store import TierError

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TOPIC = "tiered"
DEADLINE_S = 60.0
RECORD_BYTES = 1000
SEGMENT_BYTES = 1024 * 1024
PROPERTIES = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.url": f"s3://{BUCKET}/cluster",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "2",
    "remote.log.manager.task.interval.ms": "200",
    "log.retention.check.interval.ms": "300",
    "log.initial.task.delay.ms": "100",
    "log.segment.delete.delay.ms": "100",
}
CONFIGS = {
    "remote.storage.enable": "true",
    "segment.bytes": str(SEGMENT_BYTES),
    "local.retention.bytes": str(2 * SEGMENT_BYTES),
    "min.insync.replicas": "2",
}


class Story:
    """What was written, and how it is looked at."""

    def __init__(self, cluster: LocalCluster, s3: S3Server) -> None:
        self.cluster = cluster
        self.s3 = s3
        self.written = 0
        self.first_ms = clock.now_ms() - 3_600_000
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap})

    def write(self, count: int) -> None:
        """With acks=all; a record is 10 ms younger than the one before."""
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap, "enable.idempotence": True, "linger.ms": 5})
        errors: list[object] = []
        for number in range(self.written, self.written + count):
            value = b"%010d" % number + b"." * (RECORD_BYTES - 10)
            timestamp_ms = self.first_ms + 10 * number
            producer.produce(TOPIC, value, timestamp=timestamp_ms, on_delivery=lambda error, _: errors.append(error))
            producer.poll(0)
        assert producer.flush(DEADLINE_S) == 0, "all is acknowledged"
        assert [error for error in errors if error is not None] == []
        self.written += count

    def read_all(self) -> None:
        """Every record is there, once and in order, from the first on."""
        for number, value in enumerate(self._values()):
            assert int(value[:10]) == number, "in order, without a gap"

    def _values(self) -> Iterator[bytes]:
        consumer = Consumer({"bootstrap.servers": self.cluster.bootstrap, "group.id": "none"})
        consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
        read, deadline_s = 0, clock.monotonic_s() + DEADLINE_S
        while read < self.written:
            assert clock.monotonic_s() < deadline_s, f"{read} of {self.written} records were read"
            for message in consumer.consume(500, 1.0):
                assert message.error() is None, message.error()
                value = message.value()
                assert value is not None
                read += 1
                yield value
        consumer.close()

    def offset_at(self, number: int) -> int:
        """Where the first record is that is no older than this one."""
        consumer = Consumer({"bootstrap.servers": self.cluster.bootstrap, "group.id": "none"})
        asked = [TopicPartition(TOPIC, 0, self.first_ms + 10 * number)]
        (found,) = consumer.offsets_for_times(asked, timeout=DEADLINE_S)
        consumer.close()
        assert found.error is None, found.error
        return int(found.offset)

    def local_start(self, node_id: int) -> int:
        """Where the log on the disk of a node begins."""
        logs = sorted((self.cluster.nodes[node_id].data / f"{TOPIC}-0").glob("*.log"))
        return int(logs[0].stem) if logs else 0

    def copied_end(self) -> int:
        """Behind the last segment in the bucket."""
        starts = [int(key.rpartition("/")[2][:20]) for key in self.s3.objects() if key.endswith(".log")]
        return max(starts, default=0)

    def wait_trimmed(self, *nodes: int, beyond: int) -> None:
        wait_for(
            lambda: all(self.local_start(node_id) > beyond for node_id in nodes),
            lambda: f"local logs begin at {[self.local_start(one) for one in nodes]}, not beyond {beyond}",
            timeout_s=DEADLINE_S,
        )

    def leader(self) -> int:
        return int(ask_metadata(self.admin, TOPIC).topics[TOPIC].partitions[0].leader)

    def next_leader(self) -> int:
        """Who leads once the leader is gone: the first of the replicas that is left."""
        (partition,) = ask_metadata(self.admin, TOPIC).topics[TOPIC].partitions.values()
        return int(next(replica for replica in partition.replicas if replica != partition.leader))

    def wait_for_leader_after(self, gone: int) -> None:
        wait_for(lambda: self.leader() not in (gone, -1), "another node leads", timeout_s=DEADLINE_S)

    def wait_in_sync(self) -> None:
        def is_in_sync() -> bool:
            (partition,) = ask_metadata(self.admin, TOPIC).topics[TOPIC].partitions.values()
            return len(partition.isrs) == 3 and partition.leader > 0

        wait_for(is_in_sync, "all replicas are in sync", timeout_s=DEADLINE_S)


def test_large_objects_are_uploaded_in_parts_and_not_at_all_when_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = [bytes([number]) * 3 * 1024 * 1024 for number in range(7)]

    def failing() -> Iterator[bytes]:
        yield from pieces
        raise OSError("the disk")

    with S3Server(tmp_path) as s3:
        for name, value in s3.environment.items():
            monkeypatch.setenv(name, value)
        tier = open_tier(f"s3://{BUCKET}/large")
        tier.put("whole.log", iter(pieces))
        with pytest.raises((TierError, OSError)):
            tier.put("cut.log", failing())
        assert tier.get_range("whole.log", 0, 2**30) == b"".join(pieces)
        assert list(tier.keys("")) == ["whole.log"]


def test_a_topic_lives_in_the_tier_through_kills_an_empty_disk_and_an_outage(tmp_path: Path) -> None:
    with (
        S3Server(tmp_path) as s3,
        LocalCluster(
            tmp_path / "cluster",
            node_count=3,
            properties=PROPERTIES,
            environment={**environment_without_properties(os.environ), **s3.environment},
        ) as cluster,
    ):
        story = Story(cluster, s3)
        story.admin.create_topics([NewTopic(TOPIC, 1, 3, config=CONFIGS)])[TOPIC].result(DEADLINE_S)

        # Closed segments are copied, and leave the disks of all replicas.
        story.write(10_000)
        story.wait_trimmed(1, 2, 3, beyond=5_000)
        story.read_all()
        assert story.offset_at(3_333) == 3_333, "by a timestamp that only the tier has"

        # An outage: writes and reads of the local log go on, and nothing leaves the disks that is not up there.
        s3.kill()
        begun = story.copied_end()
        story.write(5_000)
        first = story.leader()
        cluster.kill_node(first)
        story.wait_for_leader_after(first)
        story.write(1_000)
        assert all(story.local_start(node_id) <= begun + 1_100 for node_id in cluster.nodes if node_id != first)
        cluster.start_node(first)
        story.wait_in_sync()

        # It ends: the next leader goes on where the first one stopped.
        s3.start()
        story.wait_trimmed(1, 2, 3, beyond=12_000)
        story.read_all()

        # A follower with an empty disk begins where its leader's disk does, and leads on with the tier.
        empty = story.next_leader()
        cluster.kill_node(empty)
        cluster.empty_node(empty)
        cluster.start_node(empty)
        story.wait_in_sync()
        assert story.local_start(empty) > 12_000
        cluster.kill_node(leader := story.leader())
        wait_for(lambda: story.leader() == empty, "the node whose disk was empty leads", timeout_s=DEADLINE_S)
        story.read_all()
        assert story.offset_at(4_444) == 4_444
        cluster.start_node(leader)

        # What the topic had goes with it.
        story.admin.delete_topics([TOPIC])[TOPIC].result(DEADLINE_S)
        wait_for(lambda: not s3.objects(), lambda: f"{len(s3.objects())} objects are left", timeout_s=DEADLINE_S)
