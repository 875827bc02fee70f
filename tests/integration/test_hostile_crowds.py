"""Crowds of clients that do not behave: memory is bounded, and all other clients are served.

How long others wait is measured, not asserted: `python -m penstock.bench.crowd`.
"""

from __future__ import annotations

import os
import resource
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from penstock.bench.crowd import TOPIC, ask, fill, resident_mib
from penstock.bench.crowds import Crowd, allow_sockets, behaviours, question
from penstock.broker.network.rules.answer_memory import ANSWER_BYTES_MAX
from penstock.client import clock
from penstock.local.cluster import LocalCluster
from penstock.local.local_node import HOST, LocalNode

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc"),
    pytest.mark.timeout(600),
]

IS_SOAK = os.environ.get("PENSTOCK_TEST_PROFILE") == "soak"
SECONDS = 30 if IS_SOAK else 3
DEADLINE_S = 60.0
IDLE_MS = 2000
REQUEST_BYTES_MAX = 128 * 1024 * 1024
ADDRESS_SPACE_BYTES = 4 << 30
"""Of the node: what breaks it must not break the machine."""

# Connections, and how much resident memory they may bring: KiB for each and MiB for all.
BOUNDS = {
    "unfinished": (5000, 8, 8),
    "slow-writers": (1000, 8, 8),
    "slow-readers": (300, 32, ANSWER_BYTES_MAX // 2**20),
    # Memory that the node counts by its bytes is handed out in coarser pieces.
    "never-read": (300, 128, 2 * ANSWER_BYTES_MAX // 2**20),
    "pipeliners": (20, 1024, 32),
    "boasters": (200, 8, REQUEST_BYTES_MAX // 2**20 + 32),
}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[LocalNode]:
    with started(tmp_path, {"queued.max.request.bytes": str(REQUEST_BYTES_MAX)}) as node:
        yield node


@pytest.fixture
def impatient_node(tmp_path: Path) -> Iterator[LocalNode]:
    with started(tmp_path, {"connections.max.idle.ms": str(IDLE_MS)}) as node:
        yield node


@contextmanager
def started(folder: Path, properties: dict[str, str]) -> Iterator[LocalNode]:
    with LocalCluster(folder, properties=properties) as cluster:
        node = cluster.nodes[1]
        assert node.process is not None
        resource.prlimit(node.process.pid, resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
        fill(node.port)
        yield node


def assert_served(node: LocalNode) -> None:
    with socket.create_connection((HOST, node.port), timeout=DEADLINE_S) as connection:
        assert ask(connection, question())


def is_served(node: LocalNode) -> bool:
    try:
        assert_served(node)
    except ConnectionError:
        return False
    return True


def open_sockets(node: LocalNode) -> int:
    assert node.process is not None
    count = 0
    for link in Path(f"/proc/{node.process.pid}/fd").iterdir():
        # It may be closed between the two looks.
        with suppress(FileNotFoundError):
            count += os.readlink(link).startswith("socket:")
    return count


@pytest.mark.parametrize("name", BOUNDS)
def test_a_crowd_takes_bounded_memory_and_nothing_from_others(node: LocalNode, name: str) -> None:
    count, kib_each, mib_for_all = BOUNDS[name]
    if not allow_sockets(count):
        pytest.skip(f"a limit of open files above {count} is needed (ulimit -Hn)")
    assert_served(node)
    sockets_before = open_sockets(node)
    before_mib = most_mib = resident_mib(node)
    with Crowd(HOST, node.port, behaviours(TOPIC)[name], count) as crowd:
        end_s = clock.monotonic_s() + SECONDS
        while clock.monotonic_s() < end_s:
            crowd.tick()
            assert_served(node)
            most_mib = max(most_mib, resident_mib(node))
            clock.wait_until(lambda: clock.monotonic_s() >= end_s, timeout_s=0.5)
    print(f"{name}: {count} connections, resident {before_mib:.1f} MiB before, {most_mib:.1f} at most")  # noqa: T201
    assert most_mib - before_mib <= count * kib_each / 1024 + mib_for_all
    assert clock.wait_until(lambda: open_sockets(node) <= sockets_before, timeout_s=DEADLINE_S, interval_s=0.2)
    assert_served(node)


@pytest.mark.parametrize("name", ["idle", "unfinished", "slow-readers", "never-read"])
def test_who_is_silent_is_let_go(impatient_node: LocalNode, name: str) -> None:
    """Peers that vanished without a word look the same: nothing comes from them any more."""
    sockets_before = open_sockets(impatient_node)
    # Looked at from the node: a peer that reads nothing does not learn of the end behind what it did not read.
    with Crowd(HOST, impatient_node.port, behaviours(TOPIC)[name], 50):
        assert clock.wait_until(lambda: open_sockets(impatient_node) > sockets_before, timeout_s=DEADLINE_S)
        assert clock.wait_until(lambda: open_sockets(impatient_node) <= sockets_before, timeout_s=DEADLINE_S)
    assert_served(impatient_node)


def test_a_parked_request_of_a_peer_that_vanished_is_noticed(node: LocalNode) -> None:
    """By TCP itself: the socket has keepalive, with the system's times."""
    with socket.create_connection((HOST, node.port), timeout=DEADLINE_S) as connection:
        ask(connection, question())
        # The node's end of it. A connection of others that is over may have had the same port.
        ends = [f":{node.port:04X}", f":{connection.getsockname()[1]:04X}"]
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        ours = [fields for fields in lines if [address[-5:] for address in fields[1:3]] == ends]
        # The kind of timer that runs: 2 is keepalive.
        assert [fields[5].partition(":")[0] for fields in ours] == ["02"]


def test_more_connections_than_files_are_refused_and_the_node_serves_on(tmp_path: Path) -> None:
    with LocalCluster(tmp_path) as cluster:
        node = cluster.nodes[1]
        assert node.process is not None
        with socket.create_connection((HOST, node.port), timeout=DEADLINE_S) as early:
            assert ask(early, question())
            limit = len(list(Path(f"/proc/{node.process.pid}/fd").iterdir())) + 50
            resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
            attempts = [socket.create_connection((HOST, node.port), timeout=DEADLINE_S) for _ in range(40)]
            waiting = [socket.socket() for _ in range(60)]
            for one in waiting:
                one.setblocking(False)
                one.connect_ex((HOST, node.port))
            for _ in range(10):
                assert ask(early, question())
            for one in (*attempts, *waiting):
                one.close()
        # A client that connects before the node has closed what was closed is refused.
        assert clock.wait_until(lambda: is_served(node), timeout_s=DEADLINE_S)
        assert len(node.log.read_text().splitlines()) < 100


def test_a_node_takes_as_many_files_as_the_system_lets_it(node: LocalNode) -> None:
    assert node.process is not None
    soft, hard = resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE)
    assert soft == hard


def test_a_client_that_leaves_in_the_middle_of_an_answer(node: LocalNode) -> None:
    fetch = behaviours(TOPIC)["slow-readers"].sends
    for _ in range(200):
        with socket.create_connection((HOST, node.port), timeout=DEADLINE_S) as connection:
            connection.sendall(fetch)
            connection.recv(1000)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert_served(node)
