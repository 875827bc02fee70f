"""Results as a picture (SVG): how many times better than the second target the first is, on one logarithmic scale.

To the right of 1× is better, whatever the measure. A dot is the ratio of medians, the bar behind it reaches from the
worst to the best round, a notch on the scale is the goal. Streams stand in one row a load with a panel for each
question; below them everything else that has a goal or is worth a look.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final

from msgspec import Struct

from .measures import MEASURES, Measure, goals_of
from .report import preamble, short
from .results import Results

WIDTH: Final = 1180
_MARGIN: Final = 36
_ROW: Final = 25
_GAP: Final = 26
_LETTER: Final = 6.3
"""The width of one in a row's label."""
_LABEL: Final = 226
"""The least room for labels; longer ones take it from the panels."""
_TITLE, _TITLE_LETTER = 16, 0.65
"""The size of a title, and the width of a letter in sizes: long ones are written smaller."""
_ROOMY: Final = 210
"""A panel of this width has room for every number of the grid."""
_NUMBERS: Final = 58
"""Room for the ratio behind a panel."""
_LEAST, _MOST = 1 / 4, 32.0
_GRID: Final = (1 / 4, 1 / 2, 1, 2, 4, 8, 16, 32)

_INK, _SOFT, _LINE = "#1d2b3a", "#66788a", "#dde5ec"
_GOOD, _MISSED, _PLAIN = "#2a7f57", "#c4532f", "#33618f"
_WORSE_SIDE: Final = "#fbf3ef"

_HOW: Final = "How many times better, on a logarithmic scale: right of 1× is better, the bar is the spread of rounds."

_STREAM_PANELS: Final = (
    ("produce_records_per_s", "produce, records a second"),
    ("produce_broker_cpu_s_per_gb", "produce, broker CPU a GB"),
    ("consume_records_per_s", "consume, records a second"),
    ("consume_broker_cpu_s_per_gb", "consume, broker CPU a GB"),
)
# What the lists below the streams show of each cell beside what there are goals for; the rest stands in the table.
_LISTED: Final = frozenset(
    {
        *("startup_s", "idle_mib", "loaded_mib", "serving_s", "requests_per_s", "broker_cpu_us_per_request"),
        *(f"{what}_{quantile}_ms" for what in ("acknowledged", "end_to_end") for quantile in ("p50", "p99", "p999")),
        *(f"crowd_{what}_{quantile}_ms" for what in ("acknowledged", "delivered") for quantile in ("p50", "p99")),
        *("crowd_broker_cores", "crowd_mib", "kib_per_partition", "restart_s", "kill_restart_s"),
        *(
            f"{how}_{what}"
            for how in ("idempotent", "transactional")
            for what in ("records_per_s", "broker_cpu_s_per_gb")
        ),
        *("heartbeats_cpu_percent", "cluster_mib"),
    }
)


_HEADS: Final = {
    "startup": "Start and memory",
    "memory": "Start and memory",
    "single": "Single records, linger.ms=0",
    "tiny": "Requests of one record of 100 B",
    "crowd": "2,000 connected clients, 200 produce",
    "topic": "1,000 partitions",
    "partitions": "1,000 partitions",
}


class _Mark(Struct, frozen=True, kw_only=True):
    """One value as it is drawn: factors above 1 are better."""

    factor: float
    worst: float
    best: float
    goal: float | None
    colour: str
    told: str
    """The ratio as in the table, with both medians, for who points at the dot."""


