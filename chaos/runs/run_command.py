"""`penstock chaos run`: a workload on a cluster while it is broken, and the verdict."""

from __future__ import annotations

import json
import platform
import secrets
from datetime import UTC, datetime
from pathlib import Path

import click
from click.core import ParameterSource

from ...client import clock
from ...local.errors import ClusterError
from ..faults.kinds import BREAKERS, Breaker


@click.command("run")
@click.option("--workload", required=True, metavar="NAME", help="What the clients do: `penstock chaos list`.")
@click.option("--nemesis", default="", metavar="FAULT,…", help="What goes wrong, as kill,partition:leaders.")
@click.option("--schedule", type=click.Path(path_type=Path, dir_okay=False), help="A file of faults and their times.")
@click.option("--time", "seconds", type=click.FloatRange(min=1), default=60.0, show_default=True, metavar="S")
@click.option("--nodes", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), help="Of faults and clients; drawn and printed without it.")
@click.option("--cluster", type=click.Choice(["penstock", "apache-kafka"]), default="penstock", show_default=True)
@click.option(
    "--links",
    type=click.Choice(BREAKERS),
    help="What breaks links of Penstock: proxies (by default), or the kernel, with each node and client in a network "
    "namespace of its own (as root, with nft).",
)
@click.option(
    "--bootstrap",
    metavar="HOST:PORT,…",
    help="A cluster that is there already; it is not broken, and has topics chaos-… then.",
)
@click.option("--set", "properties", multiple=True, metavar="KEY=VALUE", help="A broker property for all nodes.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="The folder of the run, a new one.")
@click.option("--json", "is_json", is_flag=True, help="Print the verdict as JSON.")
def run(
    workload: str,
    nemesis: str,
    schedule: Path | None,
    seconds: float,
    nodes: int,
    seed: int | None,
    cluster: str,
    links: Breaker | None,
    bootstrap: str | None,
    properties: tuple[str, ...],
    out: Path | None,
    is_json: bool,
) -> None:
    """Let clients use a cluster while it is broken, heal it, and judge what they saw.

    Exit status 0: nothing was found; 3: anomalies; 4: the run shows nothing, as a fault did not take hold; 1: the run
    could not be made; 2: wrong usage.
    """
    from ..checkers.verdict_text import EXIT_CODES, told
    from ..histories.run_folder import PENSTOCK, RunFolder, RunRecord
    from .chaos_run import make_run
    from .termination import ended_in_order

    if schedule is not None and nemesis:
        raise click.UsageError("faults are drawn (--nemesis) or written in a file (--schedule), not both")
    if schedule is not None and not _is_default("seconds"):
        raise click.UsageError("a schedule from a file has its own length, length_s: --schedule goes without --time")
    if bootstrap is not None and (nemesis or schedule is not None):
        raise click.UsageError("a cluster that others started is not broken: --bootstrap goes without faults")
    if bootstrap is not None and properties:
        raise click.UsageError(
            "a cluster that others started has properties of its own: --bootstrap goes without --set"
        )
    if links is not None and (bootstrap is not None or cluster != PENSTOCK):
        raise click.UsageError("only links of a cluster of Penstock that the run starts are broken: no --links")
    record = RunRecord(
        workload=workload,
        nemeses=tuple(name for name in nemesis.split(",") if name),
        seconds=seconds,
        nodes=nodes,
        seed=secrets.randbelow(1 << 31) if seed is None else seed,
        cluster="bootstrap" if bootstrap is not None else cluster,
        version="",
        links=links or "proxies",
        properties=_settings(properties),
        bootstrap=bootstrap,
        schedule=None if schedule is None else str(schedule),
        began=datetime.fromtimestamp(clock.now_ms() / 1000, UTC).isoformat(timespec="seconds"),
        machine=f"{platform.machine()}, {platform.system()} {platform.release()}, Python {platform.python_version()}",
    )
    folder = RunFolder(out or Path(f"chaos-{workload}-{record.seed}"))
    try:
        with ended_in_order():
            verdict = make_run(record, folder, say=lambda sentence: click.echo(sentence, err=True))
    except ClusterError as error:
        raise click.ClickException(str(error)) from error
    if is_json:
        click.echo(json.dumps({"folder": str(folder.path), "verdict": verdict.valid, "counts": dict(verdict.counts)}))
    else:
        click.echo(f"{told(verdict)}\n\nReport: {folder.report}\nAgain:  {record.replay}")
    raise click.exceptions.Exit(EXIT_CODES[verdict.valid])


def _is_default(parameter: str) -> bool:
    return click.get_current_context().get_parameter_source(parameter) == ParameterSource.DEFAULT


def _settings(pairs: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise click.UsageError(f"--set takes KEY=VALUE, not {pair!r}")
        settings[key] = value
    return settings
