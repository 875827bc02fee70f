"""`penstock status`: the cluster as it is, live in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from .. import clock
from ..terminal import console_of, print_json, print_table
from .admin_options import admin_options, json_option, sentences
from .cluster_look import ClusterLook, take_look
from .event_lines import Event
from .events_command import remembered
from .findings import Finding, cluster_findings
from .status_view import (
    NODE_COLUMNS,
    QUORUM_COLUMNS,
    Rate,
    event_rows,
    head_lines,
    node_rows,
    quorum_rows,
    rates_between,
    status_json,
)

if TYPE_CHECKING:
    from rich.console import Group

    from ..admin import Admin

EVENTS_SHOWN: Final = 8
EVENTS_KEPT: Final = 100


@click.command()
@click.option("--once", is_flag=True, help="Look once. Without a terminal the command always does.")
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(min=0.2),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Between two looks.",
)
@json_option
@admin_options
def status(admin: Admin, once: bool, interval_s: float, as_json: bool) -> None:
    """Show nodes, leaders, replicas, the metadata quorum, throughput and the last events.

    What is wrong comes first. Any node answers, without a quorum too. Exit status 1 with --once: something is wrong.
    """
    if once or as_json or not sys.stdout.isatty():
        _print_once(admin, as_json=as_json)
    else:
        _live(admin, interval_s)


def _print_once(admin: Admin, *, as_json: bool) -> None:
    look, events = take_look(admin), _events(admin, [])
    findings = cluster_findings(look)
    if as_json:
        print_json(status_json(look, findings, {}, events[-EVENTS_SHOWN:]))
    else:
        for line in head_lines(look, findings):
            click.echo(line)
        click.echo()
        # A rate needs two looks.
        print_table(NODE_COLUMNS[:7], (row[:7] for row in node_rows(look, {})))
        click.echo()
        print_table(QUORUM_COLUMNS, quorum_rows(look))
        click.echo()
        for line in event_rows(events, EVENTS_SHOWN):
            click.echo(line)
    if any(finding.is_wrong for finding in findings):
        raise click.exceptions.Exit(1)


def _live(admin: Admin, interval_s: float) -> None:
    from rich.live import Live

    before: ClusterLook | None = None
    events: list[dict[str, Any]] = []
    with Live(console=console_of(sys.stdout), auto_refresh=False, screen=True) as live:
        try:
            while True:
                try:
                    with sentences():
                        look, events = take_look(admin), _events(admin, events)
                except click.ClickException as error:
                    live.update(_lost(error.message, before), refresh=True)
                else:
                    drawn = _drawn(look, cluster_findings(look), rates_between(before, look), events)
                    live.update(drawn, refresh=True)
                    before = look
                clock.pause(interval_s)
        except KeyboardInterrupt:
            return


def _events(admin: Admin, known: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    from ..admin import AdminProblem

    try:
        new = list(remembered(admin, known[-1]["id"] if known else None))
    except AdminProblem:
        # A node that starts follows no metadata yet.
        new = []
    return [*known, *new][-EVENTS_KEPT:]


def _drawn(look: ClusterLook, findings: Sequence[Finding], rates: dict[int, Rate], events: Sequence[Event]) -> Group:
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
        drawn = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
        for name in columns:
            drawn.add_column(name)
        for row in rows:
            drawn.add_row(*("-" if value is None else str(value) for value in row))
        return drawn

    summary, *more = head_lines(look, findings)
    is_wrong = any(finding.is_wrong for finding in findings)
    return Group(
        Text(summary, style="bold red" if is_wrong else "bold green"),
        *map(Text, more),
        table(NODE_COLUMNS, node_rows(look, rates)),
        table(QUORUM_COLUMNS, quorum_rows(look)),
        *(Text(line, style="dim") for line in event_rows(events, EVENTS_SHOWN)),
        Text("Ctrl-C ends.", style="dim"),
    )


def _lost(sentence: str, before: ClusterLook | None) -> Group:
    from rich.console import Group
    from rich.text import Text

    old = "" if before is None else " What was shown is old; the next look is tried."
    return Group(Text(f"{sentence}{old}", style="bold red"))