def draw(results: Results) -> str:
    """The picture; two targets are needed."""
    first, second = list(results.targets)[:2]
    parts = [
        _text(_MARGIN, 46, f"{first} beside {second}", size=25, weight="bold"),
        _text(_MARGIN, 70, f"{_HOW} The figure is the same: above 1, {first} is better.", size=14, colour=_SOFT),
        _legend(WIDTH - _MARGIN, 46),
    ]
    bottom = 112
    streams = [cell for cell in results.cells if results.ratio(cell, _STREAM_PANELS[0][0]) is not None]
    if streams:
        parts.extend(_streams(results, streams, bottom))
        bottom += 40 + len(streams) * _ROW + 50
    bottoms = [bottom, bottom]
    for title, rows in _lists(results).items():
        column = bottoms.index(min(bottoms))
        parts.extend(_list(title, rows, column, bottoms[column]))
        bottoms[column] += 40 + len(rows) * _ROW + 36
    bottom = max(bottoms)
    for line in preamble(results):
        parts.append(_text(_MARGIN, bottom, line, size=12, colour=_SOFT))
        bottom += 18
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 14}" '
        f'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">\n'
        f'<rect width="{WIDTH}" height="{bottom + 14}" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _streams(results: Results, cells: Sequence[str], y: int) -> Iterator[str]:
    label = _label_width([results.cells[cell] for cell in cells])
    width = (WIDTH - 2 * _MARGIN - label - len(_STREAM_PANELS) * (_NUMBERS + 8)) // len(_STREAM_PANELS)
    yield _text(_MARGIN, y, "Streams", size=_TITLE, weight="bold")
    for row, cell in enumerate(cells):
        yield _text(_MARGIN, y + 40 + row * _ROW + 17, results.cells[cell], size=12)
    for place, (measure, title) in enumerate(_STREAM_PANELS):
        x = _MARGIN + label + place * (width + _NUMBERS + 8)
        yield _text(x, y + 4, title, size=12.5, weight="bold")
        marks = [_mark(results, cell, _measure(measure)) for cell in cells]
        yield from _panel(x, y + 40, width, marks)


def _label_width(texts: Iterable[str]) -> int:
    return max(_LABEL, round(_LETTER * max(map(len, texts))))


def _lists(results: Results) -> dict[str, list[tuple[str, _Mark]]]:
    """Rows under their heads."""
    found: dict[str, list[tuple[str, _Mark]]] = {}
    for cell in results.cells:
        kind, _, variant = cell.partition("/")
        for measure in MEASURES:
            mark = _mark(results, cell, measure)
            if mark is not None and _is_listed(mark, measure):
                title = _HEADS.get(kind, results.cells[cell])
                found.setdefault(title, []).append((_row_label(kind, variant, measure), mark))
    return found


def _is_listed(mark: _Mark, measure: Measure) -> bool:
    if measure.name in _LISTED:
        return True
    return mark.goal is not None and all(measure.name != name for name, _ in _STREAM_PANELS)


def _row_label(kind: str, variant: str, measure: Measure) -> str:
    match kind:
        case "tiny":
            return f"{measure.title}, {variant} in flight"
        case "crowd":
            return f"{measure.title}, {variant} readers" if variant != "0" else f"{measure.title}, no reader"
        case _:
            return measure.title


def _list(title: str, rows: Sequence[tuple[str, _Mark]], column: int, y: int) -> Iterator[str]:
    half = (WIDTH - 2 * _MARGIN - _GAP) // 2
    x = _MARGIN + column * (half + _GAP)
    label = _label_width([text for text, _ in rows])
    yield _text(x, y, title, size=min(_TITLE, round(half / (_TITLE_LETTER * len(title)), 1)), weight="bold")
    for row, (text, _) in enumerate(rows):
        yield _text(x, y + 40 + row * _ROW + 17, text, size=12)
    yield from _panel(x + label, y + 40, half - label - _NUMBERS, [mark for _, mark in rows])


def _panel(x: int, y: int, width: int, marks: Sequence[_Mark | None]) -> Iterator[str]:
    height = len(marks) * _ROW
    even = x + _place(1, width)
    yield f'<rect x="{x}" y="{y}" width="{even - x:.1f}" height="{height}" fill="{_WORSE_SIDE}"/>'
    for value in _GRID:
        at = x + _place(value, width)
        is_even = value == 1
        stroke = _SOFT if is_even else _LINE
        yield f'<line x1="{at:.1f}" y1="{y}" x2="{at:.1f}" y2="{y + height}" stroke="{stroke}" stroke-width="1"/>'
        if width >= _ROOMY or value in (1 / 4, 1, 4, 16):
            label = f"{value:g}×" if value >= 1 else f"1/{1 / value:g}×"
            yield _text(at, y - 6, label, size=10.5, colour=_SOFT, anchor="middle")
    for row, mark in enumerate(marks):
        if mark is not None:
            yield _dot(x, y + row * _ROW + _ROW / 2, width, mark)


