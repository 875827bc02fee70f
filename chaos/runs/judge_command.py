"""`penstock chaos judge`: what does a history show?"""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("history", type=click.Path(exists=True, path_type=Path))
@click.option("--workload", metavar="NAME", help="Judge it as a history of this workload, whatever its header says.")
@click.option(
    "--edn",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it to this file for Jepsen's own checkers, too.",
)
@click.option("--json", "is_json", is_flag=True, help="Print the whole verdict as JSON.")
def judge(history: Path, workload: str | None, edn: Path | None, is_json: bool) -> None:
    """Judge HISTORY, a file of events or the folder of a run, which may come from anywhere.

    A folder that has run.json is judged as the run was: by the faults of its schedule.json and what they allow, and by
    what its end.json has seen. A file has none of these, so that a fault that never occurred is not missed in it.

    Exit status 0: valid; 3: anomalies; 4: the run shows nothing, as a fault of it never took hold; 1: the history
    cannot be judged; 2: wrong usage.
    """
    import msgspec

    from ...local.errors import ClusterError
    from ..checkers.catalogue import checkers_of
    from ..checkers.judge import judge as judge_history
    from ..checkers.verdict_text import EXIT_CODES, told
    from ..histories.edn import write_edn
    from ..histories.history_file import open_history
    from ..histories.operation import History
    from ..histories.run_folder import RunFolder
    from .run_verdict import judge_run

    folder = RunFolder(history)
    try:
        opened = open_history(folder.found_history() if history.is_dir() else history)
        if folder.run.exists():
            verdict = judge_run(folder, workload=workload)
        else:
            header = msgspec.structs.replace(opened.header, workload=workload or opened.header.workload)
            verdict = judge_history(History(header, opened.operations), checkers_of(header))
        if edn is not None:
            write_edn(edn, opened.operations)
    except (ClusterError, LookupError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(msgspec.json.encode(verdict).decode() if is_json else told(verdict))
    raise click.exceptions.Exit(EXIT_CODES[verdict.valid])
