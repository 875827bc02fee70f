"""Schedules: drawn ones are within what is promised and end healed, scripted ones are read with clear errors."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import msgspec
import pytest

from penstock.chaos.faults.kinds import KINDS, LINK_SELECTORS, NODE_SELECTORS
from penstock.chaos.nemeses.fault import (
    FAULTS,
    AnyFault,
    DamageFault,
    Kill,
    OrderedFault,
    Partition,
    PowerLoss,
    SlowDisk,
)
from penstock.chaos.nemeses.limits import Promise, allowances
from penstock.chaos.nemeses.schedule import (
    FIRST_QUIET_S,
    LAST_QUIET_S,
    SETTLED_S,
    Schedule,
    Step,
    decode,
    draw,
    read_schedule,
)
from penstock.local.errors import ClusterError

SEEDS = range(200)
REAL = tuple(kind.name for kind in KINDS.values() if kind.is_real)


def names_of(seed: int) -> list[str]:
    random = Random(seed)
    return random.sample(REAL, random.randint(1, 6))


@pytest.mark.parametrize("node_count", [3, 5])
def test_a_drawn_schedule_begins_and_ends_quietly_and_has_every_fault_that_it_was_asked_for(node_count: int) -> None:
    for seed in SEEDS:
        names = names_of(seed)
        schedule = draw(seed, names, length_s=100)
        assert set(schedule.kinds) == set(names), f"replay: draw({seed}, {names}, length_s=100)"
        assert min(step.at_s for step in schedule.steps) >= FIRST_QUIET_S
        assert max(step.end_s for step in schedule.steps) <= 100 - LAST_QUIET_S + 0.01
        assert all(step.duration_s > 1 for step in schedule.steps)
        # More than a cluster of `node_count` may lose was not drawn.
        assert allowances(schedule, Promise(), node_count=node_count) == {}, f"replay: draw({seed}, {names})"


def test_the_same_arguments_draw_the_same_schedule_and_other_seeds_others() -> None:
    drawn = [draw(seed, ["kill", "partition"], length_s=60) for seed in SEEDS]
    assert drawn == [draw(seed, ["kill", "partition"], length_s=60) for seed in SEEDS]
    assert len({schedule.encode() for schedule in drawn}) == len(drawn)


def test_nothing_is_drawn_beside_what_damages_data_or_before_it_is_whole_again() -> None:
    overlaps = 0
    for seed in SEEDS:
        steps = draw(seed, ["kill", "power-loss", "partition", "truncation", "clock-bump"], length_s=120).steps
        for one, other in ((one, other) for one in steps for other in steps if one is not other):
            overlaps += one.at_s <= other.at_s < one.end_s
            if isinstance(one.fault, DamageFault) and other.at_s >= one.at_s:
                assert other.at_s >= one.end_s + SETTLED_S - 0.01, f"replay: seed {seed}"
    # Other faults do come together.
    assert overlaps > 20


def test_a_name_with_a_selector_hits_that_and_others_are_drawn() -> None:
    selectors = set()
    for seed in SEEDS:
        faults = [step.fault for step in draw(seed, ["kill:all", "partition"], length_s=60).steps]
        assert {fault.selector for fault in faults if isinstance(fault, Kill)} == {"all"}
        selectors |= {fault.selector for fault in faults if isinstance(fault, Partition)}
    assert selectors == set(KINDS["partition"].selectors)


def test_too_short_a_time_is_refused_with_the_time_that_is_needed() -> None:
    with pytest.raises(ClusterError, match=r"2 kinds of faults with quiet times take at least 20.1 s, .* has 12 s"):
        draw(1, ["kill", "power-loss"], length_s=12)


def test_every_kind_of_a_real_cluster_is_a_fault_and_the_reverse() -> None:
    assert set(FAULTS) == set(REAL)


@pytest.mark.parametrize("kind", REAL)
def test_every_fault_is_read_back_from_its_json(kind: str) -> None:
    fault = msgspec.convert({"kind": kind}, type=AnyFault)
    schedule = Schedule(length_s=10, steps=(Step(1, 2, fault),), seed=3)
    assert decode(schedule.encode(), where="x") == schedule
    assert fault.data()["kind"] == fault.kind == kind
    if isinstance(fault, OrderedFault):
        assert fault.orders()


def test_a_schedule_in_toml_is_that_of_the_documentation(tmp_path: Path) -> None:
    path = tmp_path / "schedule.toml"
    path.write_text(
        """
        length_s = 60
        [[steps]]
        at_s = 20
        duration_s = 8
        fault = { kind = "slow-disk", selector = "1,3", delay_ms = 40 }
        [[steps]]
        at_s = 10
        duration_s = 8
        fault = { kind = "partition", selector = "1>2,client-0>1", mode = "reset" }
        """
    )
    partition = Step(10, 8, Partition(selector="1>2,client-0>1", mode="reset"))
    slow = Step(20, 8, SlowDisk(selector="1,3", delay_ms=40))
    assert read_schedule(path) == Schedule(length_s=60, steps=(partition, slow))


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        ('{"at_s": 1, "duration_s": 2, "fault": {"kind": "earthquake"}}',
         r"Invalid value 'earthquake' - at `\$.steps\[0\].fault.kind`; kinds are partition, slow-link"),
        ('{"at_s": 1, "duration_s": 2, "fault": {"kind": "kill", "selector": "leader"}}',
         r"'leader' is no selector of kill: one of one, minority, .*, or node ids as 1,3 - at `\$.steps\[0\].fault`"),
        ('{"at_s": 1, "duration_s": 2, "fault": {"kind": "partition", "selector": "1,3"}}',
         r"'1,3' is no selector of partition: .*, or links as 1>2,client-0>1"),
        ('{"at_s": 1, "duration_s": 2, "fault": {"kind": "kill", "mode": "reset"}}',
         r"unknown field `mode` - at `\$.steps\[0\].fault`"),
        ('{"at_s": 1, "duration_s": 2, "fault": {"kind": "connection-resets", "interval_ms": 0}}',
         r"Expected `int` >= 1 - at `\$.steps\[0\].fault.interval_ms`"),
        ('{"at_s": 1, "duration_s": 2, "fault": {"kind": "bandwidth", "kilobytes_s": 0}}',
         r"Expected `int` >= 1 - at `\$.steps\[0\].fault.kilobytes_s`"),
        ('{"at_s": 1, "duration_s": 2, "fault": {"kind": "slow-disk", "probability": 2}}',
         r"Expected `float` <= 1.0 - at `\$.steps\[0\].fault.probability`"),
        ('{"at_s": 1, "duration_s": 20, "fault": {"kind": "kill"}}',
         r"x.json, steps\[0\]: kill lasts from 1 s to 21 s; expected a time between 0 and length_s, which is 10 s"),
        ("[]", "x.json is no schedule: "),
    ],
)  # fmt: skip
def test_what_is_no_schedule_is_refused_with_its_place(step: str, sentence: str) -> None:
    with pytest.raises(ClusterError, match=sentence):
        decode(f'{{"length_s": 10, "steps": [{step}]}}'.encode(), where="x.json")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("length_s = inf", "x.toml: length_s is inf; expected how many seconds"),
        ("length_s = 0", "x.toml: length_s is 0; expected how many seconds"),
        ("length_s = 9\nsteps = [{at_s = nan, duration_s = 1, fault = {kind = 'kill'}}]", "kill lasts from nan s"),
        ("length_s = 9\nsteps = [{at_s = 2, duration_s = -1, fault = {kind = 'kill'}}]", "kill lasts from 2 s to 1 s"),
    ],
)
def test_times_that_are_none_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(ClusterError, match=sentence):
        decode(text.encode(), where="x.toml", is_toml=True)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="cannot be read: No such file"):
        read_schedule(tmp_path / "schedule.json")


def test_power_of_more_than_one_is_drawn_only_when_it_is_asked_for() -> None:
    for seed in SEEDS:
        for step in draw(seed, ["power-loss"], length_s=60).steps:
            assert isinstance(step.fault, PowerLoss)
            assert step.fault.selector in ("one", "leaders", "controllers")
    assert {step.fault.data()["selector"] for step in draw(1, ["power-loss:all"], length_s=60).steps} == {"all"}


def test_the_page_of_faults_has_every_kind_with_its_parameters() -> None:
    page = (Path(__file__).parents[4] / "docs" / "faults.md").read_text()
    for kind in (KINDS[name] for name in REAL):
        parameters = FAULTS[kind.name]().data()
        told = [f"`{name}` {json.dumps(value, separators=(',', ':'))}" for name, value in parameters.items()
                if name not in ("kind", "selector")]  # fmt: skip
        assert f"| `{kind.name}` | {kind.about} | {', '.join(told)} |" in page
    for selector, about in (*LINK_SELECTORS.items(), *NODE_SELECTORS.items()):
        assert f"| `{selector}` | {about} |" in page
