"""`penstock bench`: the speed of a cluster, or of Penstock and Apache Kafka side by side on this machine."""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from ..client import clock
from ..client.bootstrap import DEFAULT_BOOTSTRAP, ENVIRONMENT_VARIABLE
from ..client.terminal import print_json, print_table, say
from .anchor.jars import JarsUnavailableError, install
from .cells import cells, chosen, warm_up
from .local_targets import kafka, penstock
from .report import columns, fields, markdown, preamble, rows
from .results import Observation, Results
from .rounds import measure
from .target import Target
from .usage import load_average


@click.command()
@click.option(
    "--bootstrap",
    "-b",
    metavar="HOST:PORT,…",
    envvar=ENVIRONMENT_VARIABLE,
    default=DEFAULT_BOOTSTRAP,
    show_default=True,
    show_envvar=True,
    help="The cluster to measure. Its plaintext listener is used.",
)
@click.option(
    "--pid", "pids", type=int, multiple=True, help="A broker's process, if it runs here: its CPU and memory are told."
)
@click.option("--side-by-side", is_flag=True, help="Start Penstock and Apache Kafka here and compare them, instead.")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--only",
    "patterns",
    metavar="CELL",
    multiple=True,
    help="Only cells of that name, or below it; may be repeated. See --list.",
)
@click.option("--quick", "is_quick", is_flag=True, help="A fourth of each load.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder for results.json and results.md.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON object.")
@click.option("--list", "is_listing", is_flag=True, help="Print the names of the cells and measure nothing.")
def bench(
    bootstrap: str,
    pids: tuple[int, ...],
    side_by_side: bool,
    rounds: int,
    patterns: tuple[str, ...],
    is_quick: bool,
    output: Path | None,
    as_json: bool,
    is_listing: bool,
) -> None:
    """Measure a cluster that speaks the Kafka protocol.

    Topics of its own are made and deleted; nothing else is touched. The client runs here and takes its part of the
    machine.
    """
    wanted = chosen(cells(is_quick=is_quick), patterns)
    if is_listing:
        print_table(("cell", "what"), ((cell.name, cell.title) for cell in wanted))
        return
    if not wanted:
        raise click.UsageError(f"There is no cell {', '.join(patterns)}; --list prints them.")
    _allow_many_connections()
    start_s = clock.monotonic_s()
    started = datetime.fromtimestamp(clock.now_ms() / 1000, UTC).isoformat(timespec="seconds")
    with _targets(bootstrap, pids, side_by_side) as targets:
        for target in targets:
            say(f"{target.name} {target.version}: {target.bootstrap}, warming up")
            warm_up(target, is_quick=is_quick)
        observations = measure(targets, wanted, rounds, _tell)
        results = Results(
            started=started,
            seconds=clock.monotonic_s() - start_s,
            is_quick=is_quick,
            rounds=rounds,
            machine=_machine(),
            targets={
                target.name: {
                    "version": target.version,
                    "bootstrap": target.bootstrap,
                    "settings": dict(target.settings),
                }
                for target in targets
            },
            cells={cell.name: cell.title for cell in wanted},
            observations=observations,
        )
    if as_json:
        print_json(asdict(results))
    else:
        _print(results)
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        (output / "results.json").write_text(results.to_json())
        (output / "results.md").write_text(markdown(results))
        say(f"Written: {output}/results.json, results.md")
    if results.errors:
        raise click.ClickException(f"{len(results.errors)} of {len(observations)} measurements failed.")


@contextmanager
def _targets(bootstrap: str, pids: Sequence[int], side_by_side: bool) -> Iterator[tuple[Target, ...]]:
    if not side_by_side:
        yield (Target(name=bootstrap, bootstrap=bootstrap, pids=tuple(pids)),)
        return
    try:
        brokers = (penstock(), kafka(install()))
    except JarsUnavailableError as error:
        raise click.ClickException(str(error)) from error
    with ExitStack() as stack:
        yield tuple(stack.enter_context(broker.running()) for broker in brokers)


def _tell(observation: Observation) -> None:
    if observation.error is not None:
        told = observation.error
    else:
        told = "  ".join(f"{name}={value:.4g}" for name, value in observation.values.items() if value is not None)
    say(f"{observation.round + 1}  {observation.cell:24} {observation.target:13} {told}")


def _print(results: Results) -> None:
    for line in preamble(results):
        say(line)
    last = None
    table = []
    for row in rows(results):
        table.append((row.cell if row.cell != last else "", row.measure, *fields(results, row)))
        last = row.cell
    print_table(("cell", "measure", *columns(results)), table)


def _machine() -> dict[str, str]:
    models = (
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        )
        if Path("/proc/cpuinfo").exists()
        else iter(())
    )
    return {
        "processor": f"{next(models, platform.machine())} ({os.cpu_count()} cores)",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "load at the end": f"{load_average():.1f}",
    }


def _allow_many_connections() -> None:
    """This program and the nodes it starts open thousands of files."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
