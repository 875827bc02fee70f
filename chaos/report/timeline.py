"""The time line: bands of faults over synchronized charts of clients and cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from .chart import HIGH, Chart, Lanes, backdrop, chart_data, chart_svg, lanes_data, lanes_svg, x
from .fault_style import fault_styles
from .markup import compact, count, script_data, text
from .panels import MARKS_MAX, panels
from .run_view import RunView

_LANE_PX: Final = 18
_MS_NS: Final = 1_000_000


def timeline(view: RunView) -> tuple[str, str]:
    """The section, and the data of its script."""
    styles = fault_styles(view.bands)
    marks = sorted({at for _, finding in view.breaches[:MARKS_MAX] if (at := view.time_of(finding)) is not None})
    drawn = []
    data: dict[str, Any] = {}
    for part in panels(view, styles):
        if isinstance(part, Chart):
            svg = chart_svg(part, view.end_ns, backdrop(view.bands, marks, HIGH, styles))
            drawn.append(_chart_panel(part, svg))
            data[part.id] = chart_data(part)
        else:
            high = 10 * max(1, len(part.lanes))
            # The lanes of faults are the bands themselves.
            behind = "" if part.id == "faults" else backdrop(view.bands, marks, high, styles)
            drawn.append(_lanes_panel(part, lanes_svg(part, view.end_ns, behind)))
            data[part.id] = lanes_data(part) if part.id in ("nodes", "leader", "isr") else []
    ticks = "".join(
        f'<span style="left:{100 * at / view.end_ns:.2f}%">{label}</span>' for at, label in axis_ticks(view.end_ns)
    )
    section = f"""<section class="sheet" id="timeline" aria-labelledby="timeline-title">
<div class="spread"><h2 id="timeline-title">What took place</h2><div class="tools" id="tools"></div></div>
<p class="soft small">Bands are faults; red lines are where an anomaly shows. All charts share one axis: seconds since
the run began.</p>
<div class="charts"><div class="axis" aria-hidden="true"><span class="gutter" id="now"></span><div class="ticks"
id="ticks">{ticks}</div></div>
{"".join(drawn)}</div></section>"""
    return section, script_data({"end": x(view.end_ns), "charts": data})


def axis_ticks(end_ns: int) -> Iterator[tuple[int, str]]:
    """About six round times."""
    least = end_ns / 6
    steps = [second * 10**9 for second in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600)]
    step = next((one for one in steps if one >= least), steps[-1])
    for number in range(end_ns // step + 1):
        at = number * step
        yield at, f"{at // 10**9} s" if step < 60 * 10**9 else f"{at // (60 * 10**9)} min"


def _chart_panel(chart: Chart, svg: str) -> str:
    keys = "".join(
        f'<span class="key"><i class="swatch {line.style}"></i>{text(line.series.name)}'
        f' <b data-value="{chart.id}:{number}"></b></span>'
        for number, line in enumerate(chart.lines)
    )
    ticks = "".join(
        f'<span style="top:{chart.scale.y(tick):.1f}%">{_tick(chart, tick)}</span>' for tick in chart.scale.ticks()
    )
    keys += "".join(
        f'<span class="key"><i class="swatch {style}"></i>{text(name)}</span>' for style, name in chart.legend
    )
    return (
        f'<figure class="panel" id="panel-{chart.id}"><figcaption><h3>{chart.title}</h3>'
        f'<span class="soft small">{text(chart.note)}</span><span class="keys">{keys}</span></figcaption>'
        f'<div class="body"><div class="gutter ticks-y" aria-hidden="true">{ticks}</div>'
        f'<div class="plot">{svg}</div></div></figure>'
    )


def _tick(chart: Chart, tick: float) -> str:
    if chart.unit == "ms":
        return f"{tick / 1e9:g} s" if tick >= 1e9 else f"{tick / _MS_NS:g} ms"
    return count(int(tick))


def _lanes_panel(lanes: Lanes, svg: str) -> str:
    names = "".join(
        f'<div title="{text(lane.name)}"><span>{text(lane.name)}</span><b data-value="{lanes.id}:{number}"></b></div>'
        for number, lane in enumerate(lanes.lanes)
    )
    keys = "".join(
        f'<span class="key"><i class="swatch {style}"></i>{text(name)}</span>' for style, name in lanes.legend
    )
    high = _LANE_PX * max(1, len(lanes.lanes))
    return (
        f'<figure class="panel" id="panel-{lanes.id}"><figcaption><h3>{lanes.title}</h3>'
        f'<span class="soft small">{compact(lanes.note)}</span><span class="keys">{keys}</span></figcaption>'
        f'<div class="body"><div class="gutter names">{names}</div>'
        f'<div class="plot" style="height:{high}px">{svg}</div></div></figure>'
    )
