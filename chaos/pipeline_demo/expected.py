"""What should come out, by pandas from the same files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

Frame = Any
"""pandas brings no types."""


def flights(tables: Path) -> Frame:
    """`time` is the hour of the scheduled departure, `at_ms` the minute."""
    frame = pd.read_csv(tables / "flights.csv.zip")
    frame["time"] = pd.to_datetime(frame["time_hour"], utc=True)
    frame["at_ms"] = frame["time"].astype("int64") // 1_000_000 + frame["minute"] * 60_000
    return frame


def departures_by_hour(flights: Frame) -> Frame:
    """By origin and hour: `departures`, `mean_delay`."""
    grouped = flights.groupby(["origin", "time"])
    return grouped.agg(departures=("dep_time", "count"), mean_delay=("dep_delay", "mean"))


def flights_with_weather(flights: Frame, tables: Path) -> Frame:
    weather = pd.read_csv(tables / "weather.csv")[["origin", "time_hour", "temp", "precip", "visib"]]
    return flights.merge(weather, on=["origin", "time_hour"])
