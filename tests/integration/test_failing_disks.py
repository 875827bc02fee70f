"""Three real nodes, one of them on a disk that fails in each of the ways in which disks do, under an acks=all producer.

The disk is really full, really read-only, really emptied; errors of single calls are made by `penstock.chaos.faults`.
Each round ends with the disk mended and all replicas in sync, each test with everything read back and judged and with
equal replicas. `PENSTOCK_TEST_FAULTS` is how many rounds each test makes (1; more in a soak); each prints a line of
figures (`pytest -rP`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from fault_clients import DEADLINE_S, numbered
from missing_tools import small_disk
from waiting import wait_for

from penstock.chaos.faults.node_faults import NodeFaults
from penstock.chaos.faults.orders import DiskFault, DiskOperation
from penstock.chaos.faults.small_disk import SmallDisk
from penstock.client import clock
from penstock.client.cluster_metadata import ask_metadata
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TOPIC = "numbers"
NODES = (1, 2, 3)
VICTIM = 1
PARTITIONS = len(NODES)
SEGMENT_BYTES = 1024 * 1024
DISK_BYTES = 96 * 1024 * 1024
PROPERTIES = {
    "replica.lag.time.max.ms": "3000",
    "log.dir.reserve.bytes": "0",
    # The victim leads again what it led, soon after it is back.
    "leader.imbalance.check.interval.seconds": "1",
}
RECORDS = 2_000
LOG_SHOWN_BYTES = 10_000
ROUNDS = int(os.environ.get("PENSTOCK_TEST_FAULTS", "1"))
COUNTED = (
    "kafka_log_logmanager_offlinelogdirectorycount",
    "kafka_server_replicamanager_offlinereplicacount",
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_server_brokertopicmetrics_failedproducerequests_total",
    "kafka_server_brokertopicmetrics_failedfetchrequests_total",
    "penstock_damaged_replicas",
)
_VARIABLE = re.compile(r"\b(path|topic|partition|offset)=\S+")


@dataclass
class Figures:
    """What the rounds of one test found."""

    acknowledged: int = 0
    waits_s: list[float] = field(default_factory=list)
    """From the fault until every partition that may take records takes them."""
    mended_waits_s: list[float] = field(default_factory=list)
    """From the end of the fault until every partition takes records."""
    metrics: dict[str, float] = field(default_factory=dict)
    lines: Counter[str] = field(default_factory=Counter)

    def line(self, world: World) -> str:
        return json.dumps(
            {
                "rounds": ROUNDS,
                "acknowledged": world.load.acknowledged_count,
                "acknowledged during faults": self.acknowledged,
                "produce goes on, s, median and worst": [round(median(self.waits_s), 2), round(max(self.waits_s), 2)],
                "after mending, s, worst": round(max(self.mended_waits_s), 2),
                "metrics": self.metrics,
                "logged": dict(self.lines.most_common(8)),
            },
            indent=1,
        )


class World:
    """The cluster, its producer, and what is wrong with the victim's disk."""

    def __init__(self, folder: Path, disk: SmallDisk | None) -> None:
        self.cluster = LocalCluster(
            folder,
            node_count=len(NODES),
            properties=PROPERTIES,
        )
        self.victim = self.cluster.nodes[VICTIM]
        self.faults = NodeFaults(self.victim)
        self.disk = disk
        if disk is not None:
            (disk.path / "data").mkdir()
            self.victim.data.symlink_to(disk.path / "data")

    def start(self, config: Mapping[str, str]) -> None:
        self.cluster.start()
        self.admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap, "log_level": 0})
        new = NewTopic(TOPIC, PARTITIONS, len(NODES), config={"min.insync.replicas": "2", **config})
        self.admin.create_topics([new])[TOPIC].result(DEADLINE_S)
        self.load = numbered(self.cluster, TOPIC, partitions=PARTITIONS)
        self.load.send_until_acknowledged(RECORDS, timeout_s=DEADLINE_S)

    def led(self) -> set[int]:
        """Partitions that the victim leads, by any other node's metadata."""
        partitions = ask_metadata(self.admin, TOPIC).topics[TOPIC].partitions
        return {index for index, partition in partitions.items() if partition.leader == VICTIM}

    def wait_whole(self) -> None:
        """All replicas in sync, and the victim leads again what it should."""

        def in_sync() -> bool:
            partitions = ask_metadata(self.admin, TOPIC).topics[TOPIC].partitions
            return all(len(partition.isrs) == len(NODES) for partition in partitions.values())

        wait_for(in_sync, "all replicas in sync")
        wait_for(self.led, "the victim leads a partition")

    def seconds_until_taken(self, partitions: set[int]) -> float:
        """Until each of them has acknowledged a record that was sent after this call."""
        start_s = clock.monotonic_s()
        ends = {index: len(self.load.sent[index]) for index in partitions}

        def are_taken() -> bool:
            self.load.send()
            return all(
                any(one.offset is not None for one in self.load.sent[index][end:]) for index, end in ends.items()
            )

        wait_for(are_taken, f"records taken by {sorted(partitions)}", interval_s=0)
        return clock.monotonic_s() - start_s

    def counted(self) -> dict[str, float]:
        """The largest value of each metric among the nodes that answer, without zeros."""
        found: dict[str, float] = {}
        for node in self.cluster.nodes.values():
            try:
                with urllib.request.urlopen(f"{node.admin}/metrics", timeout=5) as answer:
                    text = answer.read().decode()
            except OSError:
                continue
            of_node: defaultdict[str, float] = defaultdict(float)
            for line in text.splitlines():
                name, _, value = line.partition(" ")
                of_node[name.partition("{")[0]] += float(value) if name.startswith(COUNTED) else 0
            found |= {name: value for name, value in of_node.items() if value > found.get(name, 0)}
        return found

    def check(self) -> None:
        self.load.finish(timeout_s=DEADLINE_S)
        assert not self.load.errors
        assert self.load.judge(self.cluster.bootstrap, timeout_s=DEADLINE_S) == []
        self.wait_whole()
        self.cluster.stop()
        for partition in range(PARTITIONS):
            first, *others = (_stored(self.cluster.nodes[node_id].data / f"{TOPIC}-{partition}") for node_id in NODES)
            assert first
            assert all(other == first for other in others)


