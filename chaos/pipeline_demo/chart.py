"""The plot of the demo: when flights leave late, and in which weather."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import matplotlib as mpl

from .expected import Frame

_ZONE: Final = "America/New_York"
_MIN_FLIGHTS: Final = 200
"""Of an hour or a visibility: a mean of fewer says little."""
_COLORS: Final = {"EWR": "#1f77b4", "JFK": "#d95f02", "LGA": "#2a9d5c"}


def draw(departures: Frame, weather: Frame, path: Path) -> None:
    """`departures` is by origin and hour, `weather` has a row for each flight."""
    # No window system is asked for.
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (by_hour, by_visibility) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    rows = departures.reset_index()
    rows["hour"] = rows["time"].dt.tz_convert(_ZONE).dt.hour
    rows["total"] = rows["mean_delay"] * rows["departures"]
    for origin, group in rows.groupby("origin"):
        sums = group.groupby("hour")[["total", "departures"]].sum()
        sums = sums[sums["departures"] >= _MIN_FLIGHTS]
        means = sums["total"] / sums["departures"]
        by_hour.plot(means.index, means, marker="o", markersize=3, color=_COLORS[origin], label=origin)
    by_hour.set(
        title="windows: departures later in the day leave later",
        xlabel="scheduled hour of departure, New York",
        ylabel="mean departure delay (minutes)",
    )
    for origin, group in weather.groupby("origin"):
        classes = group.groupby(group["visib"].round())["dep_delay"].agg(["mean", "size"])
        classes = classes[classes["size"] >= _MIN_FLIGHTS]
        by_visibility.plot(
            classes.index, classes["mean"], marker="o", markersize=3, color=_COLORS[origin], label=origin
        )
    by_visibility.set(
        title="join: each flight with the weather of its hour",
        xlabel="visibility at the airport (miles)",
        ylabel="mean departure delay (minutes)",
    )
    for axes in (by_hour, by_visibility):
        axes.grid(visible=True, alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    by_hour.set_xticks(range(6, 24, 3))
    by_visibility.set_ylim(bottom=0)
    by_hour.legend(frameon=False)
    figure.suptitle("Flights out of New York in 2013, streamed through Penstock and Spark")
    figure.savefig(path, dpi=150)
    plt.close(figure)
