"""What the time line shows: its charts and lanes, worked out of a run. Drawing them is `timeline.py`'s."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from .chart import Bar, Chart, Lane, Lanes, Line, Scale, bars_of, linear_scale
from .client_series import Series, client_lanes, latencies, rates, unseen
from .cluster_series import (
    controller_runs,
    epochs,
    high_watermarks,
    isr_runs,
    leader_runs,
    node_runs,
    partition_keys,
    replica_count,
    unreplicated,
)
from .markup import count, duration, seconds
from .run_view import RunView

# More lanes than these are not compared by eye.
PARTITIONS_MAX: Final = 12
# More marks than these are a red wall.
MARKS_MAX: Final = 60
_CLIENTS_MAX: Final = 24
_COLOURS: Final = 8
_MS_NS: Final = 1_000_000


def panels(view: RunView, styles: dict[str, str]) -> Iterator[Chart | Lanes]:
    yield _faults(view, styles)
    samples, end_ns = view.run.samples, view.end_ns
    if samples:
        yield _nodes(view)
    yield _throughput(view)
    yield _latency(view)
    if (unread := unseen(view.pairs, end_ns)) is not None:
        most = max(value or 0 for value in unread.values)
        yield Chart(
            id="unseen",
            title="Unseen records",
            note="acknowledged, and not yet returned by any poll",
            scale=linear_scale([unread]),
            lines=[Line(unread, "k0", "area")],
            summary=f"At most {most:.0f}; {unread.values[-1] or 0:.0f} at the end.",
        )
    keys = shown_partitions(view)
    if keys:
        left = len(partition_keys(samples)) - len(keys)
        others = f"; {count(left, 'partition')} more in cluster.jsonl" if left else ""
        yield _leaders(view, keys, others)
        yield _isr(view, keys)
        lines = [epochs(samples, key) for key in keys]
        yield Chart(
            id="epoch",
            title="Leader epoch",
            note="one more with each change of a leadership",
            scale=linear_scale(lines, from_zero=False),
            lines=_coloured(lines),
            summary=f"{sum(len(line.values) - 1 for line in lines)} changes in all.",
        )
        lines = [high_watermarks(samples, key) for key in keys]
        yield Chart(
            id="watermark",
            title="High watermark",
            note="offset below which consumers read",
            scale=linear_scale(lines, from_zero=False),
            lines=_coloured(lines, form="line"),
            summary="One line for each partition; flat where nothing is committed.",
        )
        lines = [unreplicated(samples, key) for key in keys]
        yield Chart(
            id="unreplicated",
            title="Beyond the high watermark",
            note="records in the leader's log that consumers may not read yet",
            scale=linear_scale(lines),
            lines=_coloured(lines),
            summary=f"At most {max((value or 0 for line in lines for value in line.values), default=0):.0f}.",
        )
    yield _clients(view)


def shown_partitions(view: RunView) -> list[str]:
    """Those with anomalies first, then those whose leader changed most; in their order."""
    keys = partition_keys(view.run.samples)
    if len(keys) <= PARTITIONS_MAX:
        return keys
    anomalous = {finding.key for finding in view.findings}

    def rank(key: str) -> tuple[bool, int]:
        return key not in anomalous, -len(leader_runs(view.run.samples, view.end_ns, key))

    chosen = set(sorted(keys, key=rank)[:PARTITIONS_MAX])
    return [key for key in keys if key in chosen]


def _coloured(series: Sequence[Series], form: str = "step") -> list[Line]:
    return [Line(one, f"k{number % _COLOURS}", form) for number, one in enumerate(series)]


def _faults(view: RunView, styles: dict[str, str]) -> Lanes:
    lanes = []
    dated = [(at, number, finding) for number, finding in view.breaches if (at := view.time_of(finding))]
    if dated:
        width_ns = view.end_ns // 250
        lanes.append(
            Lane(
                "anomalies",
                [
                    Bar(
                        max(0, at - width_ns // 2),
                        at + width_ns // 2,
                        "allowed" if finding.allowed else "anomaly",
                        f"{finding.type} at {seconds(at)}: {finding.message}",
                        href=f"#finding-{number}",
                    )
                    # Those that are allowed lie beneath the others.
                    for at, number, finding in reversed(dated[:MARKS_MAX])
                ],
            )
        )
    for name in dict.fromkeys(band.name for band in view.bands):
        bars = [
            Bar(
                band.begin_ns,
                band.end_ns,
                f"fault {styles[band.kind]}" + (" idle" if band.proof == "without effect" else ""),
                f"{name}, {seconds(band.begin_ns)} to {seconds(band.end_ns)}, {band.proof}: {band.fault}",
                href=f"#fault-{band.number}",
            )
            for band in view.bands
            if band.name == name
        ]
        lanes.append(Lane(name, bars))
    final = [pair for pair in view.pairs if pair.invocation.final]
    if final:
        begin_ns = final[0].invocation.time
        lanes.append(Lane("final reads", [Bar(begin_ns, view.end_ns, "final", "final reads, after everything healed")]))
    note = "each kind in a lane" if view.bands else "none"
    names = ", ".join(f"{band.name} at {seconds(band.begin_ns, digits=0)}" for band in view.bands[:40])
    return Lanes(id="faults", title="Faults", note=note, lanes=lanes, summary=names or "No fault.")


def _nodes(view: RunView) -> Lanes:
    samples, end_ns = view.run.samples, view.end_ns
    lanes = []
    for node, runs in node_runs(samples, end_ns).items():
        styles = {"up": "up", "paused": "paused", "down": "down"}
        lanes.append(Lane(f"node {node}", bars_of(runs, styles, f"node {node}:")))
    lanes.append(Lane("controller", bars_of(controller_runs(samples, end_ns), "n", "active controller: node")))
    return Lanes(
        id="nodes",
        title="Nodes",
        note="their processes, and which one is the active controller",
        lanes=lanes,
        legend=[("up", "up"), ("paused", "paused"), ("down", "down"), *_node_legend(view)],
        summary=f"{len(lanes) - 1} nodes; the active controller changed {max(0, len(lanes[-1].bars) - 1)} times.",
    )


def _node_legend(view: RunView) -> list[tuple[str, str]]:
    nodes = node_runs(view.run.samples, view.end_ns)
    return [(f"n{node}", f"node {node}") for node in nodes if int(node) < _COLOURS]


def _throughput(view: RunView) -> Chart:
    series, bad = rates(view.pairs, view.end_ns)
    lines = [Line(one, f"k{number % _COLOURS}", "line", "/s") for number, one in enumerate(series[:_COLOURS])]
    lines.append(Line(bad, "failed", "line", "/s"))
    total = sum(pair.outcome == "ok" for pair in view.pairs)
    return Chart(
        id="throughput",
        title="Throughput",
        note="operations that took place, a second",
        scale=linear_scale([*series, bad]),
        lines=lines,
        unit="/s",
        summary=f"{total} operations took place in {duration(view.end_ns)}.",
    )


def _latency(view: RunView) -> Chart:
    dots, lines = latencies(view.pairs, view.end_ns)
    values = [value for one in dots for _, value in one.points] or [_MS_NS]
    low, high = 10.0 ** math.floor(math.log10(min(values))), 10.0 ** math.ceil(math.log10(max(values)) + 1e-9)
    low = max(low, high / 1e6)
    in_ms = [Line(line, style, "line", " ms") for line, style in zip(lines, ("p50", "p99"), strict=True)]
    styles = {"ok": "completed", "fail": "failed", "info": "unknown"}
    words = {"ok": "took place", "fail": "failed", "info": "outcome unknown"}
    shown = {one.outcome for one in dots}
    return Chart(
        id="latency",
        title="Latency",
        note="a dot for each operation or for several; what waits for records is left out",
        scale=Scale(low, max(high, low * 10), is_logarithmic=True),
        lines=in_ms,
        dots=[(one, styles[one.outcome]) for one in dots],
        legend=[(styles[outcome], words[outcome]) for outcome in ("ok", "fail", "info") if outcome in shown],
        unit="ms",
        summary=f"The slowest took {duration(max(values))}.",
    )


def _leaders(view: RunView, keys: Sequence[str], others: str) -> Lanes:
    samples, end_ns = view.run.samples, view.end_ns
    lanes = []
    changes = 0
    for key in keys:
        runs = leader_runs(samples, end_ns, key)
        changes += max(0, len(runs) - 1)
        lanes.append(Lane(key, bars_of(runs, "n", f"{key} is led by node")))
    return Lanes(
        id="leader",
        title="Leader",
        note=f"the node that leads each partition{others}",
        lanes=lanes,
        legend=[*_node_legend(view), ("nnone", "no leader")],
        summary=f"{changes} changes, seen in samples of the cluster.",
    )


def _isr(view: RunView, keys: Sequence[str]) -> Lanes:
    samples, end_ns = view.run.samples, view.end_ns
    lanes = []
    shrunk = 0
    for key in keys:
        whole = replica_count(samples, key)
        bars = []
        for run in isr_runs(samples, end_ns, key):
            if run.value == "?":
                continue
            size = int(run.value.partition(":")[0])
            style = "whole" if size == whole else "one" if size <= 1 else "less"
            shrunk += style != "whole"
            bars.append(Bar(run.begin_ns, run.end_ns, style, f"{key}: in sync {run.value}", run.value))
        lanes.append(Lane(key, bars))
    return Lanes(
        id="isr",
        title="ISR",
        note="replicas in sync",
        lanes=lanes,
        legend=[("whole", "all replicas"), ("less", "fewer"), ("one", "one or none")],
        summary=f"{shrunk} times fewer than all replicas were in sync.",
    )


def _clients(view: RunView) -> Lanes:
    clients = client_lanes(view.pairs, view.end_ns)
    styles = {"ok": "busy", "fail": "failed", "info": "unknown"}
    words = {"ok": "took place", "fail": "failed", "info": "with an unknown outcome"}
    lanes = []
    for client, spans in list(clients.items())[:_CLIENTS_MAX]:
        # What went wrong lies above what went right.
        ordered = sorted(spans, key=lambda busy: ("ok", "fail", "info").index(busy.outcome))
        bars = [
            Bar(
                busy.begin_ns,
                busy.end_ns,
                styles[busy.outcome],
                f"client {client}, {seconds(busy.begin_ns)} to {seconds(busy.end_ns)}: "
                f"{count(busy.count, 'operation')} {words[busy.outcome]}",
            )
            for busy in ordered
        ]
        lanes.append(Lane(f"client {client}", bars))
    left = len(clients) - len(lanes)
    return Lanes(
        id="clients",
        title="Clients",
        note="operations of each" + (f"; {left} more are not shown" if left else ""),
        lanes=lanes,
        legend=[("busy", "took place"), ("failed", "failed"), ("unknown", "outcome unknown")],
        summary=f"{len(clients)} clients.",
    )
