"""Compares what came out with what pandas makes of the same files: findings as sentences."""

from __future__ import annotations

import pandas as pd

from .expected import Frame

_MEAN_TOLERANCE = 1e-9
"""Of a mean, relative: sums of floating-point numbers depend on their order in the last digits."""
_FLIGHT = ["origin", "carrier", "flight", "dest", "at_ms"]
_WEATHER = ["dep_delay", "temp", "precip", "visib"]


def compare_departures(found: Frame, expected: Frame) -> list[str]:
    """Counts are equal, and means as good as."""
    both = expected.join(found, how="outer", lsuffix="_expected", rsuffix="_found")
    missing = both["departures_found"].isna()
    more = both["departures_expected"].isna()
    both = both[~missing & ~more]
    counted = both["departures_expected"] != both["departures_found"]
    difference = (both["mean_delay_expected"] - both["mean_delay_found"]).abs()
    off = difference > _MEAN_TOLERANCE * both["mean_delay_expected"].abs().clip(lower=1)
    unlike = both["mean_delay_expected"].isna() != both["mean_delay_found"].isna()
    return _findings(
        f"windows: of {len(expected)} hours of airports",
        {
            "are missing": missing.sum(),
            "are too many": more.sum(),
            "have other counts": counted.sum(),
            "have other means": (off | unlike).sum(),
        },
    )


def compare_weather(found: Frame, expected: Frame) -> list[str]:
    """Each flight is there once, with the weather of its hour. Flights of one minute are told apart by all that they
    have."""
    columns = [*_FLIGHT, *_WEATHER]
    found_counts = found.groupby(columns, dropna=False).size().rename("found")
    expected_counts = expected.groupby(columns, dropna=False).size().rename("expected")
    both = pd.merge(found_counts.reset_index(), expected_counts.reset_index(), on=columns, how="outer").fillna(
        {"found": 0, "expected": 0}
    )
    difference = both["found"] - both["expected"]
    return _findings(
        f"join: of {len(expected)} flights with weather",
        {"are missing": -difference[difference < 0].sum(), "are too many": difference[difference > 0].sum()},
    )


def compare_lake(found: Frame, expected: Frame) -> list[str]:
    """Each record is there once, and what is in it adds up to the same by airport."""
    values = pd.DataFrame(found["value"].tolist())
    twice = found.duplicated(["partition", "offset"]).sum()
    by_airport = values.groupby("origin")["dep_delay"].agg(["size", "sum"])
    expected_by_airport = expected.groupby("origin")["dep_delay"].agg(["size", "sum"])
    others = 0 if by_airport.equals(expected_by_airport) else 1
    return _findings(
        f"lake: of {len(expected)} records",
        {"are missing": max(0, len(expected) - len(found)), "are there twice": twice},
    ) + (["lake: the delays of an airport do not add up to what the file has"] if others else [])


def _findings(of_what: str, counts: dict[str, float]) -> list[str]:
    return [f"{of_what} {round(count)} {what}" for what, count in counts.items() if count]
