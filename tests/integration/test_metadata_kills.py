"""Three whole nodes with a large image, killed and paused while metadata change: nothing answered is lost, and the
images on all disks are the same.

`PENSTOCK_TEST_QUORUM_SECONDS` is how long it goes on (5; 60 in a soak).
"""

import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from metadata_load import MetadataLoad, alter_topic

from penstock.client import clock
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

IS_SOAK = os.environ.get("PENSTOCK_TEST_PROFILE") == "soak"
SECONDS = float(os.environ.get("PENSTOCK_TEST_QUORUM_SECONDS", "60" if IS_SOAK else "5"))
DEADLINE_S = 60.0
TOPICS: Final = tuple(f"topic-{number}" for number in range(150 if IS_SOAK else 20))
# A list of replicas in each topic's configuration, as long as a value may be: they make the image large.
LIST_ENTRIES: Final = 4_500


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    properties = {"metadata.log.max.record.bytes.between.snapshots": "20000"}
    cluster = LocalCluster(tmp_path, node_count=3, properties=properties)
    cluster.start()
    yield cluster
    cluster.kill()


def test_killed_nodes_have_the_same_image_with_everything_that_was_answered(cluster: LocalCluster) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", random.SystemRandom().randrange(2**32)))
    sys.stdout.write(f"replay: PENSTOCK_TEST_SEED={seed} pytest {__file__}\n")
    generator = random.Random(seed)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for future in admin.create_topics([NewTopic(topic, 1, 1) for topic in TOPICS]).values():
        future.result(DEADLINE_S)
    large = ",".join(f"{number}:1" for number in range(LIST_ENTRIES))
    for topic in TOPICS:
        assert alter_topic(admin, topic, "leader.replication.throttled.replicas", large, timeout_s=DEADLINE_S)
    end_s = clock.monotonic_s() + SECONDS
    faults: Counter[str] = Counter()
    with MetadataLoad(cluster.bootstrap, TOPICS) as load:
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
            load.wait_more(generator.randrange(5, 40), timeout_s=DEADLINE_S)
    cluster.wait_ready()
    size = load.check(cluster, timeout_s=DEADLINE_S)
    assert size > len(large) * len(TOPICS)
    sys.stdout.write(f"{dict(faults)}, {load.count} answered, image of {size} bytes\n")
