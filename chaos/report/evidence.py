"""The anomalies of a run, each with the operations that prove it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..checkers.finding import Finding
from ..histories.operation import NEMESIS, Operation
from .markup import compact, count, duration, seconds, text
from .operation_text import focus_of, operation_text
from .run_view import RunView

# A person reads the first few; all are in verdict.json.
_FINDINGS_MAX: Final = 60
_OPERATIONS_MAX: Final = 24
_DETAIL_MAX: Final = 600


def evidence(view: RunView) -> str:
    """Nothing where there is no finding. What is allowed is folded: it is no reason to look for a bug."""
    if not view.findings:
        return ""
    numbered = list(enumerate(view.findings, 1))
    bad = _groups(view, [item for item in numbered if not item[1].allowed])
    allowed = _groups(view, [item for item in numbered if item[1].allowed])
    if allowed:
        number = view.total(is_allowed=True)
        allowed = f'<details class="fold"><summary>Allowed: {count(number, "finding")}</summary>{allowed}</details>'
    title = "Evidence" if bad else "What is allowed"
    return (
        '<section class="sheet" id="evidence" aria-labelledby="evidence-title">'
        f'<h2 id="evidence-title">{title}</h2>{bad}{allowed}</section>'
    )


def _groups(view: RunView, numbered: Sequence[tuple[int, Finding]]) -> str:
    """The findings by type, in the order in which types come first."""
    groups: dict[str, list[tuple[int, Finding]]] = {}
    for number, finding in numbered[:_FINDINGS_MAX]:
        groups.setdefault(finding.type, []).append((number, finding))
    parts = []
    for type_, cards in groups.items():
        is_allowed = cards[0][1].allowed
        total = view.total(is_allowed=is_allowed, types=(type_,))
        more = f' <span class="soft small">the first {len(cards)}</span>' if total > len(cards) else ""
        tag = '<span class="tag warn">allowed</span>' if is_allowed else '<span class="tag bad">anomaly</span>'
        parts.append(
            f'<h3 class="type"><code>{text(type_)}</code> {tag} <span class="soft">{count(total)}</span>{more}</h3>'
        )
        parts += [_card(view, number, finding, is_open=number <= 3) for number, finding in cards]
    left = len(numbered) - sum(map(len, groups.values()))
    if left:
        parts.append(f'<p class="soft small">{count(left, "more finding")} in verdict.json.</p>')
    return "".join(parts)


def _card(view: RunView, number: int, finding: Finding, *, is_open: bool) -> str:
    key = "" if finding.key is None else f'<code class="where">{text(finding.key)}</code> '
    at = view.time_of(finding)
    when = "" if at is None else f'<a class="when figure" href="#timeline" data-zoom="{_around(at)}">{seconds(at)}</a>'
    allowed = "" if finding.why_allowed is None else f'<p class="why small">Allowed: {text(finding.why_allowed)}</p>'
    shown = finding.operations[:_OPERATIONS_MAX]
    proving = [view.by_index[index] for index in finding.operations if index in view.by_index]
    focus = focus_of(proving, finding.key, finding.detail)
    rows = "".join(_operation(view, index, finding.key, focus) for index in shown)
    left = len(finding.operations) - len(shown)
    more = f'<li class="soft">{count(left, "more event")} in verdict.json</li>' if left else ""
    detail = _detail(finding.detail)
    style = "allowed" if finding.allowed else "anomaly"
    return (
        f'<details class="finding {style}" id="finding-{number}"{" open" if is_open else ""}><summary>{key}'
        f"{text(finding.message, limit=600)} {when}</summary>{allowed}"
        f'<ol class="ops">{rows}{more}</ol>{detail}</details>'
    )


def _detail(detail: Any) -> str:
    """What the events do not show themselves: the steps of a cycle, values in full."""
    if not isinstance(detail, Mapping):
        return "" if detail is None else f'<p class="soft small mono value">{compact(detail, limit=_DETAIL_MAX)}</p>'
    steps = detail.get("steps")
    if isinstance(steps, list) and all(isinstance(step, Mapping) and "text" in step for step in steps):
        items = "".join(f"<li>{text(step['text'], limit=_DETAIL_MAX)}</li>" for step in steps)
        return f'<ol class="cycle small">{items}</ol>'
    parts = " · ".join(f"{text(name)} {compact(value, limit=_DETAIL_MAX)}" for name, value in detail.items())
    return f'<p class="soft small mono value">{parts}</p>'


def _around(at_ns: int) -> str:
    """From and to, in units of the charts: two seconds on each side."""
    return f"{max(0, at_ns // 10_000_000 - 200)},{at_ns // 10_000_000 + 200}"


def _operation(view: RunView, index: int, key: str | None, focus: set[int]) -> str:
    pair = view.by_index.get(index)
    event = view.events.get(index)
    if pair is None:
        return _event(event, index) if event is not None else ""
    outcome = pair.outcome
    begun = pair.invocation.time
    took = "" if pair.completion is None else f"+{duration(pair.completion.time - begun)}"
    error = "" if pair.completion is None or pair.completion.error is None else f" {text(pair.completion.error)}"
    said = text(operation_text(pair, key=key, focus=focus), limit=900)
    during = "".join(
        f' <a class="tag" href="#fault-{band.number}">{text(band.name)}</a>'
        for band in view.bands_at(begun, view.end_ns if pair.completion is None else pair.completion.time)[:3]
    )
    word = {"ok": "ok", "fail": "failed", "info": "unknown"}[outcome]
    return (
        f'<li id="event-{index}" class="{outcome}"><span class="figure">{seconds(begun, digits=3)}</span>'
        f'<span class="soft figure">{took}</span><span>process {text(pair.invocation.process)}</span>'
        f'<code class="value"><b>{text(pair.invocation.f)}</b> {said}</code>'
        f'<span class="outcome">{word}{error}{during}</span></li>'
    )


def _event(event: Operation, index: int) -> str:
    who = "nemesis" if event.process == NEMESIS else f"process {event.process}"
    return (
        f'<li id="event-{index}"><span class="figure">{seconds(event.time, digits=3)}</span><span></span>'
        f'<span>{text(who)}</span><code class="value"><b>{text(event.f)}</b> {compact(event.value)}</code>'
        f'<span class="outcome">{text(event.error or "")}</span></li>'
    )
