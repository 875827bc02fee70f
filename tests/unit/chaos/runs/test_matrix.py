"""The matrix of runs, and its table."""

from pathlib import Path

import msgspec
import pytest

from penstock.chaos.checkers.finding import Finding, Verdict
from penstock.chaos.faults.kinds import KINDS
from penstock.chaos.histories.run_folder import RunFolder
from penstock.chaos.nemeses.schedule import Schedule, draw
from penstock.chaos.runs.matrix import MIXES, SECONDS, SIZES, cells
from penstock.chaos.runs.matrix_row import row_of, table
from penstock.chaos.workloads.catalogue import WORKLOADS


def test_every_workload_meets_every_mix_once() -> None:
    met = [(cell.workload, cell.mix) for cell in cells()]
    assert sorted(met) == sorted((workload, mix) for workload in WORKLOADS for mix in MIXES)


def test_every_workload_and_every_mix_has_both_sizes() -> None:
    for size in SIZES:
        some = [cell for cell in cells() if cell.nodes == size]
        assert {cell.workload for cell in some} == set(WORKLOADS)
        assert {cell.mix for cell in some} == set(MIXES)


def test_a_cluster_with_fewer_kinds_of_faults_has_what_is_left_of_the_mixes() -> None:
    some = cells(KINDS.keys() - {"kill", "pause"})
    assert {cell.mix: cell.faults for cell in some if cell.workload == "queue"} == {
        "nothing": (),
        "processes": ("kill", "pause"),
        "leaders": ("kill:leaders", "pause:leaders"),
        "controllers": ("kill:controllers", "pause:controllers"),
        "pause-and-kill": ("pause", "kill"),
        "membership": ("kill",),
        "clocks": ("kill:one",),
    }


def test_faults_of_logs_are_left_out_where_nothing_is_written_to_them() -> None:
    faults = {cell.mix: cell.faults for cell in cells() if cell.workload == "metadata"}
    assert faults["disks"] == ("disk-full",)
    assert faults["damage"] == ("power-loss", "partition:one")
    assert faults["leaders"] == MIXES["leaders"]


@pytest.mark.parametrize("mix", [mix for mix, names in MIXES.items() if names])
def test_a_run_has_time_for_every_fault_of_its_mix(mix: str) -> None:
    schedule = draw(1, MIXES[mix], length_s=SECONDS)
    assert set(schedule.kinds) == {name.partition(":")[0] for name in MIXES[mix]}


def test_a_row_tells_what_was_found_and_what_is_allowed(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "queue-links-3")
    folder.create()
    folder.write_record(cells()[0].record(seed=4, seconds=9, cluster="penstock", links="proxies"))
    folder.schedule.write_bytes(Schedule(length_s=9.0).encode())
    verdict = Verdict(
        valid="anomalies",
        findings=(
            Finding(type="lost-write", message="7 is gone"),
            Finding(type="G0", message="a cycle", allowed=True, why_allowed="Kafka does not isolate writes"),
        ),
        counts={"lost-write": 2, "G0": 5},
        statistics={"operations": {"send": {"ok": 1200, "info": 3}, "poll": {"ok": 34}}},
        notes=("the fault kill never occurred",),
    )
    folder.verdict.write_bytes(msgspec.json.encode(verdict))
    row = row_of(folder)
    assert (row.operations, row.seed, row.verdict) == (1234, 4, "anomalies")
    assert row.found == "2 × lost-write; the fault kill never occurred"
    assert row.allowed == "5 × G0"
    assert table([row]).splitlines()[-1] == (
        "| queue-links-3 | 4 | 3 | 9 | 0 | 1,234 | anomalies | 2 × lost-write; the fault kill never occurred | 5 × G0 |"
    )
