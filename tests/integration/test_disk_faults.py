"""A real node whose disk returns errors, is slow, or whose clock jumps: what clients see, and what is there afterwards.

The disk is the machine's, made to fail by orders (`penstock.chaos.faults`); a disk that is really full is in
`test_full_disk.py`. Every test ends healed, killed, started, and with everything read back and judged.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from fault_clients import (
    ACKNOWLEDGED,
    DEADLINE_S,
    create_topic,
    end_offset,
    faulty_cluster,
    led_partitions,
    make_group_topic,
    numbered,
    produce_once,
)
from waiting import wait_for

from penstock.chaos.faults.node_faults import NodeFaults
from penstock.chaos.faults.orders import DiskFault, full_disk
from penstock.chaos.workloads.numbered_records import NumberedRecords, read_all
from penstock.local.cluster import LocalCluster
from penstock.local.errors import ClusterError
from penstock.local.local_node import environment_without_properties

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TOPIC = "numbers"
STORAGE_ERROR = "KAFKA_STORAGE_ERROR"
HOUR_MS = 3_600_000
TEN_YEARS_MS = 10 * 365 * 24 * HOUR_MS
LOG_SHOWN_BYTES = 10_000
ROUNDS = int(os.environ.get("PENSTOCK_TEST_FAULTS", "8"))


class Faulty:
    """A cluster of one node, its faults, and a producer at work."""

    def __init__(self, folder: Path, properties: dict[str, str]) -> None:
        self.cluster, self.faults = faulty_cluster(folder, properties)

    @property
    def load(self) -> NumberedRecords:
        return self._load

    def start(self, config: Mapping[str, str] | None = None) -> None:
        """`config` is the topic's."""
        self.cluster.start()
        create_topic(self.cluster, TOPIC, config=config)
        self._load = numbered(self.cluster, TOPIC)
        self.write_more()
        self._load.finish(timeout_s=DEADLINE_S)
        # The first consumer with a group makes the topic of groups, which the disk should not have to take later.
        make_group_topic(self.cluster, TOPIC)

    def write_more(self, count: int = 1_000) -> None:
        self._load.send_until_acknowledged(count, timeout_s=DEADLINE_S)

    def go_on(self, count: int) -> None:
        """Healed, the node goes on, or has ended, or ends a moment later for what it suffered before."""

        def has_written() -> bool:
            if not self.cluster.nodes[1].is_running:
                self.cluster.start_node(1)
            try:
                self._load.send_until_acknowledged(count, timeout_s=1)
            except ClusterError:
                return False
            return True

        wait_for(has_written, "records are acknowledged again")

    def wait_failed(self) -> str:
        """The node has ended as a failed one; the end of its log."""
        node = self.cluster.nodes[1]
        wait_for(lambda: not node.is_running, "the node ends")
        assert node.exit_status == 1
        return node.log.read_text()

    def check(self) -> None:
        """Heal; the node goes on, or is started; in the end it is killed, and all that was promised is there."""
        self.faults.heal()
        if not self.cluster.nodes[1].is_running:
            self.cluster.start_node(1)
        self.write_more()
        self._load.finish(timeout_s=DEADLINE_S)
        self.cluster.kill_node(1)
        self.cluster.start_node(1)
        assert self._load.judge(self.cluster.bootstrap, timeout_s=DEADLINE_S) == []
        assert not self._load.errors


@pytest.fixture
def faulty(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Faulty]:
    faulty = Faulty(tmp_path / "cluster", getattr(request, "param", {}))
    yield faulty
    faulty.cluster.kill()
    print(faulty.cluster.nodes[1].log.read_text()[-LOG_SHOWN_BYTES:])  # noqa: T201 - pytest shows it when the test fails


SYNCED = {"flush.messages": "1"}


@pytest.mark.parametrize("config", [{}, SYNCED], ids=["page cache", "flush.messages=1"])
def test_full_disk_is_a_storage_error_until_it_is_over(faulty: Faulty, config: dict[str, str]) -> None:
    faulty.start(config)
    faulty.faults.order(*full_disk())
    assert produce_once(faulty.cluster, TOPIC) == STORAGE_ERROR
    faulty.load.send_for(0.5)
    assert faulty.faults.fired()["write"]
    assert read_all(faulty.cluster.bootstrap, TOPIC, 0, timeout_s=DEADLINE_S)
    faulty.check()


