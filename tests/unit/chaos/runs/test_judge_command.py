"""`penstock chaos judge`: the verdict, what proves it, and an exit status that a script understands."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from told_history import Told

from penstock.chaos.checkers.finding import Finding, Verdict
from penstock.chaos.checkers.verdict_text import told as told_verdict
from penstock.chaos.histories.history_file import write_history
from penstock.cli import main


def judged(told: Told, folder: Path, *options: str) -> Result:
    write_history(folder / "history.jsonl", told.header, told.operations)
    return CliRunner().invoke(main, ["chaos", "judge", str(folder / "history.jsonl"), *options])


@pytest.fixture
def told() -> Told:
    told = Told()
    told.send(1, "t-0", 0, 10)
    told.poll(2, {"t-0": [[0, 10]]}, final=True)
    return told


def test_a_valid_history(told: Told, tmp_path: Path) -> None:
    result = judged(told, tmp_path)
    assert result.exit_code == 0, result.output
    assert result.output.splitlines() == ["valid: no anomaly that is not allowed", "poll: 1 ok", "send: 1 ok"]
    assert CliRunner().invoke(main, ["chaos", "judge", str(tmp_path)]).output == result.output, "the folder of a run"


def test_anomalies_with_what_proves_them(told: Told, tmp_path: Path) -> None:
    lost = told.send(1, "t-0", 1, 11)
    told.send(1, "t-0", 2, 12)
    read = told.poll(3, {"t-0": [[0, 10], [2, 12]]})
    result = judged(told, tmp_path)
    assert result.exit_code == 3
    assert result.output.startswith("ANOMALIES\nlost-write (1)\n  t-0: 11, acknowledged at offset 1, was never polled")
    assert f"(events {lost}, {read})" in result.output
    as_json = json.loads(judged(told, tmp_path, "--json").output)
    assert as_json["valid"] == "anomalies"
    assert as_json["findings"][0]["operations"] == [lost, read]


def test_a_run_that_shows_nothing(tmp_path: Path) -> None:
    told = Told()
    told.do(1, "send", [["send", "t-0", 5]], "info")
    result = judged(told, tmp_path)
    assert result.exit_code == 4
    assert "no operation of a client succeeded" in result.output


def test_it_writes_the_history_for_jepsens_checkers(told: Told, tmp_path: Path) -> None:
    assert judged(told, tmp_path, "--edn", str(tmp_path / "history.edn")).exit_code == 0
    first = (tmp_path / "history.edn").read_text().splitlines()[0]
    assert first == '{:index 0, :time 0, :type :invoke, :process 1, :f :send, :value [[:send "t-0" 10]]}'


def test_a_workload_that_no_checker_knows_is_refused(told: Told, tmp_path: Path) -> None:
    result = judged(told, tmp_path, "--workload", "bank")
    assert result.exit_code == 1
    assert "no checker knows histories of the workload 'bank' (known are:" in result.output


def test_a_file_that_is_no_history_is_refused_with_its_line(told: Told, tmp_path: Path) -> None:
    write_history(tmp_path / "history.jsonl", told.header, told.operations)
    with (tmp_path / "history.jsonl").open("ab") as file:
        file.write(b"{}\n")
    result = CliRunner().invoke(main, ["chaos", "judge", str(tmp_path)])
    assert result.exit_code == 1
    assert f"line {len(told.operations) + 2} is no line of a history" in result.output


def test_values_of_another_workload_are_refused_with_a_sentence(told: Told, tmp_path: Path) -> None:
    told.do(4, "txn", [7])
    result = judged(told, tmp_path, "--workload", "list-append")
    assert result.exit_code == 1
    assert "the checker list-append expected operations of the workload 'list-append'" in result.output


def test_allowed_findings_and_others_of_a_type_are_counted_apart() -> None:
    findings = [Finding(type="stale-read", message="in the end")]
    findings += [Finding(type="stale-read", message="for a while", allowed=True, why_allowed="so")] * 2
    verdict = Verdict(valid="anomalies", findings=tuple(findings), counts={"stale-read": 3})
    assert told_verdict(verdict).splitlines()[1::2] == ["stale-read (1)", "stale-read (2), allowed: so"]
