"""What operators do with a quorum of real processes: hand it over, stop its leader, take snapshots, look into it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock.client.clock import wait_until
from penstock.client.connection import connect
from penstock.local.cluster import LocalCluster
from penstock.protocol.errors import CorruptData, ErrorCode
from penstock.protocol.own_apis import OwnApiKey
from penstock.quorum.raft.operations import Refused, TakeSnapshot, decode_outcome, encode_operation

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
DEADLINE_S = 60
VOTERS = (1, 2, 3)
OBSERVER = 4


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("operator") / "cluster", node_count=4) as running:
        yield running


def penstock(*arguments: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(
        [sys.executable, "-P", "-m", "penstock", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert result.returncode == status, result.stdout + result.stderr
    return result


def told(*arguments: object) -> Any:
    return json.loads(penstock(*arguments, "--json").stdout)


def status(cluster: LocalCluster) -> tuple[int, int]:
    """Who leads, and in which epoch."""
    state = told("quorum", "status", "--bootstrap", cluster.bootstrap)
    return state["leader_id"], state["epoch"]


def log_of(cluster: LocalCluster, node_id: int) -> str:
    return cluster.nodes[node_id].log.read_text()


def test_leadership_goes_where_it_is_sent(cluster: LocalCluster) -> None:
    for target_id in VOTERS:
        assert told("quorum", "transfer", "--data", cluster.folder, "--to", target_id) == {"leader_id": target_id}
        assert status(cluster)[0] == target_id
    leader_id, _ = status(cluster)
    config = cluster.nodes[OBSERVER].properties
    found = told("quorum", "transfer", "--config", config)["leader_id"]
    assert found != leader_id
    assert status(cluster)[0] == found


def test_what_cannot_be_handed_over_gets_a_sentence(cluster: LocalCluster, tmp_path: Path) -> None:
    before = status(cluster)
    for target_id in (OBSERVER, 9):
        failed = penstock("quorum", "transfer", "--data", cluster.folder, "--to", target_id, status=1)
        assert failed.stderr == f"Error: Node {target_id} is not one of the other voters.\n"
    text = cluster.nodes[OBSERVER].properties.read_text()
    stranger = tmp_path / "stranger.properties"
    stranger.write_text(text.replace("cluster.secret=", "cluster.secret=not"))
    failed = penstock("quorum", "transfer", "--config", stranger, status=1)
    assert "does not know the secret of this cluster" in failed.stderr
    assert "No cluster has been started" in penstock("quorum", "snapshot", "--data", tmp_path, status=1).stderr
    assert "cannot be read" in penstock("quorum", "snapshot", "--config", tmp_path / "none", status=1).stderr
    assert status(cluster) == before


def test_a_target_that_stands_still_leaves_the_leader_leading(cluster: LocalCluster) -> None:
    leader_id, _ = status(cluster)
    target_id = leader_id % len(VOTERS) + 1
    cluster.pause_node(target_id)
    try:
        failed = penstock("quorum", "transfer", "--data", cluster.folder, "--to", target_id, status=1)
        assert f"Node {target_id} " in failed.stderr
        assert " within 1 s" in failed.stderr
        assert status(cluster)[0] == leader_id
    finally:
        cluster.resume_node(target_id)
    cluster.wait_ready()


def test_a_leader_that_is_stopped_hands_over(cluster: LocalCluster) -> None:
    leader_id, _ = status(cluster)
    cluster.stop_node(leader_id)
    try:
        assert "Quorum leadership transferred: leader=" in log_of(cluster, leader_id)
        assert status(cluster)[0] != leader_id
    finally:
        cluster.start_node(leader_id)


def test_snapshots_are_made_when_asked_for_and_can_be_looked_into(cluster: LocalCluster) -> None:
    penstock("topic", "create", "explored", "--partitions", 2, "--bootstrap", cluster.bootstrap)
    taken = told("quorum", "snapshot", "--data", cluster.folder)["snapshots"]
    assert [one["node_id"] for one in taken] == list(VOTERS)
    path = "/image/topics/byName/explored/1"
    for one in taken:
        assert Path(one["file"]).name == f"{one['end_offset']:020}-{one['epoch']:010}.checkpoint"
        line = penstock("metadata", "shell", "--snapshot", one["file"], "cat", path).stdout
        assert line.startswith("PartitionRegistration(replicas=[")
    (again,) = told("quorum", "snapshot", "--data", cluster.folder, "--node", 1)["snapshots"]
    assert again["end_offset"] >= taken[0]["end_offset"]
    failed = penstock("quorum", "snapshot", "--data", cluster.folder, "--node", OBSERVER, status=1)
    assert failed.stderr == "Error: Node 4 is not a controller. Controllers: 1, 2, 3.\n"
    penstock("topic", "create", "later", "--bootstrap", cluster.bootstrap)

    def has_later(node_id: int) -> bool:
        data = cluster.nodes[node_id].data
        return penstock("metadata", "shell", "-d", data, "ls", "/topics/byName").stdout.split() == ["explored", "later"]

    for node_id in (1, OBSERVER):
        assert wait_until(partial(has_later, node_id), timeout_s=DEADLINE_S, interval_s=0.05)
    offset = taken[0]["end_offset"] - 1
    shown = penstock("metadata", "shell", "-d", cluster.nodes[1].data, "-o", offset, "ls", "/topics/byName").stdout
    assert shown.split() == ["explored"]


def test_the_shell_reads_commands_until_its_input_ends(cluster: LocalCluster) -> None:
    result = subprocess.run(
        [sys.executable, "-P", "-m", "penstock", "metadata", "shell", "-d", str(cluster.nodes[1].data)],
        input="cd /image/cluster\nls brokers\nnonsense\npwd\n",
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert result.stdout.split() == ["1", "2", "3", "4", "/image/cluster"]
    greeting, sentence = result.stderr.splitlines()
    assert greeting.startswith("Metadata at offset ")
    assert sentence == "There is no command nonsense; help lists those there are."


def test_strangers_operate_nothing(cluster: LocalCluster) -> None:
    text = cluster.nodes[1].properties.read_text()
    port = int(text.partition("CONTROLLER://127.0.0.1:")[2].split()[0])

    async def ask(port: int, body: bytes) -> bytes:
        async with await connect("127.0.0.1", port) as connection:
            return await connection.call_own(OwnApiKey.OPERATE_QUORUM, body, timeout_ms=DEADLINE_S * 1000)

    outcome = decode_outcome(asyncio.run(ask(port, encode_operation(TakeSnapshot()))))
    assert isinstance(outcome, Refused)
    assert outcome.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    # Brokers' listeners do not know it at all.
    with pytest.raises((ConnectionError, CorruptData)):
        asyncio.run(ask(cluster.nodes[1].port, encode_operation(TakeSnapshot())))
