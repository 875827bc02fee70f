"""`penstock chaos calibrate`: does what judges Penstock find the bugs that are known?"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

if TYPE_CHECKING:
    from ..mutants.calibration import Caught


@click.command()
@click.option("--only", multiple=True, metavar="NAME", help="Only this bug; may be given several times.")
@click.option("--seeds-max", type=click.IntRange(min=1), default=500, show_default=True, help="Runs for each bug.")
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Bugs looked for at a time.")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object a line instead of a table.")
def calibrate(only: tuple[str, ...], seeds_max: int, jobs: int, is_json: bool) -> None:
    """Put every known bug into simulated nodes, one after the other, and look whether it is found.

    Each has its own directed runs, from seed 0 on, and must break what it is known to break. Where random runs hardly
    find one, a directed story of whole nodes or the unit test that is about it runs instead. Exit status 1 when one
    survives.
    """
    from ..mutants.calibration import calibrate as look_for
    from ..mutants.forms import BUGS

    unknown = sorted(set(only) - BUGS.keys())
    if unknown:
        raise click.UsageError(f"no such bug: {', '.join(unknown)} (there are: {', '.join(sorted(BUGS))})")
    names = [name for name in BUGS if not only or name in only]
    if not is_json:
        click.echo("| mutant | bug | caught by | after runs | as |\n|---|---|---|---|---|")
    with ThreadPoolExecutor(jobs) as pool:
        all_caught = True
        caught_count = 0
        for caught in pool.map(lambda name: look_for(name, seeds_max=seeds_max), names):
            all_caught = all_caught and caught.is_caught
            caught_count += caught.is_caught
            click.echo(json.dumps(asdict(caught)) if is_json else row(caught))
    if not is_json:
        click.echo(f"\n{caught_count} of {len(names)} are caught.")
    if not all_caught:
        raise click.exceptions.Exit(1)


def row(caught: Caught) -> str:
    """One line of the table in docs/testing.md."""
    broken = caught.broken.split(";")[0].replace("|", "/").replace("\n", " ")
    broken = broken if len(broken) <= 90 else f"{broken[:87]}..."
    verdict = broken if caught.is_caught else f"NOT CAUGHT: {broken}"
    count = "" if caught.runs is None else str(caught.runs)
    return f"| `{caught.mutant}` | {caught.bug} | `{caught.by}` | {count} | {verdict} |"