def _dot(x: float, y: float, width: float, mark: _Mark) -> str:
    at, worst, best = (x + _place(value, width) for value in (mark.factor, mark.worst, mark.best))
    goal = ""
    if mark.goal is not None:
        place = x + _place(mark.goal, width)
        goal = f'<line x1="{place:.1f}" y1="{y - 8}" x2="{place:.1f}" y2="{y + 8}" stroke="{_INK}" stroke-width="2.5"/>'
    return (
        f"<g><title>{escape(mark.told)}</title>{goal}"
        f'<line x1="{worst:.1f}" y1="{y}" x2="{best:.1f}" y2="{y}" stroke="{mark.colour}" stroke-width="5" '
        f'stroke-opacity="0.35" stroke-linecap="round"/>'
        f'<circle cx="{at:.1f}" cy="{y}" r="5.5" fill="{mark.colour}"/>'
        + _text(x + width + 8, y + 4.5, f"{mark.factor:.2f}×", size=12.5, weight="bold", colour=mark.colour)
        + "</g>"
    )


def _legend(right: float, y: float) -> str:
    entries = ((_GOOD, "goal reached"), (_MISSED, "goal missed"), (_PLAIN, "no goal"))
    parts = []
    x = right - 400
    for colour, label in entries:
        parts.append(f'<circle cx="{x}" cy="{y - 5}" r="5.5" fill="{colour}"/>')
        parts.append(_text(x + 12, y, label, size=13))
        x += 110
    parts.append(f'<line x1="{x}" y1="{y - 13}" x2="{x}" y2="{y + 3}" stroke="{_INK}" stroke-width="2.5"/>')
    parts.append(_text(x + 10, y, "the goal", size=13))
    return "".join(parts)


def _mark(results: Results, cell: str, measure: Measure) -> _Mark | None:
    ratio = results.ratio(cell, measure.name)
    if not ratio:
        return None
    first, second = list(results.targets)[:2]
    pairs = zip(results.series(cell, first, measure.name), results.series(cell, second, measure.name), strict=False)
    factors = [_better(own / other, measure) for own, other in pairs if own and other]
    goal = next((goal for goal in goals_of(cell, measure.name) if goal.is_ratio), None)
    bound = None if goal is None else goal.at_least if goal.at_least is not None else goal.at_most
    medians = [spread.median for name in (first, second) if (spread := results.spread(cell, name, measure.name))]
    return _Mark(
        factor=_better(ratio, measure),
        worst=min(factors, default=_better(ratio, measure)),
        best=max(factors, default=_better(ratio, measure)),
        goal=None if bound is None else _better(bound, measure),
        colour=_PLAIN if goal is None else _GOOD if goal.holds(ratio) else _MISSED,
        told=f"{ratio:.2f}× {first} {short(medians[0])}, {second} {short(medians[1])} ({measure.unit})",
    )


def _better(ratio: float, measure: Measure) -> float:
    return ratio if measure.is_more_better else 1 / ratio


def _measure(name: str) -> Measure:
    return next(measure for measure in MEASURES if measure.name == name)


def _place(value: float, width: float) -> float:
    """Where on the scale; what lies beyond it stands at its end."""
    part = math.log(min(max(value, _LEAST), _MOST) / _LEAST) / math.log(_MOST / _LEAST)
    return part * width


def _text(
    x: float, y: float, text: str, *, size: float, weight: str = "normal", colour: str = _INK, anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" fill="{colour}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )
