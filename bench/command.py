"""`penstock bench`: the speed of a cluster, or of Penstock and Apache Kafka side by side on this machine."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click
from msgspec import to_builtins

from ..client import clock
from ..client.addresses import parse_addresses
from ..client.bootstrap import DEFAULT_BOOTSTRAP, DEFAULT_TIMEOUT_S, ENVIRONMENT_VARIABLE, Bootstrap
from ..client.terminal import print_json, print_table, say
from ..client.units import format_seconds
from ..local.apache_kafka.jars import JarsUnavailableError, install
from ..local.cluster_options import sentences
from ..local.foreground import stop_signals_interrupt
from .cells import QUIET_MINUTES, Cell, cells, chosen, warm_up
from .local_targets import kafka, penstock
from .plot import draw
from .report import columns, fields, markdown, preamble, rows, summary
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
@click.option("--alone", is_flag=True, help="Start only Penstock here.")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--warm-rounds",
    type=click.IntRange(min=0),
    help="Rounds before those, which do not count, of cells that start no nodes: a JVM compiles what is called often. "
    "[default: 1, with --quick 0]",
)
@click.option(
    "--only",
    "patterns",
    metavar="CELL",
    multiple=True,
    help="Only cells of that name, or below it; may be repeated. See --list.",
)
@click.option("--quick", "is_quick", is_flag=True, help="A fourth of each load.")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    default=QUIET_MINUTES,
    show_default=True,
    help="How long quorum/idle and quorum/busy look on.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder for results.json, results.md and, side by side, results.svg.",
)
@click.option(
    "--from",
    "earlier",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A results.json: print and draw it again, measure nothing.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON object.")
@click.option("--list", "is_listing", is_flag=True, help="Print the names of the cells and measure nothing.")
def bench(
    bootstrap: str,
    pids: tuple[int, ...],
    side_by_side: bool,
    alone: bool,
    rounds: int,
    warm_rounds: int | None,
    patterns: tuple[str, ...],
    is_quick: bool,
    minutes: float,
    output: Path | None,
    as_json: bool,
    earlier: Path | None,
    is_listing: bool,
) -> None:
    """Measure a cluster that speaks the Kafka protocol.

    Topics of its own are made and deleted; nothing else is touched. The client runs here and takes its part of the
    machine.
    """
    wanted = chosen(cells(is_quick=is_quick, minutes=minutes), patterns)
    if is_listing:
        print_table(("cell", "what"), ((cell.name, cell.title) for cell in wanted))
        return
    if earlier is not None:
        results = _read(earlier)
    else:
        is_started = side_by_side or alone
        wanted = tuple(cell for cell in wanted if is_started or not (cell.needs_node or cell.is_replicated))
        if not wanted:
            raise click.UsageError(f"There is nothing to measure as {', '.join(patterns)}; --list prints all names.")
        _allow_many_connections()
        with ExitStack() as stack:
            stack.enter_context(stop_signals_interrupt())
            stack.enter_context(sentences())
            if is_started:
                targets = stack.enter_context(_started(wanted, is_alone=not side_by_side))
            else:
                targets = stack.enter_context(_running(bootstrap, pids))
            if warm_rounds is None:
                warm_rounds = 0 if is_quick else 1
            results = _measure(targets, wanted, rounds, warm_rounds, is_quick)
    if as_json:
        print_json(to_builtins(results))
    else:
        _print(results)
    if output is not None:
        _write(results, output)
    last_line = summary(results)
    if last_line is not None:
        say(last_line)
    if results.errors:
        raise click.ClickException(f"{len(results.errors)} of {len(results.observations)} measurements failed.")


def _measure(
    targets: Sequence[Target], wanted: Sequence[Cell], rounds: int, warm_rounds: int, is_quick: bool
) -> Results:
    start_s = clock.monotonic_s()
    started = datetime.fromtimestamp(clock.now_ms() / 1000, UTC).isoformat(timespec="seconds")
    for target in targets:
        for running in (target, target.replicated):
            if running is not None and running.bootstrap:
                say(f"warming up {target.name} {target.version}, replicas: {running.replicas}")
                warm_up(running, is_quick=is_quick)
    lasting = [cell for cell in wanted if not cell.starts_nodes]
    for number in range(warm_rounds if lasting else 0):
        say(f"warming up with all loads, {number + 1} of {warm_rounds}")
        measure(targets, lasting, 1, lambda _observation: None)
    measuring_s = clock.monotonic_s()

    def begin(cell: Cell, target: Target, done: int, total: int) -> None:
        left = _time_left(clock.monotonic_s() - measuring_s, done, total)
        say(f"measuring {done + 1} of {total}{left}: {cell.name}, {target.name}")

    observations = measure(targets, wanted, rounds, _tell, begin)
    return Results(
        started=started,
        seconds=clock.monotonic_s() - start_s,
        is_quick=is_quick,
        rounds=rounds,
        warm_rounds=warm_rounds,
        machine=_machine(),
        targets={
            target.name: {"version": target.version, "bootstrap": target.bootstrap, "settings": dict(target.settings)}
            for target in targets
        },
        cells={cell.name: cell.title for cell in wanted},
        observations=observations,
    )


@contextmanager
def _running(bootstrap: str, pids: Sequence[int]) -> Iterator[tuple[Target, ...]]:
    try:
        asked = Bootstrap(addresses=parse_addresses(bootstrap), timeout_s=DEFAULT_TIMEOUT_S, properties={})
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    asked.check_reachable()
    with asked.sentences():
        yield (Target(name=bootstrap, bootstrap=bootstrap, pids=tuple(pids)),)


@contextmanager
def _started(wanted: Sequence[Cell], *, is_alone: bool) -> Iterator[tuple[Target, ...]]:
    """Nodes of this machine, which run only when something is measured that they are needed for."""
    try:
        brokers = (penstock(),) if is_alone else (penstock(), kafka(install()))
    except JarsUnavailableError as error:
        raise click.ClickException(str(error)) from error
    is_cluster_needed = any(cell.is_replicated for cell in wanted)
    is_node_needed = not all(cell.is_replicated or cell.needs_cluster for cell in wanted)
    with ExitStack() as stack:
        yield tuple(
            stack.enter_context(broker.target(is_node_needed=is_node_needed, is_cluster_needed=is_cluster_needed))
            for broker in brokers
        )


def _time_left(elapsed_s: float, done: int, total: int) -> str:
    """An estimate by the measurements that are done, such as `, about 3 min 5 s left`."""
    if not done:
        return ""
    return f", about {format_seconds(max(1, round(elapsed_s / done * (total - done))))} left"


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


def _read(path: Path) -> Results:
    try:
        return Results.from_json(path.read_text())
    except ValueError as error:
        raise click.ClickException(f"{path}: {error}") from error


def _write(results: Results, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(results.to_json())
    (folder / "results.md").write_text(markdown(results))
    names = ["results.json", "results.md"]
    if len(results.targets) > 1:
        (folder / "results.svg").write_text(draw(results))
        names.append("results.svg")
    say(f"Written to {folder}: {', '.join(names)}")


def _machine() -> dict[str, str]:
    described = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    models = [line.partition(":")[2].strip() for line in described.splitlines() if line.startswith("model name")]
    revision = _revision()
    return {
        **({"revision": revision} if revision else {}),
        "processor": f"{models[0] if models else platform.machine()} ({os.cpu_count()} cores)",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "load at the end": f"{load_average():.1f}",
    }


def _revision() -> str | None:
    """The commit that is measured; None where the package is not in a clone, or there is no git."""
    folder = Path(__file__).resolve().parents[1]
    try:
        asked = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
        described = subprocess.run(asked, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return described.stdout.strip() or None if (folder / ".git").exists() else None


def _allow_many_connections() -> None:
    """This program and the nodes it starts open thousands of files."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
