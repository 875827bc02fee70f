"""The report of a run: one HTML page that needs nothing else, with the verdict first.

It is complete without its script, which adds what follows the pointer: values, zooming, marked faults.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import msgspec

from .client_series import CRASH, longest_stall_ns, outcomes
from .cluster_series import leader_changes, leaderless_ns
from .evidence import evidence
from .fault_band import FaultBand
from .fault_style import fault_styles
from .markup import compact, count, duration, seconds, text
from .recorded_run import RecordedRun
from .run_view import LOSSES, RunView
from .story_section import stories
from .timeline import timeline

_ICONS = {"good": "M5 13l4.5 4.5L19 7", "bad": "M6 6l12 12M18 6L6 18", "warn": "M12 5v9M12 18.5v.5"}
# A list that is longer is a series.
_FIGURES_MAX = 12


def page(run: RecordedRun) -> str:
    view = RunView.of(run)
    section, data = timeline(view)
    workload = run.history.header.workload
    shown = evidence(view)
    style, title, sentence = _verdict(view)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{text(title)} · {text(workload)} · Penstock chaos</title>
<style>{_file("report.css")}</style></head>
<body><main>
{_hero(view, style, title, sentence)}
{"".join((shown, section) if view.breaches else (section, shown))}
{stories(view)}
{_faults(view)}
{_numbers(view)}
{_repetition(view)}
</main>
<script type="application/json" id="data">{data}</script>
<script>{_file("report.js")}</script>
</body></html>
"""


def _file(name: str) -> str:
    return files("penstock.chaos.report").joinpath(name).read_text(encoding="utf-8")


def _verdict(view: RunView) -> tuple[str, str, str]:
    """(style, title, sentence)."""
    verdict = view.run.verdict
    if verdict is None:
        return "warn", "Not judged", "The folder has no verdict.json: `penstock chaos judge --json` prints one."
    allowed, bad = view.total(is_allowed=True), view.total(is_allowed=False)
    lost = view.total(is_allowed=True, types=LOSSES)
    other = allowed - (lost if verdict.valid == "valid" else 0)
    also = f" {count(other, 'other finding')} {_was(other)} allowed." if other else ""
    if verdict.valid == "anomalies":
        types = dict.fromkeys(finding.type for finding in view.findings if not finding.allowed)
        broken = f"What was promised did not hold: {', '.join(types)}."
        return "bad", count(bad, "anomal", "ies") if bad != 1 else "1 anomaly", broken + also
    if verdict.valid == "invalid-run":
        return "warn", "Invalid run", "It shows nothing about the cluster, neither good nor bad."
    if lost:
        why = f"Records are gone that may be gone; each finding says why.{also}"
        return "good mixed", f"Valid, {count(lost, 'allowed loss', 'es')}", why
    also = f" {count(allowed, 'finding')} {_was(allowed)} allowed; each says why." if allowed else ""
    return "good", "Valid", f"Everything that was promised held: no anomaly was found.{also}"


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _proofs(faults: int, idle: int) -> str:
    if idle:
        return f"faults, {idle} of them not proved"
    return "faults, all took hold" if faults else "faults"


def _hero(view: RunView, style: str, title: str, sentence: str) -> str:
    run = view.run
    header = run.history.header
    notes = "" if run.verdict is None else "".join(f"<li>{text(note)}</li>" for note in run.verdict.notes)
    total = {"ok": 0, "fail": 0, "info": 0}
    for f, counts in outcomes(view.pairs).items():
        for outcome, number in counts.items():
            total[outcome] += number if f != CRASH else 0
    idle = sum(band.proof not in ("proved", "took hold") for band in view.bands)
    facts = [
        ("lasted", duration(view.end_ns)),
        ("operations took place", count(total["ok"])),
        ("failed", count(total["fail"])),
        ("outcome unknown", count(total["info"])),
        (_proofs(len(view.bands), idle), count(len(view.bands))),
    ]
    stall = longest_stall_ns(view.pairs)
    if stall is not None:
        facts.append((f"longest stall, at {seconds(stall[0], digits=0)}", duration(stall[1] - stall[0])))
    if run.samples:
        facts.append(("changes of leaders", count(leader_changes(run.samples))))
        if (without_ns := leaderless_ns(run.samples, view.end_ns)) > 0:
            facts.append(("longest without a leader", duration(without_ns)))
    shown = "".join(f"<div><dd>{value}</dd><dt>{text(name)}</dt></div>" for name, value in facts)
    kinds = dict.fromkeys(band.name for band in view.bands)
    faults = ", ".join(kinds) if kinds else "no faults"
    seed = "" if header.seed is None else f" · seed {header.seed}"
    icon = _ICONS[style.partition(" ")[0]]
    return f"""<header class="hero {style}">
<p class="brand">Penstock chaos <span class="soft">{text(run.name)}</span></p>
<h1><svg viewBox="0 0 24 24" aria-hidden="true"><circle cx="12" cy="12" r="11"/><path d="{icon}"/></svg>
<span id="verdict">{text(title)}</span></h1>
<p class="sentence">{text(sentence)}</p>{f"<ul>{notes}</ul>" if notes else ""}
<p class="soft"><strong>{text(header.workload)}</strong> on {count(header.nodes, "node")}{seed} · {text(faults)}</p>
<dl class="facts">{shown}</dl></header>"""