def _stored(folder: Path) -> bytes:
    return b"".join(segment.read_bytes() for segment in sorted(folder.glob("*.log")))


def _fill(world: World) -> None:
    assert world.disk is not None
    world.disk.fill()


def _empty(world: World) -> None:
    assert world.disk is not None
    world.disk.empty()


def _make_read_only(world: World) -> None:
    assert world.disk is not None
    world.disk.make_read_only()


def _repair(world: World) -> None:
    assert world.disk is not None
    if world.victim.is_running:
        world.cluster.kill_node(VICTIM)
    world.disk.repair()


def _order(operation: DiskOperation) -> Callable[[World], None]:
    def order(world: World) -> None:
        world.faults.order(DiskFault(operation=operation, path="*.log", error="EIO"))

    return order


def _heal(world: World) -> None:
    world.faults.heal()


def _delete_all(world: World) -> None:
    shutil.rmtree(world.victim.data)


def _delete_one(world: World) -> None:
    shutil.rmtree(world.victim.data / f"{TOPIC}-{min(world.led())}")


def _nothing(_world: World) -> None:
    return


class Trouble(NamedTuple):
    """One way to fail: what begins it and what mends it, while the victim runs or is started again afterwards."""

    begin: Callable[[World], None]
    mend: Callable[[World], None]
    needs_disk: bool = False
    is_passing: bool = False
    """The victim goes on and leads what it leads: what it leads takes records again when it is mended."""
    ends_node: bool = False
    fires: DiskOperation | None = None
    """The operation that is to have been hit."""
    config: Mapping[str, str] = MappingProxyType({})


