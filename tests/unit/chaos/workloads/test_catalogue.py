"""The workloads that are offered can be run as they are written down."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from penstock.chaos.checkers.catalogue import checkers_of
from penstock.chaos.workloads import catalogue
from penstock.chaos.workloads.catalogue import WORKLOADS
from penstock.chaos.workloads.workload import Workload


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_a_workload_is_whole(workload: Workload) -> None:
    assert workload.sentence
    assert workload.checkers
    for program in workload.programs:
        if program.client == "java":
            assert Path(catalogue.__file__).with_name(f"{program.module}.java").exists()
        else:
            assert find_spec(f"penstock.chaos.workloads.{program.module}"), f"no program {program.module}"


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_a_workload_is_judged_by_the_checkers_that_it_names(workload: Workload) -> None:
    assert set(workload.checkers) <= set(checkers_of(workload.header(seed=None, nodes=3)))


def test_a_header_says_what_the_judge_has_to_know() -> None:
    header = WORKLOADS["queue-transactions-subscribe"].header(seed=7, nodes=5)
    assert (header.workload, header.seed, header.nodes) == ("queue-transactions-subscribe", 7, 5)
    assert header.transactions
    assert header.subscribe
    assert header.isolation == "read_committed"
