"""Three whole nodes with a large image, killed and paused while metadata change: nothing answered is lost, and the
images on all disks are the same.

`PENSTOCK_TEST_QUORUM_SECONDS` is how long it goes on (5; 60 in a soak).
"""

import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Final

import cbor2
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from penstock.chaos.cluster import LocalCluster
from penstock.client import clock
from penstock.quorum.inspection.stored_metadata import StoredMetadata, open_folder
from penstock.quorum.metadata.image import ConfigResource as Resource
from penstock.quorum.metadata.image import ConfigResourceType
from penstock.quorum.metadata.record_codec import encode_record
from penstock.quorum.metadata.snapshot_records import image_records
from penstock.storage.files import DiskFiles

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

IS_SOAK = os.environ.get("PENSTOCK_TEST_PROFILE") == "soak"
SECONDS = float(os.environ.get("PENSTOCK_TEST_QUORUM_SECONDS", "60" if IS_SOAK else "5"))
DEADLINE_S = 60.0
TOPICS: Final = tuple(f"topic-{number}" for number in range(150 if IS_SOAK else 20))
# A list of replicas in each topic's configuration, as long as a value may be: they make the image large.
LIST_ENTRIES: Final = 4_500
COUNTED: Final = "retention.ms"
FIRST_VALUE: Final = 1_000_000


class Load:
    """Raises a number in the configuration of one topic after the other, and remembers what was answered."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: dict[str, int] = {}
        self.count = 0
        self._is_over = Event()
        self._threads = ThreadPoolExecutor(1)
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "socket.timeout.ms": 5_000})

    def start(self) -> None:
        self._done = self._threads.submit(self._run)

    def _run(self) -> None:
        number = FIRST_VALUE
        while not self._is_over.is_set():
            number += 1
            topic = TOPICS[number % len(TOPICS)]
            if alter(self._admin, topic, COUNTED, str(number), timeout_s=5):
                self.acknowledged[topic] = number
                self.count += 1

    def finish(self) -> None:
        self._is_over.set()
        self._done.result(DEADLINE_S)


def alter(admin: AdminClient, topic: str, key: str, value: str, *, timeout_s: float) -> bool:
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    try:
        admin.incremental_alter_configs([resource], request_timeout=timeout_s)[resource].result(timeout_s + 1)
    except (KafkaException, TimeoutError):
        # It may have happened.
        return False
    return True


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    properties = {"metadata.log.max.record.bytes.between.snapshots": "20000"}
    cluster = LocalCluster(tmp_path, node_count=3, properties=properties)
    cluster.start()
    yield cluster
    cluster.kill()


def images(cluster: LocalCluster) -> list[StoredMetadata]:
    return [open_folder(DiskFiles(), str(node.data)) for node in cluster.nodes.values()]


def test_killed_nodes_have_the_same_image_with_everything_that_was_answered(cluster: LocalCluster) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", random.SystemRandom().randrange(2**32)))
    sys.stdout.write(f"replay: PENSTOCK_TEST_SEED={seed} pytest {__file__}\n")
    generator = random.Random(seed)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for future in admin.create_topics([NewTopic(topic, 1, 1) for topic in TOPICS]).values():
        future.result(DEADLINE_S)
    large = ",".join(f"{number}:1" for number in range(LIST_ENTRIES))
    for topic in TOPICS:
        assert alter(admin, topic, "leader.replication.throttled.replicas", large, timeout_s=DEADLINE_S)
    load = Load(cluster.bootstrap)
    load.start()
    end_s = clock.monotonic_s() + SECONDS
    faults: Counter[str] = Counter()
    while clock.monotonic_s() < end_s or not faults:
        fault = generator.choice(["one", "one", "two", "all", "pause"])
        faults[fault] += 1
        nodes = generator.sample(list(cluster.nodes.values()), {"one": 1, "two": 2, "all": 3, "pause": 1}[fault])
        if fault == "pause":
            nodes[0].pause()
            clock.pause(generator.uniform(0.2, 2.5))
            nodes[0].resume()
        else:
            for node in nodes:
                node.kill()
            for node in nodes:
                node.start()
        before = load.count
        more = before + generator.randrange(5, 40)
        assert clock.wait_until(lambda more=more: load.count >= more, timeout_s=DEADLINE_S, interval_s=0.05)  # type: ignore[misc]
    load.finish()
    cluster.wait_ready()
    cluster.stop()
    stored = images(cluster)
    offset = min(one.last_offset for one in stored)
    # What is in an image has an order of its own on each node.
    first, *others = [set(map(encode_record, image_records(one.image_at(offset).image))) for one in stored]
    assert sum(map(len, first)) > len(large) * len(TOPICS)
    for other in others:
        assert [cbor2.loads(record) for record in sorted(first ^ other)] == []
    for one in stored:
        configs = one.image_at(offset).image.configs
        for topic, number in load.acknowledged.items():
            value = configs.of(Resource(ConfigResourceType.TOPIC, topic))[COUNTED]
            assert int(value) >= number
    sys.stdout.write(f"{dict(faults)}, {load.count} answered, image of {sum(map(len, first))} bytes\n")
