"""`penstock chaos matrix`: every workload under every mix of faults, run after run, and a table of verdicts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from ...local.errors import ClusterError
from ..faults.kinds import BREAKERS, Breaker

if TYPE_CHECKING:
    from .matrix_row import MatrixRow

_NOT_MADE: Final = "not made"


@click.command("matrix")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("chaos-matrix"), show_default=True
)
@click.option("--time", "seconds", type=click.FloatRange(min=1), default=120.0, show_default=True, metavar="S")
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of the first run; then on by 1."
)
@click.option("--only", default="", metavar="TEXT", help="Only runs with this in their names, as queue- or -5.")
@click.option("--cluster", type=click.Choice(["penstock", "apache-kafka"]), default="penstock", show_default=True)
@click.option("--links", type=click.Choice(BREAKERS), default="proxies", show_default=True, help="As of `run`.")
@click.option("--keep", is_flag=True, help="Keep the nodes' data of runs in which nothing was found, too.")
def matrix(out: Path, seconds: float, seed: int, only: str, cluster: str, links: Breaker, keep: bool) -> None:
    """Make every run of the matrix that is not in the folder yet, and write results.md.

    Interrupted, it goes on where it was when it is called again; results.md has every run of the folder.

    Exit status 3: a run found anomalies; else 1: one could not be made; else 4: one showed nothing; 2: wrong usage.
    """
    from ..checkers.verdict_text import EXIT_CODES
    from ..histories.run_folder import PENSTOCK, RunFolder
    from .chaos_run import make_run
    from .matrix import cells
    from .matrix_row import row_of, table
    from .run_cluster import lacking_kinds
    from .termination import ended_in_order

    if links != "proxies" and cluster != PENSTOCK:
        raise click.UsageError("only links of a cluster of Penstock are broken: no --links")
    try:
        every = cells(lacking_kinds(cluster, links))
    except ClusterError as error:
        raise click.ClickException(str(error)) from error
    if not any(only in cell.name for cell in every):
        raise click.UsageError(
            f"no run of the matrix has {only!r} in its name, as {every[0].name} has {every[0].mix!r}"
        )
    rows: dict[str, MatrixRow] = {}
    verdicts: set[str] = set()
    for number, cell in enumerate(every):
        folder = RunFolder(out / cell.name)
        is_asked = only in cell.name
        if is_asked and not folder.verdict.exists():
            shutil.rmtree(folder.path, ignore_errors=True)
            record = cell.record(seed=seed + number, seconds=seconds, cluster=cluster, links=links)
            click.echo(f"{cell.name}: {record.replay}", err=True)
            try:
                with ended_in_order():
                    make_run(record, folder, say=lambda _sentence: None)
            except ClusterError as error:
                click.secho(f"{cell.name} could not be made: {error}", fg="red", err=True)
                verdicts.add(_NOT_MADE)
                continue
        if not folder.verdict.exists():
            continue
        row = rows[cell.name] = row_of(folder)
        if is_asked:
            verdicts.add(row.verdict)
            click.echo(f"  {row.verdict}: {row.found or 'nothing found'}", err=True)
            if row.verdict == "valid" and not keep:
                shutil.rmtree(folder.nodes, ignore_errors=True)
        (out / "results.md").write_text(table(rows.values()))
        (out / "results.jsonl").write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in rows.values()))
    click.echo(table(row for name, row in rows.items() if only in name))
    worst = next((one for one in ("anomalies", _NOT_MADE, "invalid-run") if one in verdicts), "valid")
    raise click.exceptions.Exit(1 if worst == _NOT_MADE else EXIT_CODES[worst])
