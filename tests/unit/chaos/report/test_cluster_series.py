"""What the cluster was, over time, from its samples."""

from __future__ import annotations

from penstock.chaos.histories.cluster_sample import ClusterSample, PartitionSample
from penstock.chaos.report.cluster_series import (
    Run,
    controller_runs,
    epochs,
    isr_runs,
    leader_changes,
    leader_runs,
    leaderless_ns,
    node_runs,
    partition_keys,
    replica_count,
    unreplicated,
)

SAMPLES = [
    ClusterSample(
        0,
        1,
        {"1": "up", "2": "up"},
        {"t-0": PartitionSample(1, 4, [1, 2], 7, {"1": 9, "2": 7}), "t-10": PartitionSample(2, 0, [2])},
    ),
    ClusterSample(10, None, {"1": "down", "2": "up"}, {"t-0": PartitionSample(None, 4, [1])}),
    ClusterSample(20, 2, {"1": "down", "2": "paused"}, {}),
    ClusterSample(
        30,
        2,
        {"1": "up", "2": "up"},
        {"t-0": PartitionSample(2, 5, [2], 8, {"2": 8}), "t-2": PartitionSample(1, 0, [1])},
    ),
]
END = 40


def test_values_that_stay_are_one_run_and_the_last_lasts_to_the_end() -> None:
    assert node_runs(SAMPLES, END) == {
        "1": [Run(0, 10, "up"), Run(10, 30, "down"), Run(30, 40, "up")],
        "2": [Run(0, 20, "up"), Run(20, 30, "paused"), Run(30, 40, "up")],
    }
    assert [run.value for run in controller_runs(SAMPLES, END)] == ["1", "?", "2"]


def test_no_leader_is_told_apart_from_no_answer() -> None:
    assert [run.value for run in leader_runs(SAMPLES, END, "t-0")] == ["1", "none", "?", "2"]
    assert leaderless_ns(SAMPLES, END) == 10


def test_partitions_are_in_the_order_of_their_numbers() -> None:
    assert partition_keys(SAMPLES) == ["t-0", "t-2", "t-10"]


def test_an_isr_has_its_size_and_members() -> None:
    assert [run.value for run in isr_runs(SAMPLES, END, "t-0")] == ["2: 1, 2", "1: 1", "?", "1: 2"]
    assert replica_count(SAMPLES, "t-0") == 2


def test_series_have_a_point_for_each_change_and_gaps_where_nothing_is_known() -> None:
    assert epochs(SAMPLES, "t-0").times_ns == [0, 20, 30]
    assert epochs(SAMPLES, "t-0").values == [4, None, 5]
    assert leader_changes(SAMPLES) == 1
    assert unreplicated(SAMPLES, "t-0").values == [2, None, 0]
