"""The stories of records, drawn. Time since a record was sent is logarithmic: milliseconds and a minute both fit."""

from __future__ import annotations

import math
from typing import Final

from .chart import UNIT_NS
from .fault_style import fault_styles
from .markup import compact, duration, seconds, text
from .run_view import RunView
from .story import Step, Story, chosen_records, story

_STORIES_MAX: Final = 3
_WIDE: Final = 1000
_DECADES_MS: Final = (1, 10, 100, 1_000, 10_000, 100_000)


def stories(view: RunView) -> str:
    """Nothing for a workload without records."""
    chosen = chosen_records(view.pairs, [finding for _, finding in view.breaches], view.bands, limit=_STORIES_MAX)
    told = [story(view.pairs, view.run.samples, key=key, value=value, why=why) for key, value, why in chosen]
    parts = [_story(view, one, number) for number, one in enumerate(told, 1) if one.steps]
    if not parts:
        return ""
    title = "The story of one record" if len(parts) == 1 else f"The stories of {len(parts)} records"
    return (
        f'<section class="sheet" id="stories" aria-labelledby="stories-title"><h2 id="stories-title">{title}</h2>'
        '<p class="soft small">Time since it was sent, logarithmic. What clients saw is exact, a dot; what lies in '
        "logs took place within a bar, between two samples of the cluster.</p>"
        f"{''.join(parts)}</section>"
    )


def _story(view: RunView, told: Story, number: int) -> str:
    begin_ns = min(step.after_ns for step in told.steps)
    total_ms = max(10.0, (max(step.by_ns for step in told.steps) - begin_ns) / 1e6)

    def across(at_ns: int) -> float:
        since_ms = max(0.0, (at_ns - begin_ns) / 1e6)
        return round(_WIDE * min(1.0, math.log1p(since_ms) / math.log1p(total_ms)), 1)

    until_ns = begin_ns + int(total_ms * 1e6)
    bands = view.bands_at(begin_ns, until_ns)
    styles = fault_styles(bands)
    behind = "".join(
        f'<rect class="band {styles[band.kind]}" x="{across(band.begin_ns)}" y="0" '
        f'width="{max(1.0, across(band.end_ns) - across(band.begin_ns))}" height="10"/>'
        for band in bands
    )
    behind += "".join(
        f'<path class="grid" d="M{across(begin_ns + decade * 10**6)} 0V10"/>'
        for decade in _DECADES_MS
        if decade < total_ms
    )
    axis = "".join(
        f'<span style="left:{across(begin_ns + decade * 10**6) / _WIDE:.2%}">{duration(decade * 10**6)}</span>'
        for decade in _DECADES_MS
        if decade < total_ms * 0.8
    )
    rows = "".join(_step(step, begin_ns, across(step.after_ns), across(step.by_ns), behind) for step in told.steps)
    met = ", ".join(dict.fromkeys(band.name for band in bands))
    where = f"<code>{text(told.key)}</code>" + ("" if told.offset is None else f", offset {told.offset}")
    zoom = f"{max(0, begin_ns // UNIT_NS - 100)},{until_ns // UNIT_NS + 100}"
    return (
        f'<article class="story" aria-labelledby="story-{number}"><h3 id="story-{number}">Record '
        f"<code>{compact(told.value)}</code> of {where} "
        f'<a class="when figure" href="#timeline" data-zoom="{zoom}">{seconds(begin_ns)}</a></h3>'
        f'<p class="small"><strong class="{"good" if told.is_good else "bad"}">{text(told.end)}</strong> '
        f'<span class="soft">{text(told.why)}{f" Faults meanwhile: {text(met)}." if met else ""}</span></p>'
        f'<div class="steps"><div class="scale" aria-hidden="true">{axis}</div><ol>{rows}</ol></div></article>'
    )


def _step(step: Step, begin_ns: int, left: float, right: float, behind: str) -> str:
    if step.after_ns == step.by_ns:
        when = f"+{_precise(step.by_ns - begin_ns)}"
        shape = f'<path class="moment {step.tone}" d="M{left} 5h0"/>'
    else:
        when = f"+{_precise(step.after_ns - begin_ns)} to {_precise(step.by_ns - begin_ns)}"
        shape = f'<rect class="within {step.tone}" x="{left}" y="2.5" width="{max(2.0, right - left):.1f}" height="5"/>'
    return (
        f'<li class="{step.tone}"><span class="said"><b>{text(step.actor)}</b> {text(step.text)}</span>'
        f'<span class="figure soft">{when}</span><svg class="track" preserveAspectRatio="none" '
        f'viewBox="0 0 {_WIDE} 10" aria-hidden="true">{behind}{shape}</svg></li>'
    )


def _precise(ns: int) -> str:
    return f"{ns / 1e6:.1f} ms" if ns < 1_000_000_000 else f"{ns / 1e9:.2f} s"
