"""Results: kept, judged, told and drawn."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from penstock.bench.cells import cells, chosen
from penstock.bench.measures import GOALS, MEASURES, goals_of
from penstock.bench.payloads import POOL_SIZE, values
from penstock.bench.plot import draw
from penstock.bench.quantiles import latencies
from penstock.bench.report import markdown, rows, summary
from penstock.bench.results import Observation, Results
from penstock.protocol.compression import Compression, compress


def observation(
    target: str, number: int, cell: str = "tiny/5", error: str | None = None, **values: float
) -> Observation:
    return Observation(cell=cell, target=target, round=number, values=values, error=error)


def results(*observations: Observation, targets: tuple[str, ...] = ("ours", "theirs")) -> Results:
    return Results(
        started="2026-01-01T00:00:00+00:00",
        seconds=60.0,
        is_quick=False,
        rounds=3,
        machine={"processor": "one"},
        targets={name: {"version": "1"} for name in targets},
        cells={cell.name: cell.title for cell in cells(is_quick=False)},
        observations=observations,
    )


TARGETS = "ours", "theirs"
THREE_ROUNDS = [
    observation(target, number, requests_per_s=value, broker_cpu_us_per_request=cpu)
    for target, series in {
        "ours": ((900.0, 9.0), (300.0, 10.0), (600.0, 30.0)),
        "theirs": ((100.0, 20.0), (200.0, 15.0), (250.0, 10.0)),
    }.items()
    for number, (value, cpu) in enumerate(series)
]


def test_ratio_is_that_of_the_medians() -> None:
    assert results(*THREE_ROUNDS).ratio("tiny/5", "requests_per_s") == 3.0


def test_results_are_read_as_they_were_written() -> None:
    found = results(*THREE_ROUNDS, observation("ours", 1, "single", error="gone"))
    again = Results.from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert again.errors == found.errors


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 99}'])
def test_something_else_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="not results of this program"):
        Results.from_json(text)


def test_goal_stands_beside_the_ratio_and_says_whether_it_holds() -> None:
    judged = {row.measure: (row.ratio, row.goal, row.holds) for row in rows(results(*THREE_ROUNDS))}
    assert judged["requests, 1/s"] == ("3.00×", "≥ 2×", "yes")
    assert judged["broker CPU a request, µs"] == ("0.67×", "≤ 0.5×", "no")


def test_last_line_says_in_how_many_rows_it_is_ahead_and_where_furthest_behind() -> None:
    level = [observation(target, 0, "tiny/1", requests_per_s=1000 + number) for number, target in enumerate(TARGETS)]
    assert summary(results(*THREE_ROUNDS, *level)) == "ours is ahead of theirs in 2 of 3 rows, behind in 0."
    slower = [
        observation(target, 0, "tiny/50", requests_per_s=rate) for target, rate in zip(TARGETS, (50, 100), strict=True)
    ]
    dearer = [
        observation(target, 0, "single", acknowledged_p99_ms=ms) for target, ms in zip(TARGETS, (9, 3), strict=True)
    ]
    told = summary(results(*THREE_ROUNDS, *slower, *dearer))
    assert told == (
        "ours is ahead of theirs in 2 of 4 rows, behind in 2, furthest in single, acknowledged, p99 (3.00×)."
    )
    alone = [item for item in THREE_ROUNDS if item.target == "ours"]
    assert summary(results(*alone, targets=("ours",))) is None


def test_failure_is_told() -> None:
    assert "the broker closed the connection" in markdown(
        results(*THREE_ROUNDS, observation("ours", 2, "single", error="the broker closed the connection"))
    )


def test_one_cluster_alone_has_no_ratio_and_no_goal() -> None:
    alone = [item for item in THREE_ROUNDS if item.target == "ours"]
    assert {(row.ratio, row.goal) for row in rows(results(*alone, targets=("ours",)))} == {("", "")}


def test_picture_holds_every_ratio_of_a_cell() -> None:
    texts = [element.text for element in ElementTree.fromstring(draw(results(*THREE_ROUNDS))).iter() if element.text]
    # A third less CPU is better by half: dot and figure point to the same side.
    assert {"3.00×", "1.50×"} <= set(texts)


def test_every_goal_is_for_a_cell_and_a_measure_that_are_there() -> None:
    names = [cell.name for cell in cells(is_quick=True)]
    reached = {goal for name in names for measure in MEASURES for goal in goals_of(name, measure.name)}
    assert reached == set(GOALS)


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (("tiny",), ["tiny/1", "tiny/5", "tiny/50"]),
        (("tiny/5",), ["tiny/5"]),
        (
            ("*/1000",),
            [
                *(f"stream/{size}/default/1000" for size in ("1KiB", "100B")),
                "topic/1000",
                "partitions/1000",
                "pipeline/lake/1000",
            ],
        ),
        (("partitions",), ["partitions/1000"]),
        (("partitions/10000",), ["partitions/10000"]),
        (("crowd/*0",), ["crowd/0", "crowd/50"]),
        (("crowd/http/events", "http/listing"), ["crowd/http/events", "http/listing"]),
        (("nothing",), []),
    ],
)
def test_cells_are_chosen_by_name_branch_or_pattern(patterns: tuple[str, ...], expected: list[str]) -> None:
    assert [cell.name for cell in chosen(cells(is_quick=True), patterns)] == expected


def test_cells_that_nothing_compares_with_are_measured_when_they_are_asked_for() -> None:
    everything = cells(is_quick=True)
    assert not any("http" in cell.name for cell in chosen(everything, ()))
    assert {cell.name for cell in chosen(everything, ("crowd",))} == {
        cell.name for cell in everything if cell.name.startswith("crowd/")
    }


@pytest.mark.parametrize("size", [100, 1024])
def test_values_have_their_size_and_are_neither_noise_nor_constant(size: int) -> None:
    pool = values(size)
    assert {len(value) for value in pool} == {size}
    assert len(set(pool)) == POOL_SIZE
    whole = b"".join(pool[:100])
    assert 0.3 < len(compress(Compression.LZ4, whole)) / len(whole) < 0.75


def test_quantiles_are_times_that_were_measured() -> None:
    found = latencies("it", [1_000_000 * number for number in range(1000, 0, -1)])
    assert found == {"it_p50_ms": 501, "it_p95_ms": 951, "it_p99_ms": 991, "it_p999_ms": 1000}


def test_what_a_goal_is_set_for_is_drawn() -> None:
    measured = [
        observation(target, 0, cell="groups/classic", groups_failover_s=value)
        for target, value in (("ours", 1.0), ("theirs", 4.0))
    ]
    texts = [element.text for element in ElementTree.fromstring(draw(results(*measured))).iter()]
    assert "4.00×" in texts
    assert any(text and text.startswith("classic protocol") for text in texts)
