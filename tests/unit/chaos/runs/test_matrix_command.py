"""`penstock chaos matrix`: what it makes, what it goes on with, and an exit status that leaves nothing out."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from penstock.chaos.checkers.finding import Finding, Verdict
from penstock.chaos.histories.run_folder import RunFolder, RunRecord
from penstock.chaos.nemeses.schedule import Schedule
from penstock.chaos.runs import chaos_run
from penstock.chaos.runs.matrix_command import matrix
from penstock.local.errors import ClusterError

LOST = Finding(type="lost-write", message="7 is gone")
VERDICTS = {
    "counter-nothing": Verdict(valid="anomalies", findings=(LOST,), counts={"lost-write": 1}),
    "counter-disks": Verdict(valid="invalid-run", notes=("a fault did not take hold",)),
}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the runs that were made. Those of links cannot be."""
    names: list[str] = []

    def make_run(record: RunRecord, folder: RunFolder, *, say: Callable[[str], None]) -> None:
        folder.create()
        if "-links-" in folder.path.name:
            raise ClusterError("no proxy is installed")
        names.append(folder.path.name)
        folder.write_record(record)
        folder.schedule.write_bytes(Schedule(length_s=9).encode())
        found = (verdict for name, verdict in VERDICTS.items() if folder.path.name.startswith(name))
        folder.verdict.write_bytes(msgspec.json.encode(next(found, Verdict(valid="valid"))))

    monkeypatch.setattr(chaos_run, "make_run", make_run)
    return names


def run(folder: Path, only: str) -> Result:
    return CliRunner().invoke(matrix, ["--out", str(folder), "--only", only])


def test_a_run_that_could_not_be_made_is_no_success(made: list[str], tmp_path: Path) -> None:
    result = run(tmp_path, "queue-links-")
    assert made == []
    assert result.exit_code == 1
    assert "could not be made: no proxy is installed" in result.output


def test_a_run_that_is_there_is_not_made_again_and_results_have_all(made: list[str], tmp_path: Path) -> None:
    assert run(tmp_path, "register-nothing").exit_code == 0
    assert run(tmp_path, "counter-nothing").exit_code == 3
    assert run(tmp_path, "register-nothing").exit_code == 0, "what others found is theirs"
    assert [name.rpartition("-")[0] for name in made] == ["register-nothing", "counter-nothing"]
    results = (tmp_path / "results.md").read_text()
    assert "| register-nothing-" in results
    assert "1 × lost-write" in results


def test_only_runs_in_which_something_was_found_keep_the_data_of_nodes(made: list[str], tmp_path: Path) -> None:
    run(tmp_path, "register-nothing")
    run(tmp_path, "counter-nothing")
    assert [(tmp_path / name / "nodes").exists() for name in made] == [False, True]


def test_the_exit_status_says_the_worst(made: list[str], tmp_path: Path) -> None:
    assert run(tmp_path, "counter-disks").exit_code == 4
    assert run(tmp_path, "register-").exit_code == 1, "one could not be made"
    assert "counter-links-" in run(tmp_path, "counter-").output
    assert run(tmp_path, "counter-").exit_code == 3, "another one found anomalies"
    assert made


def test_a_name_that_no_run_has_is_refused(tmp_path: Path) -> None:
    result = run(tmp_path, "queues-")
    assert result.exit_code == 2
    assert "no run of the matrix has 'queues-' in its name" in result.output


def test_links_of_apache_kafka_are_not_broken(tmp_path: Path) -> None:
    words = ["--out", str(tmp_path), "--cluster", "apache-kafka", "--links", "namespaces"]
    result = CliRunner().invoke(matrix, words)
    assert result.exit_code == 2
    assert "no --links" in result.output


def test_mixes_have_only_what_proxies_can_do_to_links(made: list[str], tmp_path: Path) -> None:
    assert run(tmp_path, "register-links-").exit_code == 1
    assert made == []
    told = run(tmp_path, "register-links-").output
    assert "--nemesis partition,slow-link,bandwidth,connection-resets " in told
    assert "--links proxies" in told