@pytest.mark.parametrize("config", [{}, SYNCED], ids=["page cache", "flush.messages=1"])
def test_error_of_a_write_ends_the_node_and_loses_nothing(faulty: Faulty, config: dict[str, str]) -> None:
    faulty.start(config)
    faulty.faults.order(DiskFault(operation="write", path="*.log", error="EIO"))
    faulty.load.send_for(0.2)
    assert "No log directory is left" in faulty.wait_failed()
    faulty.check()


def test_failed_sync_is_never_acknowledged_nor_tried_again(faulty: Faulty) -> None:
    faulty.start(SYNCED)
    acknowledged_count = faulty.load.acknowledged_count
    faulty.faults.order(DiskFault(operation="sync", path="*.log", error="EIO"))
    faulty.load.send_for(0.2)
    assert "could not be synced" in faulty.wait_failed()
    # Both partitions may have been in one round of syncs.
    assert faulty.faults.fired()["sync"] <= faulty.load.partitions
    faulty.load.send_for(0.1)
    assert faulty.load.acknowledged_count == acknowledged_count
    faulty.check()


def test_partition_that_cannot_be_read_keeps_no_other_from_being_read_or_written(faulty: Faulty) -> None:
    faulty.start()
    faulty.faults.order(DiskFault(operation="read", path=f"*/{TOPIC}-0/*.log", error="EIO"))
    consumed = read_all(faulty.cluster.bootstrap, TOPIC, 1, timeout_s=DEADLINE_S)
    assert len(consumed) == len(faulty.load.sent[1])
    with pytest.raises(Exception, match=f"{TOPIC}-0 could not be read"):
        read_all(faulty.cluster.bootstrap, TOPIC, 0, timeout_s=2)
    assert faulty.faults.fired()["read"]
    assert produce_once(faulty.cluster, TOPIC, partition=1, value=b"") == ACKNOWLEDGED
    faulty.faults.heal()
    assert read_all(faulty.cluster.bootstrap, TOPIC, 0, timeout_s=DEADLINE_S)
    assert end_offset(faulty.cluster, TOPIC, 1) == len(consumed) + 1


@pytest.mark.parametrize("operation", ["write", "sync"])
def test_node_whose_metadata_journal_fails_stops_with_a_sentence(faulty: Faulty, operation: str) -> None:
    faulty.start()
    fault = DiskFault(operation="sync" if operation == "sync" else "write", path="*.journal", error="EIO")
    faulty.faults.order(fault)
    with pytest.raises(Exception, match=r"KafkaError"):
        create_topic(faulty.cluster, "never")
    assert "Encountered fatal fault: reason=The metadata journal in " in faulty.wait_failed()
    faulty.check()


def test_slow_disk_only_takes_longer(faulty: Faulty) -> None:
    faulty.start(SYNCED)
    faulty.faults.order(
        DiskFault(operation="sync", delay_ms=100), DiskFault(operation="write", delay_ms=20, probability=0.2)
    )
    faulty.write_more(200)
    assert faulty.faults.fired()["sync"]
    faulty.check()


@pytest.mark.parametrize(
    "faulty",
    [
        {
            "log.retention.check.interval.ms": "50",
            "log.initial.task.delay.ms": "0",
            "producer.id.expiration.check.interval.ms": "50",
            "log.segment.delete.delay.ms": "0",
        }
    ],
    indirect=True,
)
@pytest.mark.parametrize(
    ("timestamp_type", "jump_ms"),
    [
        ("CreateTime", HOUR_MS),
        ("CreateTime", TEN_YEARS_MS),
        ("CreateTime", -HOUR_MS),
        ("CreateTime", -TEN_YEARS_MS),
        # A clock that is behind by more than the retention time stamps records as too old to be kept.
        ("LogAppendTime", -HOUR_MS),
        ("LogAppendTime", TEN_YEARS_MS),
    ],
)
def test_clock_that_jumps_and_comes_back_deletes_and_repeats_nothing(
    faulty: Faulty, timestamp_type: str, jump_ms: int
) -> None:
    # The clients' clock is right: a node that is far behind it takes their records for ones from the future.
    faulty.start(
        {
            "message.timestamp.type": timestamp_type,
            "message.timestamp.after.max.ms": str(2 * TEN_YEARS_MS),
            "segment.ms": "1000",
        }
    )
    faulty.faults.order(clock_offset_ms=jump_ms)
    faulty.write_more(2_000)
    log = faulty.cluster.nodes[1].log
    wait_for(lambda: "Wall clock jumped" in log.read_text(), "a line about the clock")
    faulty.faults.heal()
    faulty.write_more(2_000)
    faulty.check()


