"""Plans, addresses, names and sentences of the operators' commands."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
import pytest
from click.testing import CliRunner

from penstock import cli
from penstock.client.admin import Admin
from penstock.client.operating.admin_address import told_addresses
from penstock.client.operating.admin_options import check_quorum
from penstock.client.operating.broker_commands import broker_lines, question, unregistered_sentence
from penstock.client.operating.config_commands import Resource, parse_resource
from penstock.client.operating.decommission_command import decommission_lines
from penstock.client.operating.draining import is_done, is_given_up, maintenance_sentence, wait_drained
from penstock.client.operating.machine_facts import TOOLS, MachineFacts, missing_tools
from penstock.client.operating.machine_findings import machine_findings
from penstock.client.operating.partition_names import check_outcomes, parse_partitions
from penstock.client.operating.reassign_commands import plan_sentence
from penstock.client.operating.reassignment_file import moved_replicas, parse_plan, plan_text
from penstock.client.operating.throttles import FOLLOWERS, LEADERS, own_keys, throttled_replicas
from penstock.protocol.rest.brokers import Broker
from penstock.protocol.rest.elections import PartitionName, PartitionOutcome
from penstock.protocol.rest.maintenance import Decommission, HarmedPartition, LedPartition, Maintenance
from penstock.protocol.rest.moves import Assignment, Move, ReassignmentPlan
from penstock.protocol.rest.quorum import Quorum
from penstock.protocol.rest.resources import Relationship, ResourceMetadata
from penstock.protocol.structs import replace

MOVES = [
    Move(topic="t", partition=0, before=[1, 2], after=[3, 2], adding=[3], removing=[1]),
    Move(topic="t", partition=1, before=[1, 2], after=[2, 1], adding=[], removing=[]),
]
MACHINE = MachineFacts(
    python_version=(3, 11, 2),
    has_uvloop=True,
    open_files_max=65_536,
    folder="/data",
    free_bytes=500,
    total_bytes=1_000,
    swap_used_bytes=0,
    swappiness=60,
    is_clock_synchronised=True,
    missing_tools=(),
)


def test_plan_is_written_and_read_in_the_format_of_kafkas_tool() -> None:
    text = plan_text(MOVES)
    assert json.loads(text) == {
        "version": 1,
        "partitions": [
            {"topic": "t", "partition": 0, "replicas": [3, 2], "log_dirs": ["any", "any"]},
            {"topic": "t", "partition": 1, "replicas": [2, 1], "log_dirs": ["any", "any"]},
        ],
    }
    assert parse_plan(text)[0] == Assignment(topic="t", partition=0, replicas=[3, 2])
    assert parse_plan(plan_text(MOVES, is_rollback=True))[0].replicas == [1, 2]
    # Kafka's tool takes plans without log directories, too.
    assert parse_plan('{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}')[0].replicas == [1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "no plan"),
        ('{"version": 2, "partitions": []}', "version is 2"),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":[1],"log_dirs":["/d"]}]}', "log directories"),
    ],
)
def test_file_that_is_no_plan_says_why(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_plan(text)


def test_plan_says_what_it_moves_between_brokers() -> None:
    assert moved_replicas(MOVES) == {1: (0, 1), 3: (1, 0)}
    made = ReassignmentPlan(move_count=2, moves=MOVES, bytes_to_copy=2048, begun_count=0, results=[])
    assert plan_sentence(made) == "2 partitions to move, 2.0 KiB to copy (broker 1 +0 -1, broker 3 +1 -0)."


def test_throttle_names_replicas_that_copy_and_leaves_out_what_is_only_ordered_anew() -> None:
    assert throttled_replicas(MOVES) == {"t": {LEADERS: "0:1,0:2", FOLLOWERS: "0:3"}}
    assert own_keys({"a": "DYNAMIC_BROKER_CONFIG", "b": "DEFAULT_CONFIG"}) == ["a"]


def test_addresses_are_those_that_brokers_say_once_each() -> None:
    assert told_addresses("b:1", ["http://a:1,http://b:2", None, "http://a:1"]) == ("http://a:1", "http://b:2")
    for answers, reason in (
        ([], "No broker of b:1 says"),
        ([""], "admin.listeners is empty"),
        ([None], "only Penstock"),
    ):
        with pytest.raises(click.ClickException, match=reason):
            told_addresses("b:1", answers)


def test_partitions_and_resources_are_named() -> None:
    assert parse_partitions(["a", "b:3"]) == (["a"], [PartitionName(topic="b", partition=3)])
    with pytest.raises(click.UsageError):
        parse_partitions(["a:x"])
    assert parse_resource("brokers") == Resource("broker", "")
    assert parse_resource("topic/a/b") == Resource("topic", "a/b")
    for text in ("topic", "topic/", "table/x"):
        with pytest.raises(ValueError, match="is not topic/NAME"):
            parse_resource(text)


def test_refused_partitions_are_an_error_with_a_line_each() -> None:
    done = PartitionOutcome(topic="t", partition=0, error_code=0, error=None, message=None)
    check_outcomes([done], what="moved")
    refused = PartitionOutcome(topic="t", partition=1, error_code=39, error="INVALID_REPLICA_ASSIGNMENT", message="No.")
    with pytest.raises(click.ClickException) as raised:
        check_outcomes([done, refused], what="moved")
    assert raised.value.message == "t-1 was not moved: No (INVALID_REPLICA_ASSIGNMENT)."


def maintenance(**changes: object) -> Maintenance:
    facts: dict[str, object] = {
        "is_drained": True,
        "is_until_restart": False,
        "is_last": False,
        "may_stop": True,
        "blockers": [],
        "leadership_count": 0,
        **changes,
    }
    return Maintenance(
        broker_id=2,
        is_active=True,
        replica_count=3,
        leaderships=[LedPartition(topic="t", partition=0, reason="no other replica is in sync")]
        if facts["leadership_count"]
        else [],
        offline_count=0,
        offline=[HarmedPartition(topic="t", partition=0, isr=[], min_insync_replicas=1)],
        under_min_isr_count=0,
        under_min_isr=[],
        **facts,  # type: ignore[arg-type]
    )


def test_drain_says_when_the_node_may_be_stopped() -> None:
    assert maintenance_sentence(maintenance()) == "Broker 2 is drained and leads nothing. Its node may be stopped."
    waiting = maintenance(leadership_count=1, may_stop=False, blockers=["t-0 would have no leader"])
    assert maintenance_sentence(waiting) == (
        "Broker 2 is drained and still leads 1 partition. Do not stop its node yet: t-0 would have no leader; "
        "no other replica is in sync."
    )
    assert not is_done(waiting)
    assert not is_given_up(maintenance(is_last=True))
    assert not is_done(maintenance(leadership_count=1))
    assert "not drained any more" in maintenance_sentence(maintenance(is_drained=False))


def test_drain_until_a_restart_waits_for_no_broker_that_is_not_there() -> None:
    last = maintenance(
        is_until_restart=True, is_last=True, leadership_count=1, may_stop=False, blockers=["t-0 would have no leader"]
    )
    assert is_given_up(last)
    assert maintenance_sentence(last) == (
        "Broker 2 is drained until it is restarted and still leads 1 partition: no other broker is there to take over "
        "(t-0 would have no leader; no other replica is in sync)."
    )


def test_drain_that_ends_because_the_broker_has_just_started_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    leading = maintenance(is_until_restart=True, leadership_count=1)
    ended = maintenance(is_drained=False, leadership_count=1)
    told = iter([leading, ended, maintenance(is_until_restart=True)])
    asked: list[str] = []

    class Asked:
        def get_maintenance(self, _broker_id: int) -> Maintenance:
            asked.append("get")
            return next(told)

        def drain_broker(self, _broker_id: int, *, until_restart: bool) -> Maintenance:
            asked.append(f"drain {until_restart}")
            return leading

    monkeypatch.setattr("penstock.client.operating.draining.LOOK_INTERVAL_S", 0.0)
    state = wait_drained(cast(Admin, Asked()), leading, 60.0, until_restart=True)
    assert is_done(state)
    assert asked == ["get", "get", "drain True", "get"]


def properties_file(folder: Path, *lines: str) -> str:
    file = folder / "server.properties"
    file.write_text("\n".join(["node.id=7", "process.roles=broker,controller", *lines]))
    return str(file)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", ""])
def test_drain_asks_the_node_whose_properties_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    asked: list[object] = []

    class Admin(AbstractContextManager[Any]):
        def __init__(self, urls: str, **_options: object) -> None:
            asked.append(urls)

        def __exit__(self, *_error: object) -> None:
            pass

        def get_quorum(self) -> SimpleNamespace:
            return SimpleNamespace(reason=None)

        def drain_broker(self, broker_id: int, **options: object) -> Maintenance:
            asked.append((broker_id, options))
            return maintenance(is_until_restart=True)

    monkeypatch.setattr("penstock.client.admin.Admin", Admin)
    file = properties_file(tmp_path, f"admin.listeners=http://{host}:9644")
    done = CliRunner().invoke(cli.main, ["drain", "--config", file, "--until-restart", "--wait"])
    assert done.exit_code == 0, done.output
    assert asked == ["http://127.0.0.1:9644", (7, {"until_restart": True})]
    assert "Broker 2 is drained until it is restarted and leads nothing." in done.output


def test_drain_of_a_node_that_cannot_be_asked_is_a_sentence(tmp_path: Path) -> None:
    chosen = properties_file(tmp_path, "admin.listeners=http://127.0.0.1:0")
    assert "no fixed port" in CliRunner().invoke(cli.main, ["drain", "--config", chosen]).output
    done = CliRunner(env={"PENSTOCK_PROCESS_ROLES": "controller"}).invoke(cli.main, ["drain", "--config", chosen])
    # Listeners of a broker are none of a controller; the sentence is that of `penstock start`.
    assert done.exit_code == 1


def test_decommission_says_what_is_next() -> None:
    def state(**changes: object) -> Decommission:
        facts: dict[str, object] = {"replica_count": 0, "moving_count": 0, "bytes_left": None, "stuck": [], **changes}
        return Decommission(
            broker_id=4,
            is_drained=True,
            moving=[],
            may_unregister=not facts["replica_count"],
            blockers=[],
            **facts,  # type: ignore[arg-type]
        )

    assert "--unregister` takes it out" in decommission_lines(state())[0]
    assert "folder deleted" in decommission_lines(state(is_unregistered=True))[0]
    stuck = [PartitionName(topic="t", partition=1)]
    lines = decommission_lines(state(replica_count=2, moving_count=1, bytes_left=2048, stuck=stuck))
    assert lines[0] == "Broker 4 has 2 replicas, 2.0 KiB; 1 of them are moving."
    assert "t-1" in lines[1]
    assert lines[-1].endswith("--wait` goes on.")


@pytest.mark.parametrize(
    ("facts", "kinds"),
    [
        (MACHINE, set()),
        (replace(MACHINE, python_version=(3, 10, 9)), {"python-version"}),
        (replace(MACHINE, has_uvloop=False), {"no-uvloop"}),
        (replace(MACHINE, open_files_max=1_024), {"open-files"}),
        (replace(MACHINE, open_files_max=-1), set()),
        (replace(MACHINE, free_bytes=50), {"disk-almost-full"}),
        (replace(MACHINE, swap_used_bytes=1 << 30), {"swap"}),
        (replace(MACHINE, is_clock_synchronised=None), {"clock"}),
        (replace(MACHINE, missing_tools=("Java",)), {"no-java"}),
    ],
)
def test_doctor_of_a_machine(facts: MachineFacts, kinds: set[str]) -> None:
    found = machine_findings(facts)
    assert {finding.kind for finding in found} == kinds
    assert all(finding.advice for finding in found)


def test_one_of_several_programs_is_enough() -> None:
    assert missing_tools(lambda _: None) == tuple(TOOLS)
    assert "kcat" not in missing_tools(lambda program: "/bin/x" if program == "kafkacat" else None)


@pytest.mark.parametrize(
    "words",
    [
        ["elect"],
        ["elect", "--preferred", "--unclean"],
        ["drain", "1", "--undo", "--wait"],
        ["drain", "1", "--undo", "--until-restart"],
        ["drain"],
        ["drain", "1", "--config", "/dev/null"],
        ["decommission", "1", "--cancel", "--wait"],
        ["reassign", "apply", "--throttle", "5", "--no-wait"],
        ["reassign", "plan", "--brokers", "x"],
        ["config", "get", "table/x", "key"],
        ["status", "--admin", "ftp://x"],
        ["topic", "list", "--sizes", "--unavailable"],
    ],
)
def test_what_cannot_be_meant_is_status_2(words: list[str]) -> None:
    # Nothing listens at port 9; a command that understood this would end with 1.
    asked = words if "--admin" in words or words[0] == "topic" else [*words, "--admin", "http://127.0.0.1:9"]
    answer = CliRunner(env={"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9"}).invoke(cli.main, asked)
    assert answer.exit_code == 2, answer.output


def test_node_that_is_not_reached_is_one_sentence_with_what_to_do() -> None:
    answer = CliRunner().invoke(cli.main, ["events", "--admin", "http://127.0.0.1:9"])
    assert answer.exit_code == 1
    assert "No node can be reached" in answer.output
    assert "admin.listeners" in answer.output


def test_unregistering_says_what_is_left_to_do() -> None:
    assert unregistered_sentence(4, is_active=False, replica_count=0) == "Broker 4 is unregistered."
    left = unregistered_sentence(4, is_active=True, replica_count=1_200)
    assert "registers again: stop its node first" in left
    assert "still named in 1,200 replicas" in left
    assert question(4, is_active=False, replica_count=1) == "Broker 4 is fenced and has 1 replica. Unregister it?"
    assert question(4, is_active=True, replica_count=0) == "Broker 4 runs. Unregister it?"


def test_a_broker_is_described_with_what_may_be_done_with_it() -> None:
    none = Relationship(related="")
    broker = Broker(
        metadata=ResourceMetadata(self_=""),
        cluster_id="c",
        broker_id=2,
        host="h",
        port=9092,
        rack="left",
        is_fenced=False,
        configs=none,
        partition_replicas=none,
    )
    leaving = Decommission(
        broker_id=2,
        is_drained=True,
        replica_count=3,
        moving_count=1,
        moving=[],
        bytes_left=2048,
        stuck=[],
        may_unregister=False,
        blockers=["it has 3 replicas"],
    )
    lines = broker_lines(broker, maintenance(), leaving)
    assert lines[0] == "broker 2 at h:9092, rack left: running, drained"
    assert lines[1].endswith("has 3 replicas, 2.0 KiB, 1 moving")
    assert lines[2] == "its node may be stopped: yes"
    assert lines[3] == "it may be unregistered: no, it has 3 replicas"


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("No quorum: 1 of 3 voters, 2 needed; nodes 2 and 3 do not answer (node 2: refused).", "no quorum: 1 of 3"),
        # An election ends soon: the change is waited for.
        ("No leader yet: 3 of 3 voters, 2 needed.", None),
        (None, None),
    ],
)
def test_changes_are_refused_at_once_without_a_majority_only(reason: str | None, sentence: str | None) -> None:
    class Asked:
        def get_quorum(self) -> Quorum:
            return Quorum(
                is_known_by_leader=reason is None,
                reason=reason,
                leader_id=None,
                epoch=1,
                high_watermark=None,
                voters=[],
                observers=[],
            )

    admin = cast(Admin, Asked())
    if sentence is None:
        check_quorum(admin)
    else:
        with pytest.raises(click.ClickException, match=sentence):
            check_quorum(admin)
