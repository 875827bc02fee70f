"""A node whose disk is really full: a small file system of its own, filled by producers or by another process.

Producers get a storage error, everything else goes on, and writes go on as soon as there is room, without a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fault_clients import (
    ACKNOWLEDGED,
    DEADLINE_S,
    create_topic,
    delete_topic,
    end_offset,
    make_group_topic,
    numbered,
    produce_once,
)
from missing_tools import small_disk
from waiting import wait_for

from penstock.chaos.faults.small_disk import SmallDisk
from penstock.chaos.workloads.numbered_records import read_all
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

SIZE_BYTES = 32 * 1024 * 1024
STORAGE_ERROR = "KAFKA_STORAGE_ERROR"
TOPIC = "numbers"
PROBED = "probed"


@pytest.fixture(params=["ext4", "tmpfs"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path, size_bytes=SIZE_BYTES, kind=request.param) as disk:
        yield disk


StartCluster = Callable[..., LocalCluster]


@pytest.fixture
def start(disk: SmallDisk, tmp_path: Path) -> Iterator[StartCluster]:
    """Starts a node on the small disk; the properties' names have underscores for dots."""
    clusters = []

    def start(**properties: str) -> LocalCluster:
        named = {name.replace("_", "."): value for name, value in properties.items()}
        cluster = LocalCluster(tmp_path / "cluster", properties={"log.segment.delete.delay.ms": "100", **named})
        clusters.append(cluster)
        # Only its data is there: log and properties stay readable.
        (disk.path / "data").mkdir()
        cluster.folder.mkdir()
        cluster.nodes[1].data.symlink_to(disk.path / "data")
        cluster.start()
        return cluster

    yield start
    for cluster in clusters:
        cluster.kill()


@pytest.mark.parametrize("reserve_bytes", ["-1", "0"])
def test_full_disk_refuses_producers_until_there_is_room_and_no_other_request(
    disk: SmallDisk, start: StartCluster, reserve_bytes: str
) -> None:
    cluster = start(log_dir_reserve_bytes=reserve_bytes)
    create_topic(cluster, TOPIC)
    make_group_topic(cluster, TOPIC)
    load = numbered(cluster, TOPIC)
    load.send_until_acknowledged(2_000, timeout_s=DEADLINE_S)
    load.finish(timeout_s=DEADLINE_S)
    disk.fill()
    assert produce_once(cluster, TOPIC) == STORAGE_ERROR
    assert end_offset(cluster, TOPIC) == len(load.sent[0])
    assert load.judge(cluster.bootstrap, timeout_s=DEADLINE_S) == []
    load.send_for(0.5)
    assert produce_once(cluster, TOPIC) == STORAGE_ERROR
    disk.empty()
    load.send_until_acknowledged(2_000, timeout_s=DEADLINE_S)
    load.finish(timeout_s=DEADLINE_S)
    assert not load.errors
    cluster.kill_node(1)
    cluster.start_node(1)
    assert load.judge(cluster.bootstrap, timeout_s=DEADLINE_S) == []


def test_disk_that_producers_filled_is_emptied_by_deleting_a_topic(start: StartCluster) -> None:
    """The journal of the metadata has room when records have none."""
    cluster = start()
    create_topic(cluster, TOPIC)
    create_topic(cluster, "large", partitions=1)
    load = numbered(cluster, TOPIC)
    load.send_until_acknowledged(500, timeout_s=DEADLINE_S)
    while (outcome := produce_once(cluster, "large", value=b"x" * 900_000)) == ACKNOWLEDGED:
        pass
    assert outcome == STORAGE_ERROR
    load.send_for(0.5)
    create_topic(cluster, "another")
    delete_topic(cluster, "large")
    load.send_until_acknowledged(2_000, timeout_s=DEADLINE_S)
    load.finish(timeout_s=DEADLINE_S)
    cluster.kill_node(1)
    cluster.start_node(1)
    assert load.judge(cluster.bootstrap, timeout_s=DEADLINE_S) == []
    wait_for(lambda: produce_once(cluster, "another") == ACKNOWLEDGED, "the topic made on a full disk can be used")


@pytest.mark.parametrize("is_graceful", [False, True], ids=["SIGKILL", "SIGTERM"])
def test_node_stops_and_starts_on_a_full_disk_and_serves_what_it_has(
    disk: SmallDisk, start: StartCluster, is_graceful: bool
) -> None:
    cluster = start(log_dir_reserve_bytes="0", log_segment_bytes="1048576")
    create_topic(cluster, TOPIC)
    create_topic(cluster, PROBED)
    make_group_topic(cluster, TOPIC)
    load = numbered(cluster, TOPIC)
    load.send_until_acknowledged(5_000, timeout_s=DEADLINE_S)
    disk.fill()
    load.send_for(1)
    if is_graceful:
        cluster.stop_node(1)
    else:
        cluster.kill_node(1)
    disk.fill()
    cluster.start_node(1)

    def is_refused() -> bool:
        # The metadata journal gives up its reserve for what the node has to say, some of it after it began to serve.
        disk.fill()
        return produce_once(cluster, PROBED) == STORAGE_ERROR

    wait_for(is_refused, "a record is refused on a full disk")
    for partition in range(load.partitions):
        stored = read_all(cluster.bootstrap, TOPIC, partition, timeout_s=DEADLINE_S)
        assert {one.value for one in load.sent[partition] if one.offset is not None} <= {one.value for one in stored}
    disk.empty()
    load.send_until_acknowledged(2_000, timeout_s=DEADLINE_S)
    load.finish(timeout_s=DEADLINE_S)
    cluster.kill_node(1)
    cluster.start_node(1)
    assert load.judge(cluster.bootstrap, timeout_s=DEADLINE_S) == []


def test_topic_made_on_a_full_disk_is_served_once_there_is_room(disk: SmallDisk, start: StartCluster) -> None:
    cluster = start(log_dir_reserve_bytes="0")
    create_topic(cluster, TOPIC)
    disk.fill()
    create_topic(cluster, "late", partitions=20)
    # The metadata journal has given up its reserve for that.
    disk.fill()
    assert {produce_once(cluster, "late", partition=index) for index in (0, 19)} == {STORAGE_ERROR}
    disk.empty()
    for index in range(20):
        wait_for(
            lambda index=index: produce_once(cluster, "late", partition=index) == ACKNOWLEDGED,  # type: ignore[misc]
            f"room for partition {index}",
        )
