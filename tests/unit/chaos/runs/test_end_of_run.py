"""What must be true at the end of every run."""

from pathlib import Path

import pytest

from penstock.chaos.histories.operation import Header, History
from penstock.chaos.histories.run_folder import EndOfRun, RunFolder
from penstock.chaos.runs.end_of_run import end_of_run
from penstock.local.errors import ClusterError

EMPTY = History(Header("queue"), ())


def test_a_cluster_that_is_whole_and_clients_that_ended_are_no_finding() -> None:
    assert end_of_run(EndOfRun())(EMPTY).findings == ()


def test_what_the_cluster_lacks_is_a_finding_that_nothing_allows() -> None:
    (finding,) = end_of_run(EndOfRun(lacks=("2 of 3 brokers are there",)))(EMPTY).findings
    assert (finding.type, finding.allowed) == ("not-whole", False)
    assert "2 of 3 brokers" in finding.message


def test_each_client_that_failed_is_a_finding() -> None:
    checked = end_of_run(EndOfRun(failures=("client 1 hung", "client 2 crashed")))(EMPTY)
    assert [finding.message for finding in checked.findings] == ["client 1 hung", "client 2 crashed"]
    assert checked.counts == {"client-failure": 2}


def test_the_end_of_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    end = EndOfRun(lacks=("no broker",), failures=("client 1 hung",))
    RunFolder(tmp_path).write_end(end)
    assert RunFolder(tmp_path).read_end() == end


def test_a_folder_without_the_end_of_its_run_lacks_nothing_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    assert RunFolder(tmp_path).read_end() == EndOfRun()
    RunFolder(tmp_path).end.write_text('{"lacks": 3}')
    with pytest.raises(ClusterError, match=r"end\.json does not tell the end of a run"):
        RunFolder(tmp_path).read_end()