TROUBLES = {
    "disk full": Trouble(_fill, _empty, needs_disk=True, is_passing=True),
    "remounted read-only": Trouble(_make_read_only, _repair, needs_disk=True, ends_node=True),
    "EIO on write": Trouble(_order("write"), _heal, ends_node=True, fires="write"),
    "EIO on sync": Trouble(_order("sync"), _heal, ends_node=True, fires="sync", config={"flush.messages": "1"}),
    "EIO on read": Trouble(_order("read"), _heal, fires="read"),
    "log directory deleted": Trouble(_delete_all, _nothing, ends_node=True),
    "partition's folder deleted": Trouble(_delete_one, _nothing, ends_node=True),
}


@pytest.mark.timeout(120 + 40 * ROUNDS)
@pytest.mark.parametrize("name", TROUBLES)
def test_a_failing_disk_of_one_of_three_loses_nothing_acknowledged(tmp_path: Path, name: str) -> None:
    trouble = TROUBLES[name]
    with ExitStack() as stack:
        disk = None
        if trouble.needs_disk:
            disk = stack.enter_context(small_disk(tmp_path, size_bytes=DISK_BYTES, kind="ext4"))
        world = World(tmp_path / "cluster", disk)
        stack.callback(lambda: sys.stdout.write(world.victim.log.read_text()[-LOG_SHOWN_BYTES:]))
        stack.callback(world.cluster.kill)
        world.start({"segment.bytes": str(SEGMENT_BYTES), **trouble.config})
        figures = Figures()
        for _ in range(ROUNDS):
            _round(world, trouble, figures)
        world.check()
        sys.stdout.write(f"figures of {name}: {figures.line(world)}\n")


@pytest.mark.timeout(60)
def test_a_disk_is_repaired_that_another_mount_namespace_has_mounted(tmp_path: Path) -> None:
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk(tmp_path, size_bytes=DISK_BYTES, kind="ext4"))
        other = stack.enter_context(
            subprocess.Popen(
                ("unshare", "--mount", "sh", "-c", "echo mounted; exec sleep 60"), stdout=subprocess.PIPE, text=True
            )
        )
        stack.callback(other.kill)
        assert other.stdout is not None
        assert other.stdout.readline() == "mounted\n"
        disk.make_read_only()
        with pytest.raises(OSError, match="Read-only"):
            (disk.path / "file").touch()
        disk.repair()
        (disk.path / "file").touch()


def _round(world: World, trouble: Trouble, figures: Figures) -> None:
    world.wait_whole()
    world.load.send_until_acknowledged(RECORDS, timeout_s=DEADLINE_S)
    led = world.led()
    logged = len(world.victim.log.read_text())
    acknowledged = world.load.acknowledged_count
    trouble.begin(world)
    every = set(range(PARTITIONS))
    figures.waits_s.append(world.seconds_until_taken(every - led if trouble.is_passing else every))
    world.load.send_for(1)
    if trouble.ends_node:
        # What does not touch the disk does not notice it; a segment that rolls does.
        wait_for(lambda: world.load.send() and not world.victim.is_running, "the node ends", interval_s=0)
        assert world.victim.exit_status == 1
    figures.acknowledged += world.load.acknowledged_count - acknowledged
    figures.metrics |= world.counted()
    if trouble.fires:
        assert world.faults.fired()[trouble.fires]
    trouble.mend(world)
    if not world.victim.is_running:
        world.cluster.start_node(VICTIM)
    figures.mended_waits_s.append(world.seconds_until_taken(every))
    for line in world.victim.log.read_text()[logged:].splitlines():
        if " ERROR " in line or " CRITICAL " in line:
            figures.lines[_VARIABLE.sub(r"\1=…", line.split(" ", 2)[-1])] += 1
