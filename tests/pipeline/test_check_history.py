"""A history judged key by key on Spark has the verdict, the counts and the findings that one machine gives it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import msgspec
import pytest
from soak import soak_only
from told_history import QueueModel, Told

from penstock.bench.judging import queue_lines, register_lines
from penstock.chaos.checkers.catalogue import checkers_of
from penstock.chaos.checkers.finding import Verdict
from penstock.chaos.checkers.judge import judge
from penstock.chaos.histories.history_file import open_history, write_history
from penstock.chaos.histories.operation import Header
from penstock.pipeline.checking.history_judge import Bounds, TooLargeError, judge_history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

OPERATIONS = 100_000


def there(spark: SparkSession, path: Path, bounds: Bounds | None = None) -> Verdict:
    return judge_history(spark.read.text(str(path)), open_history(path), bounds or Bounds())


def assert_same(spark: SparkSession, path: Path) -> Verdict:
    history = open_history(path)
    here, found = judge(history, checkers_of(history.header)), there(spark, path)
    assert (found.valid, found.counts, found.notes) == (here.valid, here.counts, here.notes)
    assert comparable(found) == comparable(here)
    assert found.statistics["operations"] == here.statistics["operations"]
    assert found.statistics["liveness"] == here.statistics["liveness"]
    return found


def comparable(verdict: Verdict) -> list[bytes]:
    return sorted(msgspec.json.encode(finding, order="sorted") for finding in verdict.findings)


def broken(lines: Iterable[str]) -> Iterator[str]:
    """Value 500 of a partition is never polled, 700 is polled as 70000, and 900 twice."""
    for line in lines:
        if '"t-0":[' in line:
            line = line.replace("[500,500],", "").replace("[700,700]", "[700,70000]")
            line = line.replace("[900,900],", "[900,900],[901,900],")
        yield line


@soak_only
def test_a_large_history_of_queues_with_planted_anomalies(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    with path.open("w") as file:
        file.write(msgspec.json.encode(Header(workload="queue")).decode() + "\n")
        file.writelines(broken(queue_lines(OPERATIONS, Random(7))))
    found = assert_same(spark, path)
    assert found.valid == "anomalies"
    assert {"lost-write", "inconsistent-offsets", "duplicate", "unexpected"} <= found.counts.keys()
    assert sum(found.statistics["operations"]["send"].values()) > OPERATIONS / 3


def test_transactions_whose_outcome_other_keys_prove_and_cycles_over_keys(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    history = QueueModel(Random(3), bug="uncommitted").run(600)
    write_history(path, history.header, history.operations)
    found = assert_same(spark, path)
    assert {"G1c", "G0", "precommitted-read"} <= found.counts.keys()


def test_registers_with_a_lost_write(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    with path.open("w") as file:
        file.write(msgspec.json.encode(Header(workload="register")).decode() + "\n")
        for number, line in enumerate(register_lines(OPERATIONS // 5, Random(7))):
            is_read = number > 1000 and '"type":"ok"' in line and '"f":"read"' in line
            file.write(line.replace('"v":4', '"v":1', 1) if is_read and number % 97 == 0 else line)
    found = assert_same(spark, path)
    assert found.valid == "anomalies"


def test_what_needs_all_operations_at_once_is_refused_beyond_the_bound(spark: SparkSession, tmp_path: Path) -> None:
    told = Told(Header(workload="list-append", transactions=True))
    for value in range(20):
        told.do(1, "txn", [["append", "x", value]])
    path = tmp_path / "history.jsonl"
    write_history(path, told.header, told.operations)
    assert there(spark, path).valid == "valid"
    with pytest.raises(
        TooLargeError, match=r"the checker list-append needs all operations at once, .* 20, and at most 19"
    ):
        there(spark, path, Bounds(whole_max=19))


def test_cycles_beyond_the_bound_are_undecided_and_never_valid(spark: SparkSession, tmp_path: Path) -> None:
    told = Told()
    told.begin(1, "txn", [["send", "t-0", 10], ["poll"]])
    told.do(2, "txn", [["send", "t-1", [0, 20]], ["poll", {"t-0": [[0, 10]]}]])
    told.end(1, [["send", "t-0", [0, 10]], ["poll", {"t-1": [[0, 20]]}]])
    path = tmp_path / "history.jsonl"
    write_history(path, told.header, told.operations)
    assert assert_same(spark, path).counts == {"G1c": 1}
    undecided = there(spark, path, Bounds(cycles_max=1))
    assert (undecided.valid, undecided.counts) == ("invalid-run", {"undecided": 1})
