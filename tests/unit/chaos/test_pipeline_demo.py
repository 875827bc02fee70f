"""The comparison of the demo finds what it is there to find, and the options of its jobs are options of the jobs."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from penstock.chaos.pipeline_demo import comparison, jobs

HOURS = pd.to_datetime(["2013-01-01T10:00Z", "2013-01-01T11:00Z", "2013-01-01T12:00Z"])


def departures(counts: list[int], means: list[float | None]) -> Any:
    index = pd.MultiIndex.from_arrays([["EWR"] * len(counts), HOURS[: len(counts)]], names=["origin", "time"])
    return pd.DataFrame({"departures": counts, "mean_delay": means}, index=index).astype({"mean_delay": float})


def flights(*rows: tuple[int, float | None]) -> Any:
    """Flight number and temperature."""
    same = {"origin": "EWR", "carrier": "UA", "dest": "IAH", "at_ms": 1, "dep_delay": 2.0, "precip": 0.0, "visib": 10.0}
    return pd.DataFrame([{**same, "flight": number, "temp": temperature} for number, temperature in rows])


def test_equal_departures_have_no_findings() -> None:
    expected = departures([3, 0, 2], [1.5, None, 0.1 + 0.2])
    assert comparison.compare_departures(departures([3, 0, 2], [1.5, None, 0.3]), expected) == []


@pytest.mark.parametrize(
    ("found", "what"),
    [
        (departures([3, 0], [1.5, None]), "1 are missing"),
        (departures([3, 0, 1], [1.5, None, 0.3]), "1 have other counts"),
        (departures([3, 0, 2], [1.5, None, 0.31]), "1 have other means"),
        (departures([3, 0, 2], [1.5, 0.0, 0.3]), "1 have other means"),
    ],
)
def test_other_departures_are_found(found: Any, what: str) -> None:
    assert what in " ".join(comparison.compare_departures(found, departures([3, 0, 2], [1.5, None, 0.3])))


def test_departures_that_should_not_be_there_are_found() -> None:
    found, expected = departures([3, 0, 2], [1.5, None, 0.3]), departures([3, 0], [1.5, None])
    assert comparison.compare_departures(found, expected) == ["windows: of 2 hours of airports 1 are too many"]


def test_flights_are_each_there_once_with_their_weather() -> None:
    expected = flights((1, 39.0), (1, 39.0), (2, None))
    assert comparison.compare_weather(expected.sample(frac=1, random_state=1), expected) == []
    lost = comparison.compare_weather(flights((1, 39.0), (2, None)), expected)
    assert lost == ["join: of 3 flights with weather 1 are missing"]
    twice = comparison.compare_weather(flights((1, 39.0), (1, 39.0), (2, None), (2, None)), expected)
    assert twice == ["join: of 3 flights with weather 1 are too many"]
    other = comparison.compare_weather(flights((1, 39.0), (1, 40.0), (2, None)), expected)
    assert len(other) == 2


def test_records_of_the_lake_are_each_there_once() -> None:
    expected = flights((1, 1.0), (2, 1.0))
    values = expected[["origin", "dep_delay"]].to_dict("records")
    found = pd.DataFrame({"partition": [0, 0], "offset": [0, 1], "value": values})
    assert comparison.compare_lake(found, expected) == []
    twice = comparison.compare_lake(pd.concat([found, found[:1]]), expected)
    assert twice[0] == "lake: of 2 records 1 are there twice"
    assert len(comparison.compare_lake(found[:1], expected)) == 2


def test_options_are_those_of_the_jobs() -> None:
    from penstock.pipeline.config_reading import read_config
    from penstock.pipeline.jobs.catalogue import find_job

    options = {"windows": jobs.WINDOWS, "join": jobs.JOIN, "lake": jobs.LAKE.format(location="somewhere")}
    for name, text in options.items():
        config = read_config(
            find_job(name).config_type, text=text, assignments={"bootstrap": "a:1", "checkpoint": "work"}
        )
        assert config.topics == ("flights",)