@pytest.mark.timeout(120 + 15 * ROUNDS)
def test_node_in_random_trouble_loses_nothing_acknowledged(faulty: Faulty) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
    sys.stdout.write(
        f"replay: PENSTOCK_TEST_SEED={seed} PENSTOCK_TEST_FAULTS={ROUNDS} "
        "pytest tests/integration/test_disk_faults.py -k random_trouble\n"
    )
    generator = random.Random(seed)
    faulty.start({"segment.bytes": "1048576", **(SYNCED if generator.random() < 0.5 else {})})
    rounds = fired = 0
    # Some troubles hit nothing, such as an error of a file that is not written: a run in which none hits shows nothing.
    while rounds < ROUNDS or not fired:
        trouble(faulty.cluster, faulty.faults, generator)
        faulty.load.send_for(generator.uniform(0.1, 0.8))
        fired += faulty.faults.fired().total()
        faulty.faults.heal()
        faulty.go_on(generator.randrange(1, 1_000))
        rounds += 1
    faulty.check()


def trouble(cluster: LocalCluster, faults: NodeFaults, generator: random.Random) -> None:
    """One of what can happen to a node; some of it ends it."""
    path = generator.choice(["*", "*.log", "*index", f"*/{TOPIC}-0/*", "*checkpoint*", "*.snapshot"])
    probability = generator.choice([1.0, 0.3, 0.05])
    clock_offset_ms = generator.choice([0, 0, HOUR_MS, -HOUR_MS, 30 * HOUR_MS * 24])
    match generator.choice(["full", "full", "write", "sync", "read", "slow", "kill"]):
        case "full":
            faults.order(*full_disk(path, probability=probability), clock_offset_ms=clock_offset_ms)
        case "slow":
            faults.order(DiskFault(operation="write", path=path, delay_ms=30, probability=probability))
        case "kill":
            # In the middle of an error or of a full disk.
            faults.order(*full_disk(path, probability=probability))
            cluster.kill_node(1)
        case "write":
            faults.order(DiskFault(operation="write", path=path, error="EIO", probability=probability))
        case "sync":
            faults.order(DiskFault(operation="sync", path=path, error="EIO", probability=probability))
        case _:
            faults.order(DiskFault(operation="read", path=path, error="EIO", probability=probability))


def test_a_failed_directory_takes_its_own_partitions_out_of_service(tmp_path: Path) -> None:
    """KIP-858: the controller is told where replicas are and which directory failed; the others go on."""
    folders = [tmp_path / name for name in ("first", "second")]
    environment = {**environment_without_properties(os.environ), "PENSTOCK_LOG_DIRS": ",".join(map(str, folders))}
    cluster = LocalCluster(tmp_path / "cluster", environment=environment)
    faults = NodeFaults(cluster.nodes[1])
    partitions = 6
    try:
        cluster.start()
        create_topic(cluster, TOPIC, partitions=partitions)
        for index in range(partitions):
            assert produce_once(cluster, TOPIC, partition=index) == ACKNOWLEDGED
        lost = {int(folder.name.rpartition("-")[2]) for folder in folders[1].glob(f"{TOPIC}-*")}
        assert len(lost) == partitions // 2
        faults.order(DiskFault(operation="write", path=f"{folders[1]}/*", error="EIO"))
        produce_once(cluster, TOPIC, partition=min(lost))
        wait_for(lambda: led_partitions(cluster, TOPIC) == set(range(partitions)) - lost, "the others alone are led")
        for index in set(range(partitions)) - lost:
            assert produce_once(cluster, TOPIC, partition=index) == ACKNOWLEDGED
        faults.heal()
        cluster.restart_node(1)
        assert led_partitions(cluster, TOPIC) == set(range(partitions))
        for index in range(partitions):
            assert end_offset(cluster, TOPIC, index) == (1 if index in lost else 2)
    finally:
        cluster.kill()
