"""Charts over the time of a run, as SVG that is as wide as its column.

One unit across is 10 ms, so every chart has the same coordinates and a script zooms all by their view boxes; a chart is
100 units high, whatever its height on the screen. Strokes do not scale, text is HTML beside and above the drawing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from .client_series import Dots, Series
from .cluster_series import Run
from .fault_band import FaultBand
from .markup import text

UNIT_NS: Final = 10_000_000
HIGH: Final = 100


def x(ns: int) -> int:
    return ns // UNIT_NS


class Scale(Struct, frozen=True):
    """From values to heights; a logarithmic one begins at `low`, a linear one at zero or `low`."""

    low: float
    high: float
    is_logarithmic: bool = False

    def y(self, value: float) -> float:
        if self.is_logarithmic:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(HIGH * (1 - min(1.0, max(0.0, share))), 1)

    def ticks(self) -> list[float]:
        if self.is_logarithmic:
            first = math.ceil(math.log10(self.low) - 1e-9)
            return [10.0**power for power in range(first, int(math.log10(self.high) + 1e-9) + 1)]
        step = _round_step((self.high - self.low) / 3)
        first = math.ceil(self.low / step - 1e-9)
        return [step * number for number in range(first, int(self.high / step + 1e-9) + 1)]


def linear_scale(series: Sequence[Series], *, from_zero: bool = True) -> Scale:
    values = [value for one in series for value in one.values if value is not None]
    high = max(values, default=1.0)
    low = 0.0 if from_zero else min(values, default=0.0)
    return Scale(low, low + max(1.0, (high - low) * 1.08))


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(max(least, 1e-9)))
    return max(1.0, next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least))


class Line(Struct, frozen=True):
    """`style` is a class of the style sheet; `form` is `step`, `line` or `area`."""

    series: Series
    style: str
    form: str = "step"
    unit: str = ""


class Chart(Struct, frozen=True):
    id: str
    title: str
    note: str
    scale: Scale
    lines: Sequence[Line]
    dots: Sequence[tuple[Dots, str]] = ()
    unit: str = ""
    legend: Sequence[tuple[str, str]] = ()
    # What a reader who sees no picture has to know.
    summary: str = ""


class Bar(Struct, frozen=True):
    begin_ns: int
    end_ns: int
    style: str
    title: str
    # What the column of values says while the pointer is there.
    value: str = ""
    href: str = ""


class Lane(Struct, frozen=True):
    name: str
    bars: Sequence[Bar]
    is_quiet: bool = False


class Lanes(Struct, frozen=True):
    id: str
    title: str
    note: str
    lanes: Sequence[Lane]
    legend: Sequence[tuple[str, str]] = ()
    summary: str = ""


def bars_of(runs: Sequence[Run], style: dict[str, str] | str, title: str) -> list[Bar]:
    """A bar for each run whose value is known; `style` by value, or a prefix of it."""
    bars = []
    for run in runs:
        if run.value == "?":
            continue
        css = style + run.value if isinstance(style, str) else style.get(run.value, "")
        bars.append(Bar(run.begin_ns, run.end_ns, css, f"{title} {run.value}", run.value))
    return bars


def chart_svg(chart: Chart, end_ns: int, backdrop: str) -> str:
    """The drawing alone: `backdrop` (bands of faults), grid, areas, lines, dots."""
    parts = [backdrop]
    for tick in chart.scale.ticks():
        y = chart.scale.y(tick)
        parts.append(f'<path class="grid" d="M0 {y}H{x(end_ns)}"/>')
    for dots, style in chart.dots:
        d = "".join(f"M{x(at)} {chart.scale.y(value)}h0" for at, value in dots.points)
        parts.append(f'<path class="dots {style}" d="{d}"/>')
    for line in chart.lines:
        if line.form == "area":
            parts.append(f'<path class="area {line.style}" d="{_path(line, chart.scale, end_ns, closed=True)}"/>')
        parts.append(f'<path class="line {line.style}" d="{_path(line, chart.scale, end_ns, closed=False)}"/>')
    return _svg(chart.id, chart.title, chart.summary, end_ns, HIGH, "".join(parts), "chart")


def lanes_svg(lanes: Lanes, end_ns: int, backdrop: str) -> str:
    """One lane is 10 units high; the backdrop is as high as all."""
    parts = [backdrop]
    for number, lane in enumerate(lanes.lanes):
        top, high = (10 * number + 3, 4) if lane.is_quiet else (10 * number + 1, 8)
        for bar in lane.bars:
            width = max(1, x(bar.end_ns) - x(bar.begin_ns))
            shape = (
                f'<rect class="bar {bar.style}" x="{x(bar.begin_ns)}" y="{top}" width="{width}" height="{high}">'
                f"<title>{text(bar.title)}</title></rect>"
            )
            parts.append(f'<a href="{bar.href}">{shape}</a>' if bar.href else shape)
    high = 10 * max(1, len(lanes.lanes))
    return _svg(lanes.id, lanes.title, lanes.summary, end_ns, high, "".join(parts), "lanes")


def _svg(id_: str, title: str, summary: str, end_ns: int, high: int, body: str, style: str) -> str:
    return (
        f'<svg class="{style}" role="img" aria-labelledby="{id_}-title {id_}-desc" preserveAspectRatio="none" '
        f'viewBox="0 0 {max(1, x(end_ns))} {high}"><title id="{id_}-title">{text(title)}</title>'
        f'<desc id="{id_}-desc">{text(summary, limit=1000)}</desc>{body}</svg>'
    )


def backdrop(bands: Sequence[FaultBand], marks_ns: Sequence[int], high: int, styles: dict[str, str]) -> str:
    """Bands of faults and lines where anomalies are; drawn beneath every chart."""
    parts = []
    for band in bands:
        width = max(1, x(band.end_ns) - x(band.begin_ns))
        parts.append(
            f'<rect class="band {styles[band.kind]}" data-fault="{band.number}" x="{x(band.begin_ns)}" y="0" '
            f'width="{width}" height="{high}"/>'
        )
    parts += [f'<path class="mark" d="M{x(mark)} 0V{high}"/>' for mark in marks_ns]
    return "".join(parts)


def _path(line: Line, scale: Scale, end_ns: int, *, closed: bool) -> str:
    parts: list[str] = []
    for points in _unbroken(line.series, end_ns):
        first_x, first_y = points[0][0], scale.y(points[0][1])
        parts.append(f"M{first_x} {HIGH}V{first_y}" if closed else f"M{first_x} {first_y}")
        previous = first_y
        for at, value in points[1:]:
            y = scale.y(value)
            if line.form == "line":
                parts.append(f"L{at} {y}")
            else:
                parts.append(f"H{at}" if y == previous else f"H{at}V{y}")
            previous = y
        if closed:
            parts.append(f"V{HIGH}Z")
    return "".join(parts)


def _unbroken(series: Series, end_ns: int) -> Iterator[list[tuple[int, float]]]:
    """Stretches in which the value is known; each goes on to where it ends."""
    points: list[tuple[int, float]] = []
    for at, value in zip(series.times_ns, series.values, strict=True):
        if value is not None:
            points.append((x(at), value))
            continue
        if points:
            yield [*points, (x(at), points[-1][1])]
        points = []
    if points:
        yield [*points, (x(end_ns), points[-1][1])]


def chart_data(chart: Chart) -> list[list[Any]]:
    """For each line its times, in units, and values: what a script shows at the pointer."""
    return [
        [[x(at) for at in line.series.times_ns], [_short(value) for value in line.series.values], line.unit]
        for line in chart.lines
    ]


def lanes_data(lanes: Lanes) -> list[list[Any]]:
    data = []
    for lane in lanes.lanes:
        times: list[int] = []
        values: list[str | None] = []
        for bar in lane.bars:
            times += [x(bar.begin_ns), x(bar.end_ns)]
            values += [bar.value, None]
        data.append([times, values, ""])
    return data


def _short(value: float | None) -> float | int | None:
    if value is None:
        return None
    return int(value) if value == int(value) else round(value, 2)
