"""Runs say which target offset a source offset has, never too high a one, and are few."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.pipeline.mirroring.rules.offset_runs import STEP, Run, marks, runs, sections


def runs_of(offsets: list[int], targets: list[int], next_offset: int | None = None) -> list[Run]:
    found = sections(offsets, next_offset)
    return runs(offsets, found, {index: targets[index] for index in marks(found)})


def test_offsets_without_gaps_are_one_run() -> None:
    offsets = list(range(1_000))
    assert runs_of(offsets, [7 + one for one in offsets]) == [Run(first_offset=0, first_target_offset=7, count=1_000)]


def test_a_gap_ends_a_run_and_the_next_step_begins_one() -> None:
    offsets = [0, 1, 2, 4, 5, *range(100, 150)]
    assert runs_of(offsets, list(range(len(offsets)))) == [
        Run(first_offset=0, first_target_offset=0, count=3),
        Run(first_offset=100, first_target_offset=5, count=50),
    ]


def test_of_records_that_another_producer_wrote_between_only_the_first_is_certain() -> None:
    offsets = list(range(50))
    targets = [2 * one for one in offsets]
    assert runs_of(offsets, targets) == [Run(first_offset=0, first_target_offset=0, count=1)]


def test_small_transactions_begin_a_run_once_in_a_step() -> None:
    found = [run for offset in range(1_000) for run in runs_of([offset], [3 * offset], offset)]
    assert [run.first_offset for run in found] == list(range(0, 1_000, STEP))


@given(st.sets(st.integers(0, 2_000), min_size=1, max_size=400), st.data())
def test_every_run_is_true(numbers: set[int], data: st.DataObject) -> None:
    offsets = sorted(numbers)
    gaps = data.draw(st.lists(st.sampled_from([1, 1, 1, 3]), min_size=len(offsets), max_size=len(offsets)))
    targets = [sum(gaps[: index + 1]) for index in range(len(offsets))]
    target_of = dict(zip(offsets, targets, strict=True))
    found = runs_of(offsets, targets)
    assert found
    for run in found:
        for step in range(run.count):
            assert target_of[run.first_offset + step] == run.first_target_offset + step
    assert len(found) <= len({offset // STEP for offset in offsets})
