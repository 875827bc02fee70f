"""A node under a storm of random and mutated frames: it serves on, its memory stays, its log stays readable.

10,000 frames; a million with `PENSTOCK_TEST_PROFILE=soak`, any other number with `PENSTOCK_TEST_FRAMES`.
"""

from __future__ import annotations

import asyncio
import os
import re
import resource
import sys
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from random import Random, SystemRandom

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from storm import HOSTS, Frames, send_frames

from penstock.local.cluster import LocalCluster
from penstock.local.local_node import LocalNode

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc"),
]

IS_SOAK = os.environ.get("PENSTOCK_TEST_PROFILE") == "soak"
FRAMES = int(os.environ.get("PENSTOCK_TEST_FRAMES", "1000000" if IS_SOAK else "10000"))
WARM_UP_SHARE = 0.1
"""Of the frames, before memory is looked at: caches of readers and of metadata answers fill first."""
GROWTH_MIB_MAX = 48
"""What remains is what the storm made on purpose: topics, producers and their batches, fetch sessions."""
ADDRESS_SPACE_BYTES = 6 << 30
"""Of the node: what breaks it must not break the machine."""
DEADLINE_S = 60.0


@pytest.mark.timeout(7200)
def test_a_storm_of_hostile_frames_leaves_a_node_that_serves(tmp_path: Path) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", "0")) or SystemRandom().randrange(1, 2**31)
    print(f"replay: PENSTOCK_TEST_SEED={seed} pytest {__file__}")  # noqa: T201 - pytest shows it when the test fails
    with LocalCluster(tmp_path) as cluster:
        node = cluster.nodes[1]
        assert node.process is not None
        resource.prlimit(node.process.pid, resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
        create_topics(cluster.bootstrap, "target", "witness")
        produce(cluster.bootstrap, range(100))
        frames = Frames(Random(seed), "target")
        started = datetime.now(UTC)  # noqa: TID251 - for the figures below
        host, _, port = cluster.bootstrap.rpartition(":")
        connections = asyncio.run(send_frames(host, int(port), frames, int(FRAMES * WARM_UP_SHARE)))
        before_mib = resident_mib(node)
        connections += asyncio.run(send_frames(host, int(port), frames, int(FRAMES * (1 - WARM_UP_SHARE))))
        after_mib = resident_mib(node)
        elapsed_s = (datetime.now(UTC) - started).total_seconds()  # noqa: TID251
        log = node.log.read_text()
        print(  # noqa: T201
            f"frames={FRAMES} connections={connections} seconds={elapsed_s:.0f} "
            f"resident before={before_mib:.1f} MiB after={after_mib:.1f} MiB log lines={log.count(chr(10))}"
        )
        assert node.is_running
        produce(cluster.bootstrap, range(100, 200))
        assert consume(cluster.bootstrap, 200) == [b"%d" % number for number in range(200)]
        assert_log_is_quiet(log)
        assert after_mib - before_mib <= GROWTH_MIB_MAX


def create_topics(bootstrap: str, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        future.result(DEADLINE_S)


def produce(bootstrap: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in numbers:
        producer.produce("witness", b"%d" % number)
    assert producer.flush(DEADLINE_S) == 0


def consume(bootstrap: str, count: int) -> list[bytes | None]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "witness",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    try:
        consumer.assign([TopicPartition("witness", 0, 0)])
        messages = consumer.consume(count, DEADLINE_S)
        return [message.value() for message in messages if message.error() is None]
    finally:
        consumer.close()


def resident_mib(node: LocalNode) -> float:
    assert node.process is not None
    status = Path(f"/proc/{node.process.pid}/status").read_text()
    match = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert match is not None
    return int(match[1]) / 1024


def assert_log_is_quiet(log: str) -> None:
    """No bug, and of each peer at most one line a second, by the times that the lines themselves have."""
    assert "Traceback" not in log, log[log.index("Traceback") - 500 :][:3000]
    times: dict[str, list[float]] = {host: [] for host in HOSTS}
    for line in log.splitlines():
        match = re.match(r"(\S+) \S+ .*?\bpeer=([0-9.]+)", line)
        if match is not None and match[2] in times:
            times[match[2]].append(datetime.fromisoformat(match[1]).timestamp())
    assert sum(map(len, times.values())) > 0
    for host, seen in times.items():
        for earlier, later in pairwise(seen):
            # Timers are of milliseconds, and so are the times of lines.
            assert later - earlier >= 0.99, (host, earlier, later)
