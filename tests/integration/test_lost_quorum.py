"""A cluster that has lost its quorum: what each command of the terminal says, from a voter and from a broker."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result
from waiting import wait_for

from penstock import cli
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]
OBSERVER = 4
SENTENCE = "no quorum: 1 of 3 voters, 2 needed; nodes 2 and 3 do not answer"
DEADLINE_S = 60


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Of four nodes, of which 1 is left of the voters, and 4, which does not vote."""
    with LocalCluster(tmp_path_factory.mktemp("lost") / "cluster", node_count=4) as running:
        assert run(running.bootstrap, "topic", "create", "before").exit_code == 0
        for node_id in (2, 3):
            running.kill_node(node_id)
        yield running


def run(bootstrap: str, *arguments: str) -> Result:
    return CliRunner(env={"KAFKA_BOOTSTRAP_SERVERS": bootstrap}).invoke(
        cli.main, list(arguments), input="", prog_name="penstock"
    )


@pytest.mark.parametrize("node_id", [1, OBSERVER])
@pytest.mark.parametrize(
    "command",
    [
        "topic create after",
        "topic list",
        "topic describe before",
        "topic alter before -p 3",
        "topic delete before",
        "group list",
        "group describe any",
        "transactions list",
        "produce before",
        "consume before",
    ],
)
def test_every_command_says_that_there_is_no_quorum(cluster: LocalCluster, node_id: int, command: str) -> None:
    # Until the node has noticed it answers as before.
    wait_for(lambda: SENTENCE in run(cluster.nodes[node_id].address, "quorum", "status").output, timeout_s=DEADLINE_S)
    result = run(cluster.nodes[node_id].address, *command.split())
    assert (result.exit_code, result.output) == (1, f"Error: {SENTENCE}.\n")


@pytest.mark.parametrize("node_id", [1, OBSERVER])
def test_any_live_node_tells_how_far_the_quorum_is(cluster: LocalCluster, node_id: int) -> None:
    address = cluster.nodes[node_id].address
    wait_for(lambda: "not heard" in run(address, "quorum", "status").output, timeout_s=DEADLINE_S)
    result = run(address, "quorum", "status", "--json")
    assert result.exit_code == 1
    told = json.loads(result.output.splitlines()[0])
    assert (told["leader_id"], told["problem"]) == (None, SENTENCE)
    assert [voter["id"] for voter in told["voters"]] == [1, 2, 3]
    own, *others = (voter["log_end_offset"] for voter in told["voters"])
    assert own > 0
    assert others == [None, None]


def test_transfer_says_why_there_is_no_leader(cluster: LocalCluster) -> None:
    wait_for(lambda: SENTENCE in run(cluster.nodes[1].address, "quorum", "status").output, timeout_s=DEADLINE_S)
    result = run("", "quorum", "transfer", "--data", str(cluster.folder))
    assert (result.exit_code, result.output) == (1, f"Error: {SENTENCE}.\n")


@pytest.mark.parametrize("node_id", [1, OBSERVER])
@pytest.mark.parametrize(
    "command",
    [
        "quorum transfer",
        "config set topic/before retention.ms=1",
        "config unset brokers log.retention.ms",
        "elect --preferred",
        "reassign cancel",
        "drain 1",
        "decommission 1",
    ],
)
def test_commands_over_http_say_that_there_is_no_quorum(cluster: LocalCluster, node_id: int, command: str) -> None:
    address = cluster.nodes[node_id].address
    wait_for(lambda: SENTENCE in run(address, "quorum", "status").output, timeout_s=DEADLINE_S)
    result = run(address, *command.split())
    assert (result.exit_code, result.output) == (1, f"Error: {SENTENCE}.\n")


def test_node_says_in_its_log_what_it_waits_for(cluster: LocalCluster) -> None:
    sentence = "Waiting for a quorum: 1 of 3 voters, 2 needed; nodes 2 and 3 do not answer"
    wait_for(lambda: sentence in cluster.nodes[1].log.read_text(), timeout_s=DEADLINE_S)
    wait_for(lambda: sentence in cluster.nodes[OBSERVER].log.read_text(), timeout_s=DEADLINE_S)