def _faults(view: RunView) -> str:
    if not view.bands:
        return ""
    styles = fault_styles(view.bands)
    tones = {"proved": "good", "took hold": "good", "without effect": "bad", "not healed": "bad", "no canary": "warn"}
    rows = "".join(
        f'<li id="fault-{band.number}" data-fault="{band.number}"><i class="swatch fault {styles[band.kind]}"></i>'
        f"<strong>{text(band.name)}</strong>"
        f'<a class="figure" href="#timeline" data-zoom="{_span(band.begin_ns, band.end_ns)}">'
        f"{seconds(band.begin_ns)} – {seconds(band.end_ns) if band.is_ended else 'the end'}</a>"
        f'<span class="tag {tones[band.proof]}">{band.proof}</span>'
        f'<code class="value">{_parameters(band)}</code></li>'
        for band in view.bands
    )
    return f"""<section class="sheet" id="fault-list" aria-labelledby="fault-title"><h2 id="fault-title">Faults</h2>
<p class="soft small">Proved: a canary on that very link failed while the fault held, and worked afterwards. Took hold:
the nemesis saw it.</p>
<ol class="faults">{rows}</ol></section>"""


def _parameters(band: FaultBand) -> str:
    """What was hit, and how: without what its name says already."""
    if not isinstance(band.fault, Mapping):
        return compact(band.fault)
    parts = [] if band.error is None else [text(band.error)]
    for name, value in band.fault.items():
        if name in ("kind", "selector"):
            continue
        if name == "links" and isinstance(value, list):
            value = ", ".join(" → ".join(map(str, link)) if isinstance(link, list) else str(link) for link in value)
        elif isinstance(value, list) and all(isinstance(one, str | int) for one in value):
            value = ", ".join(map(str, value))
        parts.append(f"{text(name)} {compact(value)}")
    return " · ".join(parts)


def _span(begin_ns: int, end_ns: int) -> str:
    margin = max(100, (end_ns - begin_ns) // 40_000_000)
    return f"{max(0, begin_ns // 10_000_000 - margin)},{end_ns // 10_000_000 + margin}"


def _numbers(view: RunView) -> str:
    """Operations by function and outcome, and what checkers counted."""
    rows = "".join(
        f"<tr><th>{text(f)}</th><td>{count(counts['ok'])}</td><td>{count(counts['fail'])}</td>"
        f"<td>{count(counts['info'])}</td></tr>"
        for f, counts in sorted(outcomes(view.pairs).items(), key=lambda item: -sum(item[1].values()))
    )
    statistics = {} if view.run.verdict is None else view.run.verdict.statistics
    told = "".join(
        f"<details><summary>{text(name)}</summary>{_definitions(value)}</details>" for name, value in statistics.items()
    )
    return f"""<section class="sheet" id="numbers" aria-labelledby="numbers-title">
<h2 id="numbers-title">Operations</h2>
<div class="scroll"><table><thead><tr><th></th><th>took place</th><th>failed</th><th>unknown</th></tr></thead>
<tbody>{rows}</tbody></table></div>{told}</section>"""


def _definitions(value: Any) -> str:
    if not isinstance(value, Mapping):
        return f'<p class="mono small value">{compact(value, limit=2000)}</p>'
    items = "".join(f"<dt>{text(name)}</dt><dd class='mono'>{_figure(one)}</dd>" for name, one in value.items())
    return f'<dl class="options">{items}</dl>'


def _figure(value: Any) -> str:
    """Figures with their names; a series, which is drawn or lies in verdict.json, by its length."""
    if isinstance(value, Mapping):
        return "<br>".join(f"{text(name)} {_figure(one)}" for name, one in value.items())
    if isinstance(value, list) and len(value) > _FIGURES_MAX:
        return f"{len(value)} values"
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return text(", ".join(value))
    return compact(value, limit=1000)


def _repetition(view: RunView) -> str:
    record = view.run.record
    if record is None:
        return ""
    options = {name: value for name, value in msgspec.to_builtins(record).items() if value not in (None, "", [], {})}
    return f"""<section class="sheet" id="repetition" aria-labelledby="again-title">
<h2 id="again-title">Run it again</h2>
<div class="command"><code>{text(record.replay, limit=4000)}</code></div>
{_definitions(options)}</section>"""
