"""Results as a table: medians with their spread, the ratio, the goal beside it and whether it holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from .measures import GOALS, MEASURES, Goal, goals_of
from .results import Results, Spread

LEVEL: Final = 0.02
"""Rows whose values differ by less say nothing."""


class Row(Struct, frozen=True, kw_only=True):
    """One value of one cell, as text."""

    cell: str
    title: str
    measure: str
    values: tuple[str, ...]
    """Of each target."""
    ratio: str
    goal: str
    holds: str


def rows(results: Results) -> Iterator[Row]:
    """All that was observed, in the order of measuring."""
    for cell, title in results.cells.items():
        for measure in MEASURES:
            spreads = [results.spread(cell, target, measure.name) for target in results.targets]
            if not any(spreads):
                continue
            ratio = results.ratio(cell, measure.name) if measure.is_compared else None
            goals = goals_of(cell, measure.name) if len(results.targets) > 1 else ()
            judged = [(goal, value) for goal in goals if (value := _value(results, cell, goal)) is not None]
            yield Row(
                cell=cell,
                title=title,
                measure=f"{measure.title}, {measure.unit}",
                values=tuple(_spread(spread) for spread in spreads),
                ratio="" if ratio is None else f"{ratio:.2f}×",
                goal=", ".join(str(goal) for goal, _ in judged),
                holds=", ".join("yes" if goal.holds(value) else "no" for goal, value in judged),
            )


def columns(results: Results) -> tuple[str, ...]:
    """The heads of the columns behind the measure."""
    return (*results.targets, "ratio", "goal", "holds") if len(results.targets) > 1 else tuple(results.targets)


def fields(results: Results, row: Row) -> tuple[str, ...]:
    """The fields under them."""
    return (*row.values, row.ratio, row.goal, row.holds) if len(results.targets) > 1 else row.values


class Verdict(Struct, frozen=True, kw_only=True):
    """How one goal fared over all cells that it is for."""

    title: str
    goal: str
    values: tuple[float, ...]
    """Ratios, or the first target's medians, from least to most."""
    holding: int


def verdicts(results: Results) -> Iterator[Verdict]:
    """Of each goal that something was measured for; goals with one title and bound are one."""
    found: dict[tuple[str, str], list[tuple[float, bool]]] = {}
    titles = {measure.name: measure.title for measure in MEASURES}
    for goal in GOALS if len(results.targets) > 1 else ():
        kind, _, rest = goal.cells.partition("/")
        load = f"{kind} {rest.partition('/')[0]}".rstrip("* ")
        for cell in results.cells:
            value = _value(results, cell, goal)
            if value is not None and goal in goals_of(cell, goal.measure):
                found.setdefault((f"{load}: {titles[goal.measure]}", str(goal)), []).append((value, goal.holds(value)))
    for (title, bound), judged in found.items():
        yield Verdict(
            title=title,
            goal=bound,
            values=tuple(sorted(value for value, _ in judged)),
            holding=sum(holds for _, holds in judged),
        )


def goals_table(results: Results) -> Iterator[str]:
    """Lines of Markdown."""
    yield "| goal | | measured | holds |"
    yield "|---|---|---|---|"
    for verdict in verdicts(results):
        measured, holds = goal_verdict(verdict)
        yield f"| {verdict.title} | {verdict.goal} | {measured} | {holds} |"


def goal_verdict(verdict: Verdict) -> tuple[str, str]:
    """Return what was measured (`0.14×`, `0.72×–1.13×`) and whether the goal holds (`yes`, `no`, `4 of 10`)."""
    is_ratio = verdict.goal.endswith("×")
    least, most = (f"{value:.2f}×" if is_ratio else short(value) for value in (verdict.values[0], verdict.values[-1]))
    count = len(verdict.values)
    holds = "yes" if verdict.holding == count else "no" if not verdict.holding else f"{verdict.holding} of {count}"
    return least if count == 1 else f"{least}–{most}", holds


def summary(results: Results) -> str | None:
    """The whole in a sentence: in how many rows the first target is ahead of the second, and where it is furthest
    behind. None where nothing is compared."""
    if len(results.targets) < 2:
        return None
    gains: dict[str, float] = {}
    for cell in results.cells:
        for measure in MEASURES:
            ratio = results.ratio(cell, measure.name) if measure.is_compared else None
            if ratio:
                gains[f"{cell}, {measure.title} ({short(ratio)}×)"] = ratio if measure.is_more_better else 1 / ratio
    if not gains:
        return None
    ahead = sum(gain > 1 + LEVEL for gain in gains.values())
    behind = {what: gain for what, gain in gains.items() if gain < 1 - LEVEL}
    own, other = [*results.targets][:2]
    told = f"{own} is ahead of {other} in {ahead} of {len(gains)} rows, behind in {len(behind)}"
    if not behind:
        return f"{told}."
    return f"{told}, furthest in {min(behind, key=behind.__getitem__)}."


def markdown(results: Results) -> str:
    """The whole report."""
    parts = [f"{line}\n" for line in preamble(results)]
    if len(results.targets) > 1:
        parts.extend(("\n", *(f"{line}\n" for line in goals_table(results))))
    heads = ("", *columns(results))
    last = None
    parts.append(f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n")
    for row in rows(results):
        if row.cell != last:
            parts.append(f"| **{row.title}** |{' |' * (len(heads) - 1)}\n")
            last = row.cell
        parts.append(f"| {row.measure} | {' | '.join(fields(results, row))} |\n")
    parts.extend(
        f"\n{item.target}, {item.cell}, round {item.round + 1} failed: {item.error}\n" for item in results.errors
    )
    last_line = summary(results)
    if last_line is not None:
        parts.append(f"\n{last_line}\n")
    return "".join(parts)


def preamble(results: Results) -> Iterator[str]:
    """When, where, how, and beside what load."""
    machine = ", ".join(f"{name} {value}" for name, value in results.machine.items())
    rounds = f"{results.rounds} round{'s' if results.rounds > 1 else ''}{' (quick)' if results.is_quick else ''}"
    if results.warm_rounds:
        rounds += f" after {results.warm_rounds} that did not count"
    yield f"{results.started}, {rounds} in {results.seconds / 60:.0f} minutes; {machine}."
    versions = ", ".join(f"{name} {about.get('version', '')}".strip() for name, about in results.targets.items())
    yield f"{versions}: median (least to most)."
    others = [
        value
        for item in results.observations
        for name, value in item.values.items()
        if name.endswith("others_cores") and value is not None
    ]
    if others:
        middle = sorted(others)[len(others) // 2]
        spread = f"least {min(others):.2f}, most {max(others):.2f}"
        yield f"Other programs had {middle:.2f} cores meanwhile (median; {spread})."


def _value(results: Results, cell: str, goal: Goal) -> float | None:
    """What a goal is held against."""
    if goal.is_ratio:
        return results.ratio(cell, goal.measure)
    own = results.spread(cell, next(iter(results.targets)), goal.measure)
    return None if own is None else own.median


def short(number: float, like: float | None = None) -> str:
    """Three digits or more; with as many decimals as the number `like` would get."""
    size = abs(number if like is None else like)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{number:,.{digits}f}"


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return ""
    median, least, most = (short(number, spread.median) for number in (spread.median, spread.least, spread.most))
    return median if least == most == median else f"{median} ({least}–{most})"
