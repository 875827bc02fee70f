"""What a dashboard is made of: rows of panels, a panel its title, unit and queries."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """`queries` are pairs of an expression and a legend. `kind` is Grafana's type of a panel."""

    title: str
    queries: Sequence[tuple[str, str]]
    unit: str = "short"
    kind: str = "timeseries"
    description: str = ""
    # From which value on it is worth a look, and from which bad.
    warn: float | None = None
    bad: float | None = None
    is_stacked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """`variables` are more labels to choose from: a name, and the metric that has it. Without `has_nodes` they are all
    that there are to choose from."""

    name: str
    title: str
    rows: Sequence[tuple[str, Sequence[Panel]]]
    variables: Sequence[tuple[str, str]] = field(default_factory=tuple)
    has_nodes: bool = True


def stat(
    title: str, expression: str, *, unit: str = "short", warn: float | None = None, bad: float | None = None
) -> Panel:
    return Panel(title=title, queries=[(expression, "")], unit=unit, kind="stat", warn=warn, bad=bad)
