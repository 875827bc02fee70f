"""A node per core of a machine: one file of properties, one service, and one end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from waiting import wait_for

from penstock import cli
from penstock.client.cores import count_cores
from penstock.local.local_node import environment_without_properties
from penstock.local.ports import ReservedPorts
from penstock.local.processes import identify, send_signal, wait_gone
from penstock.local.up_command import up

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

DEADLINE_S = 30.0
NODES = 3


class Supervised:
    """`penstock start --per-core`, and the nodes that it logs."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, port: int) -> None:
        self.process = process
        self._log = log
        self.bootstrap = f"127.0.0.1:{port}"

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def pids(self) -> dict[int, int]:
        return {int(node): int(pid) for node, pid in re.findall(r"Node started: node_id=(\d+) pid=(\d+)", self.log)}

    def wait(self) -> int:
        return self.process.wait(DEADLINE_S)


@contextmanager
def started(properties: Path, log: Path, port: int, *arguments: str) -> Iterator[Supervised]:
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "penstock", "start", "--per-core", *arguments, str(properties)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment_without_properties(os.environ),
        )
    supervised = Supervised(process, log, port)
    try:
        yield supervised
    finally:
        process.kill()
        process.wait()
        for pid in supervised.pids.values():
            node = identify(pid)
            # Linux has told it to stop.
            if node is not None and not wait_gone(node, timeout_s=DEADLINE_S):
                send_signal(node, signal.SIGKILL)


@pytest.fixture
def port() -> Iterator[int]:
    """Of the controller; those behind it are free, too."""
    with ReservedPorts() as ports:
        yield ports.take(Random())


@pytest.fixture
def properties(tmp_path: Path, port: int) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(
        "node.id=${core:11}\n"
        f"listeners=PLAINTEXT://127.0.0.1:${{core:{port + 1}}},CONTROLLER://127.0.0.1:{port}\n"
        f"controller.quorum.voters=11@127.0.0.1:{port}\n"
        "cluster.secret=something long\n"
        f"log.dirs={tmp_path}/data-${{core:11}}\n"
    )
    return path


def brokers(supervised: Supervised) -> dict[int, str]:
    listed = AdminClient({"bootstrap.servers": supervised.bootstrap, "log_level": 0}).list_topics(timeout=DEADLINE_S)
    return {broker.id: f"{broker.host}:{broker.port}" for broker in listed.brokers.values()}


def wait_ready(supervised: Supervised) -> None:
    wait_for(lambda: supervised.log.count("Penstock started") == NODES, lambda: supervised.log)
    wait_for(lambda: len(brokers(supervised)) == NODES)


@pytest.fixture
def cores(properties: Path, tmp_path: Path, port: int) -> Iterator[Supervised]:
    with started(properties, tmp_path / "log", port + 1, "--nodes", str(NODES)) as supervised:
        wait_ready(supervised)
        yield supervised


def test_the_nodes_are_one_cluster_that_one_signal_stops(cores: Supervised, port: int, tmp_path: Path) -> None:
    assert brokers(cores) == {11 + core: f"127.0.0.1:{port + 1 + core}" for core in range(NODES)}
    admin = AdminClient({"bootstrap.servers": cores.bootstrap})
    admin.create_topics([NewTopic("flights", 6, 3)])["flights"].result(DEADLINE_S)
    partitions = admin.list_topics("flights", timeout=DEADLINE_S).topics["flights"].partitions.values()
    assert {partition.leader for partition in partitions} == {11, 12, 13}
    assert all(sorted(partition.replicas) == [11, 12, 13] for partition in partitions)

    producer = Producer({"bootstrap.servers": cores.bootstrap, "acks": "all", "linger.ms": 1})
    sent = {f"record-{number}" for number in range(60)}
    for value in sent:
        producer.produce("flights", value, value)
    assert producer.flush(DEADLINE_S) == 0
    consumer = Consumer({"bootstrap.servers": cores.bootstrap, "group.id": "readers", "enable.auto.commit": False})
    consumer.assign([TopicPartition("flights", partition, OFFSET_BEGINNING) for partition in range(6)])
    read: set[str] = set()

    def read_on() -> bool:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            read.add((message.value() or b"").decode())
        return read == sent

    wait_for(read_on)
    consumer.close()

    nodes = [identify(pid) for pid in cores.pids.values()]
    cores.process.send_signal(signal.SIGTERM)
    assert cores.wait() == 0, cores.log
    assert not any(node is not None and not wait_gone(node, timeout_s=0.0) for node in nodes)
    assert all((tmp_path / f"data-{node}" / ".kafka_cleanshutdown").exists() for node in (11, 12, 13))
    # Each line says whose it is, and the controller is the last: brokers need it to stop in order.
    stopped = re.findall(r"^node-(\d+) .* Penstock stopped", cores.log, re.MULTILINE)
    assert sorted(stopped) == ["11", "12", "13"]
    assert stopped[-1] == "11"


@pytest.mark.parametrize("node", [11, 13])
def test_a_killed_node_ends_the_others_in_order(cores: Supervised, tmp_path: Path, node: int) -> None:
    os.kill(cores.pids[node], signal.SIGKILL)
    assert cores.wait() == 128 + signal.SIGKILL
    assert f"Node ended, all nodes are stopped: node_id={node} pid={cores.pids[node]} signal=SIGKILL" in cores.log
    marks = [one for one in (11, 12, 13) if (tmp_path / f"data-{one}" / ".kafka_cleanshutdown").exists()]
    assert marks == [one for one in (11, 12, 13) if one != node]


def test_a_signal_to_all_processes_at_once_is_a_stop_in_order(cores: Supervised) -> None:
    for pid in (cores.process.pid, *cores.pids.values()):
        os.kill(pid, signal.SIGTERM)
    assert cores.wait() == 0, cores.log


def test_nodes_stop_when_what_looks_after_them_is_killed(cores: Supervised, tmp_path: Path) -> None:
    nodes = [identify(pid) for pid in cores.pids.values()]
    cores.process.kill()
    assert all(node is None or wait_gone(node, timeout_s=DEADLINE_S) for node in nodes)
    assert all((tmp_path / f"data-{node}" / ".kafka_cleanshutdown").exists() for node in (12, 13))


def test_a_node_that_cannot_start_ends_all_with_its_status(properties: Path, tmp_path: Path, port: int) -> None:
    (tmp_path / "data-12").write_text("no folder")
    with started(properties, tmp_path / "log", port + 1, "--nodes", "2") as supervised:
        assert supervised.wait() == 2, supervised.log
        assert re.search(r"^node-12 penstock: ", supervised.log, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--per-core", "--nodes", "2", "--set", "node.id=1"), "node.id is 1 for more than one node"),
        (("--per-core", "--nodes", "2", "--set", "log.dirs=/nowhere"), "log.dirs gives nodes 11 and 12 one folder"),
        (("--per-core", "--nodes", "2", "--set", "controller.quorum.voters="), "controller.quorum.voters must be set"),
        ((), "node.id has the variable ${core:11}, which is for nodes that start with --per-core"),
        (("--nodes", "2"), "--nodes is of --per-core"),
    ],
)
def test_what_nodes_would_share_is_refused_before_any_starts(
    properties: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = CliRunner().invoke(cli.main, ["start", *arguments, str(properties)], prog_name="penstock")
    assert result.exit_code == 2
    assert message in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["server.properties"]


def test_up_takes_as_many_nodes_as_there_are_cores() -> None:
    assert up.make_context("up", ["--nodes", "auto"]).params["node_count"] == count_cores()
    assert up.make_context("up", []).params["node_count"] == 3
