"""Commands that look after a cluster, over the HTTP administration of three nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from waiting import wait_for

from penstock import cli
from penstock.client.admin import Admin
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
Run = Callable[..., Result]
HTTP_CLIENT = Path(__file__).parents[2] / "docs" / "http-client.md"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("operators") / "cluster", node_count=3) as running:
        yield running


@pytest.fixture
def run(cluster: LocalCluster) -> Run:
    """A command that finds the administration by the Kafka bootstrap address; `status` None: any exit status.

    Each command asks the node that answers first, and only the node that a change was asked of has it at once.
    """

    def run_command(*words: str | int, status: int | None = 0, stdin: str = "") -> Result:
        wait_applied(cluster)
        answer = CliRunner(env={"KAFKA_BOOTSTRAP_SERVERS": cluster.bootstrap}).invoke(
            cli.main, list(map(str, words)), input=stdin, prog_name="penstock"
        )
        assert status in (None, answer.exit_code), f"{words}\n{answer.output}\n{answer.exception}"
        return answer

    return run_command


def wait_applied(cluster: LocalCluster) -> None:
    """Until every node that runs has all the metadata that one of them has now."""

    def offsets() -> list[int]:
        found = []
        for node in cluster.nodes.values():
            if node.is_running:
                with Admin(str(node.admin)) as admin:
                    found.append(admin.list_nodes().metadata_offset)
        return found

    newest = max(offsets(), default=0)
    wait_for(lambda: min(offsets(), default=newest) >= newest, lambda: f"metadata to {newest}: {offsets()}")


@pytest.fixture
def told(run: Run) -> Callable[..., Any]:
    """The object that a command with --json prints."""
    return lambda *words, status=0: json.loads(run(*words, "--json", status=status).stdout)


def test_configs_are_described_set_and_unset(run: Run, told: Callable[..., Any]) -> None:
    run("topic", "create", "configured", "--partitions", 1)
    run("config", "set", "topic/configured", "retention.ms=5000", "segment.ms=60000")
    assert run("config", "get", "topic/configured", "retention.ms").stdout == "5000\n"
    (retention,) = told("config", "describe", "topic/configured", "retention.ms", "--doc")["configs"]
    assert (retention["source"], retention["default"]) == ("DYNAMIC_TOPIC_CONFIG", "604800000")
    assert "retain" in run("config", "describe", "topic/configured", "--doc").stdout
    run("config", "set", "topic/configured", "retention.ms=7", "--dry-run")
    run("config", "unset", "topic/configured", "retention.ms")
    assert told("config", "get", "topic/configured", "retention.ms")["value"] == "604800000"
    refused = run("config", "set", "topic/configured", "retention.ms=soon", status=1)
    assert "INVALID_CONFIG" in refused.output
    assert "no config" in run("config", "get", "topic/configured", "colour", status=1).output
    run("config", "set", "brokers", "log.retention.ms=700000")
    wait_for(
        lambda: run("config", "get", "broker/2", "log.retention.ms").stdout == "700000\n", "broker 2 has the default"
    )
    run("config", "unset", "brokers", "log.retention.ms")
    run("config", "set", "group/g", "consumer.session.timeout.ms=50000")
    assert run("config", "get", "group/g", "consumer.session.timeout.ms").stdout == "50000\n"
    run("config", "set", "client-metrics/m", "interval.ms=30000")
    assert told("config", "get", "client-metrics/m", "interval.ms")["value"] == "30000"
    run("config", "set", "broker-logger/3", "penstock.broker=DEBUG")
    assert run("config", "get", "broker-logger/3", "penstock.broker").stdout == "DEBUG\n"
    run("config", "unset", "broker-logger/3", "penstock.broker")


def test_replicas_move_by_a_plan_and_back(run: Run, told: Callable[..., Any], tmp_path: Path) -> None:
    run("topic", "create", "moved", "--partitions", 6, "--replication-factor", 2)
    plan, rollback = tmp_path / "plan.json", tmp_path / "rollback.json"
    words = ["reassign", "plan", "--topic", "moved", "--brokers", "1,2", "--save", plan, "--save-rollback", rollback]
    made = told(*words)
    assert made["move_count"] == len(json.loads(plan.read_text())["partitions"]) > 0
    before = told("topic", "describe", "moved")["topics"][0]["partitions"]
    assert any(3 in one["replicas"] for one in before), "nothing was moved by a plan"
    done = told("reassign", "apply", "--plan", plan, "--throttle", 10_000_000)
    assert done["begun_count"] == made["move_count"]
    after = told("topic", "describe", "moved")["topics"][0]["partitions"]
    assert {replica for one in after for replica in one["replicas"]} == {1, 2}
    throttled = told("config", "describe", "topic/moved", "--all")["configs"]
    assert [one["value"] for one in throttled if one["name"] == "leader.replication.throttled.replicas"] == [""]
    assert told("reassign", "watch")["moved_count"] == 0
    assert told("reassign", "watch", "--once")["count"] == 0
    run("reassign", "apply", "--plan", rollback)
    assert told("topic", "describe", "moved")["topics"][0]["partitions"][0]["replicas"] == before[0]["replicas"]
    assert told("reassign", "cancel", "moved")["cancelled_count"] == 0
    run("elect", "--preferred", "moved")
    assert told("elect", "--preferred", "moved:0")["failed_count"] in (0, 1)
    assert "does not exist" in run("elect", "--preferred", "nowhere", status=1).output


def test_topics_are_listed_by_what_they_hold(run: Run, told: Callable[..., Any]) -> None:
    run("topic", "create", "small", "large", "--partitions", 1)
    run("produce", "large", stdin="x" * 5_000 + "\n")
    wait_for(lambda: told("topic", "list", "--sizes")["topics"][0]["name"] == "large", "the largest topic is first")
    assert "large" in run("topic", "list", "--sizes").stdout
    assert told("topic", "list", "--unavailable") == {"partitions": []}


def test_drained_broker_leads_nothing_until_it_is_undone(run: Run, told: Callable[..., Any]) -> None:
    run("topic", "create", "drained", "--partitions", 3, "--replication-factor", 3)
    assert told("broker", "describe", 2)["maintenance"]["leadership_count"] > 0
    state = told("drain", 2, "--wait")
    assert "running, drained\nleads 0, has " in run("broker", "describe", 2).stdout
    assert "BROKER_ID_NOT_REGISTERED" in run("broker", "describe", 77, status=1).output
    assert (state["may_stop"], state["leadership_count"]) == (True, 0)
    assert "drained-broker" in {one["kind"] for one in told("doctor")["findings"]}
    assert "is not drained any more" in run("drain", 2, "--undo").output
    assert "BROKER_ID_NOT_REGISTERED" in run("drain", 77, status=1).output


def test_levels_of_features_are_lowered_found_behind_and_raised(run: Run, told: Callable[..., Any]) -> None:
    def level(found: dict[str, Any]) -> int:
        (only,) = [one["level"] for one in found["features"] if one["name"] == "transaction.version"]
        assert isinstance(only, int)
        return only

    assert level(told("features", "describe")) == 2
    assert "transaction.version" in run("features", "describe").stdout
    asked = run("features", "downgrade", "transaction.version=1", "--dry-run").output
    assert asked == "transaction.version could go from 2 to 1.\n"
    assert level(told("features", "describe")) == 2
    lowered = told("features", "downgrade", "transaction.version=1")
    assert (lowered["changed"], level(lowered)) == ({"transaction.version": 1}, 1)
    assert level(told("features", "describe")) == 1
    kinds = {one["kind"] for one in told("doctor", status=None)["findings"]}
    assert "features-behind" in kinds
    refused = run("features", "upgrade", "transaction.version=9", status=1)
    assert "only supports versions 0-2" in refused.output
    assert run("features", "upgrade").output == "transaction.version went from 1 to 2.\n"
    assert level(told("features", "describe")) == 2
    assert run("features", "upgrade").output == "All levels are the highest that every node supports.\n"


def test_events_are_remembered_and_resumed(run: Run) -> None:
    run("topic", "create", "told-as-event", "--partitions", 1)

    def created() -> dict[str, Any] | None:
        found = [json.loads(line) for line in run("events", "--json").stdout.splitlines()]
        return next((one for one in found if one.get("topic") == "told-as-event"), None)

    # Each command asks the node that answers first: one may have applied the creation later than another.
    event = wait_for(created, "the event of the creation")
    assert event is not None
    assert event["kind"] == "topic-created"
    sentence = "topic told-as-event created with 1 partition"
    wait_for(lambda: sentence in run("events").stdout, "the sentence of the event")
    behind = [json.loads(line)["id"] for line in run("events", "--json", "--since", event["id"]).stdout.splitlines()]
    assert event["id"] not in behind


def test_lines_of_the_page_for_programs_run(cluster: LocalCluster, run: Run) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", HTTP_CLIENT.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        exec(compile(block, str(HTTP_CLIENT), "exec"), {"ADMIN": cluster.nodes[1].admin})


def test_cluster_that_is_well_and_one_whose_nodes_are_gone(
    run: Run, told: Callable[..., Any], cluster: LocalCluster
) -> None:
    run("topic", "create", "watched", "--partitions", 3, "--replication-factor", 3)
    # Undrained and restarted brokers are in sync again soon.
    wait_for(lambda: told("doctor", status=None)["is_ok"], "nothing is wrong")
    state = told("status", "--once")
    assert (state["is_ok"], state["summary"]) == (True, "Nothing is wrong.")
    assert [one["state"] for one in state["nodes"]["nodes"]] == ["running"] * 3
    assert "leads the metadata quorum" in run("status", "--once").stdout

    try:
        cluster.kill_node(3)
        wait_for(lambda: "Broker 3 is fenced" in _said(run, "doctor"), "the killed broker is fenced")
        assert not told("status", "--once", status=1)["is_ok"]
        wait_for(lambda: "watched" in _said(run, "topic", "list", "--under-replicated"), "replicas are not in sync")
        kinds = {one["kind"] for one in told("doctor", status=1)["findings"]}
        assert {"fenced-broker", "under-replicated"} <= kinds
        with Admin(str(cluster.nodes[1].admin)) as admin:
            assert not admin.get_decommission(3).may_unregister
        gone = told("broker", "unregister", 3)
        assert (gone["broker_id"], gone["was_active"]) == (3, False)
        assert gone["replica_count"] >= 3
        wait_for(lambda: 3 not in _brokers(cluster), "it is registered no more")
        assert "BROKER_ID_NOT_REGISTERED" in run("broker", "unregister", 3, status=1).output
        cluster.start_node(3)
        wait_for(lambda: 3 in _brokers(cluster), "it has registered anew")
        cluster.kill_node(3)

        cluster.kill_node(2)
        sentence = "No quorum: 1 of 3 voters, 2 needed; nodes 2 and 3 do not answer"
        wait_for(lambda: _said(run, "status", "--once").startswith(sentence), "the quorum is gone")
        assert told("doctor", status=1)["findings"][0]["kind"] == "no-quorum"
    finally:
        for node_id in (3, 2):
            if not cluster.nodes[node_id].is_running:
                cluster.start_node(node_id)
    # Other tests of this file may come behind it.
    wait_for(lambda: told("doctor", status=None)["is_ok"], "nothing is wrong again")


def test_quorum_is_handed_over_and_snapshots_are_made_through_any_node(
    run: Run, told: Callable[..., Any], cluster: LocalCluster
) -> None:
    for target_id, node in zip((1, 2, 3, 1), (*cluster.nodes.values(), cluster.nodes[1]), strict=True):
        leader_id = told("quorum", "status")["leader_id"]
        if leader_id != target_id:
            words = ("quorum", "transfer", "--to", target_id, "--admin", node.admin)
            assert run(*words).stdout == f"Node {target_id} leads the quorum now.\n"
        # No record tells of a leader: each node learns it from the leader itself.
        wait_for(partial(_is_led_by, told, target_id), "the node that answers first knows the leader")
    refused = run("quorum", "transfer", "--to", 9, status=1)
    assert refused.output == "Error: Node 9 is not one of the other voters.\n"
    assert told("quorum", "transfer")["leader_id"] in (2, 3)
    taken = told("quorum", "snapshot")["snapshots"]
    assert [one["node_id"] for one in taken] == [1, 2, 3]
    for one in taken:
        assert Path(one["file"]).name == f"{one['end_offset']:020}-{one['epoch']:010}.checkpoint"
    assert run("quorum", "snapshot", "--node", 2).stdout.startswith("node 2  end offset ")
    listed = told("quorum", "snapshots")["snapshots"]
    assert {one["file"] for one in taken} <= {one["file"] for one in listed}
    assert "end offset" in run("quorum", "snapshots").stdout
    assert "Node 9 is not a voter" in run("quorum", "snapshot", "--node", 9, status=1).output


def _is_led_by(told: Callable[..., Any], leader_id: int) -> bool:
    return bool(told("quorum", "status")["leader_id"] == leader_id)


def _brokers(cluster: LocalCluster) -> list[int]:
    """Those that are registered, as node 1 knows."""
    with Admin(str(cluster.nodes[1].admin)) as admin:
        return [one.broker_id for one in admin.list_brokers().data]


def _said(run: Run, *words: str) -> str:
    return run(*words, status=None).output
