"""`penstock chaos report`: the page of a run."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--open", "is_opened", is_flag=True, help="Open the page in the browser.")
def report(folder: Path, is_opened: bool) -> None:
    """Write report.html, one page that needs nothing else, into the FOLDER of a run.

    The folder has history.jsonl; and cluster.jsonl, verdict.json and run.json, as far as they were written.
    """
    from ...local.errors import ClusterError
    from ..histories.run_folder import RunFolder
    from ..report.page import page
    from ..report.recorded_run import read_run

    try:
        run = read_run(RunFolder(folder))
    except ClusterError as error:
        raise click.ClickException(f"{error}.") from error
    path = RunFolder(folder).report
    path.write_text(page(run), encoding="utf-8")
    click.echo(f"{path}")
    if is_opened:
        webbrowser.open(path.resolve().as_uri())
