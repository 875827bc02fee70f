"""The verdict on a run by its folder: the faults that were declared, what they allow, and its end count each time."""

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from told_history import Told

from penstock.chaos.checkers.finding import Verdict
from penstock.chaos.checkers.verdict_text import EXIT_CODES
from penstock.chaos.histories.history_file import write_history
from penstock.chaos.histories.operation import NEMESIS, Operation
from penstock.chaos.histories.run_folder import EndOfRun, RunFolder, RunRecord
from penstock.chaos.nemeses.fault import Kill, PowerLoss
from penstock.chaos.nemeses.schedule import Schedule, Step
from penstock.chaos.runs.run_verdict import judge_run
from penstock.cli import main
from penstock.local.errors import ClusterError

RECORD = RunRecord(workload="queue", nemeses=(), seconds=20, nodes=3, seed=1, cluster="penstock", version="")
WITHOUT_POWER = Schedule(length_s=20, steps=(Step(3, 2, PowerLoss(selector="all")),))


def strike(told: Told, kind: str, **begin: object) -> int:
    """A fault that begins and ends; the index of its beginning."""
    index = len(told.operations)
    for phase in ({"begin": {"kind": kind, **begin}}, {"end": {"kind": kind}}):
        told.operations.append(Operation(len(told.operations), "info", NEMESIS, len(told.operations), kind, phase))
    return index


def lose(told: Told) -> None:
    """An acknowledged record that a read passes over."""
    for offset, value in enumerate((10, 11, 12)):
        told.send(1, "t-0", offset, value)
    told.poll(2, {"t-0": [[0, 10], [2, 12]]})
    told.poll(3, {"t-0": [[0, 10], [2, 12]]}, final=True)


def folder_of(path: Path, told: Told, schedule: Schedule, record: RunRecord = RECORD) -> RunFolder:
    folder = RunFolder(path)
    write_history(folder.history, told.header, told.operations)
    folder.schedule.write_bytes(schedule.encode())
    folder.write_record(record)
    return folder


def judged(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["chaos", "judge", str(folder), *options])


def test_a_fault_that_was_declared_and_never_occurred_makes_the_run_invalid(tmp_path: Path) -> None:
    told = Told()
    told.send(1, "t-0", 0, 10)
    told.poll(2, {"t-0": [[0, 10]]}, final=True)
    folder = folder_of(tmp_path, told, Schedule(length_s=20, steps=(Step(3, 2, Kill()),)))
    assert judge_run(folder).notes == ("the fault kill never occurred",)
    assert judged(tmp_path).exit_code == EXIT_CODES["invalid-run"]
    assert judged(folder.history).exit_code == 0, "a history alone does not say what was declared"


def test_what_the_faults_of_the_schedule_allow_is_allowed(tmp_path: Path) -> None:
    told = Told()
    strike(told, "power-loss")
    lose(told)
    folder = folder_of(tmp_path, told, WITHOUT_POWER)
    verdict = judge_run(folder)
    assert verdict.valid == "valid"
    assert any("3 nodes were taken at once" in (finding.why_allowed or "") for finding in verdict.findings)
    assert judged(tmp_path).exit_code == 0
    assert judged(folder.history).exit_code == EXIT_CODES["anomalies"], "a history alone does not say what is allowed"


def test_the_properties_of_the_nodes_decide_what_is_promised(tmp_path: Path) -> None:
    told = Told()
    strike(told, "power-loss")
    lose(told)
    synced = msgspec.structs.replace(RECORD, properties={"log.flush.interval.messages": "1"})
    assert judge_run(folder_of(tmp_path, told, WITHOUT_POWER, synced)).valid == "anomalies"


def test_a_loss_that_an_event_of_the_nemesis_allows_names_that_event(tmp_path: Path) -> None:
    told = Told()
    strike(told, "power-loss")
    index = strike(told, "kill", in_sync=False)
    lose(told)
    schedule = Schedule(length_s=40, steps=(Step(3, 2, PowerLoss()), Step(30, 2, Kill())))
    verdict = judge_run(folder_of(tmp_path, told, schedule))
    assert verdict.valid == "valid"
    assert any(f"(event {index})" in (finding.why_allowed or "") for finding in verdict.findings)


def test_what_was_seen_at_the_end_is_judged_again(tmp_path: Path) -> None:
    told = Told()
    told.send(1, "t-0", 0, 10)
    told.poll(2, {"t-0": [[0, 10]]}, final=True)
    folder = folder_of(tmp_path, told, Schedule(length_s=20))
    folder.write_end(EndOfRun(lacks=("2 of 3 brokers are there",), failures=("client 1 hung",)))
    as_json = json.loads(judged(tmp_path, "--json").output)
    assert msgspec.convert(as_json, Verdict) == msgspec.convert(msgspec.to_builtins(judge_run(folder)), Verdict)
    assert {finding["type"] for finding in as_json["findings"]} == {"not-whole", "client-failure"}


def test_a_folder_that_lacks_the_schedule_of_its_run_is_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, Told(), Schedule(length_s=20))
    folder.schedule.unlink()
    with pytest.raises(ClusterError, match=r"schedule\.json cannot be read"):
        judge_run(folder)
    result = judged(tmp_path)
    assert result.exit_code == 1
    assert "schedule.json cannot be read" in result.output
