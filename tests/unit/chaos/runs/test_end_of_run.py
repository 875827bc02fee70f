"""What must be true at the end of every run."""

from pathlib import Path

import pytest

from penstock.chaos.histories.operation import NEMESIS, Header, History, Operation
from penstock.chaos.histories.run_folder import EndedNode, EndOfRun, RunFolder
from penstock.chaos.runs.end_of_run import end_of_run
from penstock.local.errors import ClusterError

EMPTY = History(Header("queue"), ())
SECOND_NS = 1_000_000_000


def faulty(kind: str, *nodes: int) -> History:
    """A fault hit these nodes from 10 s to 20 s."""
    told = [
        Operation(index, "info", NEMESIS, at_s * SECOND_NS, kind, {phase: {"kind": kind, "nodes": list(nodes)}})
        for index, (phase, at_s) in enumerate((("begin", 10), ("end", 20)), 5)
    ]
    return History(Header("queue"), told)


def ended(node: int, at_s: float, status: int | None = 1) -> EndOfRun:
    sentence = f"node {node} ended by itself (exit status {status})"
    time = int(at_s * SECOND_NS)
    return EndOfRun(
        ended=(EndedNode(node=node, time=time, exit_status=status, sentence=sentence, log_tail="  its last line"),)
    )


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


def test_a_node_that_ended_by_itself_is_a_finding_with_its_status_and_the_end_of_its_log() -> None:
    (finding,) = end_of_run(ended(2, 15, -11))(EMPTY).findings
    assert (finding.type, finding.allowed) == ("node-ended", False)
    assert finding.message == "node 2 ended by itself (exit status -11)\n  its last line"
    assert finding.detail == {"node": 2, "time_ns": 15 * SECOND_NS, "exit_status": -11, "log_tail": "  its last line"}


def test_the_sentence_has_few_lines_of_the_log_and_its_detail_has_all() -> None:
    told = "\n".join(map(str, range(9)))
    node = EndedNode(node=2, time=1, exit_status=1, sentence="node 2 ended by itself", log_tail=told)
    (finding,) = end_of_run(EndOfRun(ended=(node,)))(EMPTY).findings
    assert finding.message == "node 2 ended by itself\n6\n7\n8"
    assert finding.detail["log_tail"] == told


@pytest.mark.parametrize("kind", ["disk-error", "disk-full", "no-descriptors"])
def test_a_node_may_stop_while_a_fault_of_its_disk_holds(kind: str) -> None:
    (finding,) = end_of_run(ended(2, 15))(faulty(kind, 1, 2)).findings
    assert finding.allowed
    assert finding.why_allowed == f"A node may stop when its disk fails: {kind} hit it."
    assert finding.operations == (5, 6)
    # It may have been started meanwhile, and cannot use its log directory.
    assert all(finding.allowed for finding in end_of_run(ended(2, 15, 2))(faulty(kind, 1, 2)).findings)
    # It may have begun to stop before the fault ended.
    assert all(finding.allowed for finding in end_of_run(ended(2, 71))(faulty(kind, 1, 2)).findings)


def test_a_node_may_fail_to_start_while_reads_of_its_disk_fail() -> None:
    (finding,) = end_of_run(ended(2, 15, 2))(faulty("failed-read", 1, 2)).findings
    assert finding.allowed


@pytest.mark.parametrize(
    ("history", "end"),
    [
        (faulty("disk-error", 1), ended(2, 15)),
        (faulty("disk-error", 2), ended(2, 9)),
        (faulty("disk-error", 2), ended(2, 91)),
        (faulty("disk-error", 2), ended(2, 15, -9)),
        (faulty("slow-disk", 2), ended(2, 15)),
        (faulty("failed-read", 2), ended(2, 15)),
        (faulty("pause", 2), ended(2, 15)),
        (faulty("bit-flip", 2), ended(2, 15)),
    ],
    ids=[
        "of-another-node", "before-it", "long-after-it", "by-a-signal", "slow-disk", "failed-read", "pause", "bit-flip",
    ],
)  # fmt: skip
def test_no_other_fault_allows_a_node_to_end(history: History, end: EndOfRun) -> None:
    (finding,) = end_of_run(end)(history).findings
    assert not finding.allowed


def test_a_fault_of_the_disk_that_never_ended_allows_it_too() -> None:
    history = History(Header("queue"), faulty("disk-full", 2).operations[:1])
    (finding,) = end_of_run(ended(2, 200))(history).findings
    assert finding.allowed


def test_the_end_of_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    end = EndOfRun(lacks=("no broker",), failures=("client 1 hung",), ended=ended(2, 15).ended)
    RunFolder(tmp_path).write_end(end)
    assert RunFolder(tmp_path).read_end() == end


def test_a_folder_without_the_end_of_its_run_lacks_nothing_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    assert RunFolder(tmp_path).read_end() == EndOfRun()
    RunFolder(tmp_path).end.write_text('{"lacks": 3}')
    with pytest.raises(ClusterError, match=r"end\.json does not tell the end of a run"):
        RunFolder(tmp_path).read_end()
