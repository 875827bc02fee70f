"""`penstock pipeline demo`: flights and weather through `windows`, `join` and `lake`, compared with pandas."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import click

from ...client import clock
from ...client.addresses import parse_addresses
from ...client.bootstrap import Bootstrap
from ...client.terminal import print_table
from ...client.topics import Topics
from ...client.units import format_count, format_seconds
from ...local.cluster import LocalCluster
from ...local.cluster_options import sentences
from ...local.foreground import stop_signals_interrupt
from ..demo.dataset import DatasetMissingError, find_tables
from ..demo.sources import SOURCES
from . import jobs
from .sending import send

if TYPE_CHECKING:
    from .expected import Frame

_NODE_COUNT: Final = 3
_USED: Final = ("flights", "weather")
_RESULT_PARTITIONS: Final = 3
_FOREVER: Final = {"retention.ms": "-1"}
_OUTPUT: Final = "penstock-pipeline-demo"
_CHART: Final = "delays.png"
_LAKE: Final = "lake"


@dataclass(slots=True)
class _Parts:
    """How long each part took."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        started_s = clock.monotonic_s()
        yield
        self.seconds[name] = clock.monotonic_s() - started_s
        click.echo(f"{click.style('✓', fg='green')} {name} in {format_seconds(self.seconds[name])}")


@click.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=_OUTPUT,
    show_default=True,
    help="Where the plot and the table go; what an earlier demo left there is replaced.",
)
def demo(output: Path) -> None:
    """Stream a year of flights and weather through windows, join and lake, and compare the results with pandas.

    Starts three nodes, ends by itself: 0 when all results are as pandas has them, 1 otherwise.
    """
    try:
        tables = find_tables()
    except DatasetMissingError as error:
        raise click.ClickException(str(error)) from error
    try:
        import matplotlib as _matplotlib  # noqa: F401
        import pandas as _pandas  # noqa: F401
    except ImportError as error:
        raise click.ClickException(
            f"The demo needs {error.name}: `pip install 'penstock-broker[pipeline]' matplotlib` installs it."
        ) from error
    output.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(output / _LAKE, ignore_errors=True)
    parts = _Parts()
    with sentences(), stop_signals_interrupt(), TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with parts.part("jars of Spark's Kafka connector"):
            jobs.fetch_jars()
        cluster = LocalCluster(folder / "cluster", node_count=_NODE_COUNT)
        with parts.part(f"{_NODE_COUNT} nodes up"):
            cluster.start()
        try:
            findings = _show(cluster.bootstrap, tables, folder, output, parts)
        finally:
            cluster.stop()
    click.echo()
    print_table(("part", "seconds"), [(name, f"{seconds:.1f}") for name, seconds in parts.seconds.items()])
    if findings:
        raise click.ClickException("The results are not those of pandas.\n" + "\n".join(findings))


def _show(addresses: str, tables: Path, folder: Path, output: Path, parts: _Parts) -> list[str]:
    """What differs from pandas. Raises ClickException when a job fails."""
    # With pandas and matplotlib, which take a second to load.
    from . import chart, comparison, expected, results

    bootstrap = Bootstrap(addresses=parse_addresses(addresses), properties={})
    with bootstrap.sentences():
        for source in SOURCES:
            if source.topic in _USED:
                _create(bootstrap, source.topic, source.partition_count, source.configs)
                with parts.part(f"{source.topic} sent, {format_count(source.row_count)} records"):
                    send(bootstrap, source, tables)
        _create(bootstrap, jobs.DEPARTURES, _RESULT_PARTITIONS, {**_FOREVER, "cleanup.policy": "compact"})
        _create(bootstrap, jobs.WITH_WEATHER, _RESULT_PARTITIONS, _FOREVER)
        lake = jobs.LAKE.format(location=(output / _LAKE).resolve())
        for name, options in (("windows", jobs.WINDOWS), ("join", jobs.JOIN), ("lake", lake)):
            with parts.part(name):
                jobs.run_job(name, options, bootstrap=addresses, folder=folder)
        with parts.part("results read"):
            departures, update_count = results.departures_by_hour(bootstrap)
            weather = results.flights_with_weather(bootstrap)
            rows = results.lake(output / _LAKE)
    with parts.part("compared with pandas"):
        flights = expected.flights(tables)
        findings = [
            *comparison.compare_departures(departures, expected.departures_by_hour(flights)),
            *comparison.compare_weather(weather, expected.flights_with_weather(flights, tables)),
            *comparison.compare_lake(rows, flights),
        ]
    with parts.part(f"plot in {output / _CHART}"):
        chart.draw(departures, weather, output / _CHART)
    click.echo()
    _print_airports(departures, weather)
    click.echo()
    if not findings:
        click.echo(
            f"Equal to pandas: {format_count(len(departures))} windows (the last of {format_count(update_count)}"
            f" records), {format_count(len(weather))} flights with weather, {format_count(len(rows))} rows in the lake."
        )
    return findings


def _print_airports(departures: Frame, weather: Frame) -> None:
    rows = departures.reset_index()
    rows["total"] = rows["mean_delay"] * rows["departures"]
    sums = rows.groupby("origin")[["departures", "total"]].sum()
    worst = rows[rows["departures"] >= 10].sort_values("mean_delay").groupby("origin").tail(1).set_index("origin")
    fog = weather[weather["visib"] < 1].groupby("origin")["dep_delay"].mean()
    print_table(
        ("airport", "departures", "mean delay (min)", "worst hour (UTC)", "its mean delay", "mean delay in fog"),
        [
            (
                origin,
                format_count(int(one["departures"])),
                f"{one['total'] / one['departures']:.2f}",
                f"{worst.loc[origin, 'time']:%Y-%m-%d %H:%M}",
                f"{worst.loc[origin, 'mean_delay']:.0f}",
                f"{fog[origin]:.1f}",
            )
            for origin, one in sums.iterrows()
        ],
    )


def _create(bootstrap: Bootstrap, topic: str, partition_count: int, configs: Mapping[str, str]) -> None:
    for error in Topics(bootstrap).create([topic], partition_count=partition_count, configs=dict(configs)).values():
        if error is not None:
            raise click.ClickException(f"Topic {topic} was not created: {bootstrap.sentence(error)}")
