"""`penstock simulate`: the whole cluster with clients and faults in virtual time, from a seed."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import click

from .profiles import PROFILES

CHILD: Final = "penstock.chaos.simulation.cluster.child"
# The order of sets of strings, and clients whose compiled parts would look at the machine's clock.
ENVIRONMENT: Final[Mapping[str, str]] = {"PYTHONHASHSEED": "0", "AIOKAFKA_NO_EXTENSIONS": "1"}


def child_command(*options: str) -> Sequence[str]:
    return (sys.executable, "-P", "-m", CHILD, *options)


def child_environment() -> Mapping[str, str]:
    return {**os.environ, **ENVIRONMENT}


_BY_SEED: Final = "[default: by the seed"
_PROFILES_HELP: Final = "Profiles:\n\n\b\n" + "\n".join(f"  {name:14}{one.about}" for name, one in PROFILES.items())


@click.command(epilog=_PROFILES_HELP)
@click.option("--seeds", type=click.IntRange(min=1), default=100, show_default=True, help="How many runs.")
@click.option("--first", type=click.IntRange(min=0), default=0, show_default=True, help="The seed of the first run.")
@click.option("--seed", type=click.IntRange(min=0), help="Only the run of this seed.")
@click.option("--trace", is_flag=True, help="Print everything that happens, with its virtual time.")
@click.option("--nodes", type=click.IntRange(1, 9), help=f"Nodes with both roles {_BY_SEED}: 3 to 5].")
@click.option("--brokers", type=click.IntRange(0, 6), help=f"Broker-only nodes beside them {_BY_SEED}: 0 to 3].")
@click.option("--log-dirs", type=click.IntRange(1, 5), help=f"Log directories of each node {_BY_SEED}: 1 to 3].")
@click.option("--members", type=click.IntRange(0, 9), help=f"Of two consumer groups, one of each protocol {_BY_SEED}].")
@click.option("--transactions/--no-transactions", default=None, help=f"Transactional clients {_BY_SEED}].")
@click.option("--tiers/--no-tiers", default=None, help=f"Tiered storage, with outages {_BY_SEED}].")
@click.option("--compaction/--no-compaction", default=None, help=f"A table, and logs compacted {_BY_SEED}].")
@click.option(
    "--profile", type=click.Choice(sorted(PROFILES)), help=f"Which faults and operations {_BY_SEED}], see below."
)
@click.option("--faults-s", type=float, default=20.0, show_default=True, help="Virtual seconds of faults in each run.")
@click.option("--mutant", metavar="NAME", help="With this known bug in the nodes (see docs/simulation.md).")
@click.option("--until-failure", is_flag=True, help="End with the first run that is not clean.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Runs at the same time.")
def simulate(
    seeds: int,
    first: int,
    seed: int | None,
    trace: bool,
    nodes: int | None,
    brokers: int | None,
    log_dirs: int | None,
    members: int | None,
    transactions: bool | None,
    compaction: bool | None,
    tiers: bool | None,
    profile: str | None,
    faults_s: float,
    mutant: str | None,
    until_failure: bool,
    jobs: int,
) -> None:
    """Run clusters of real nodes, with clients, in virtual time, break what can break, and judge what they promised.

    A run is drawn from its seed alone: the same seed gives the same run, byte by byte. Exit status 1 when a run was not
    clean; the output has the line that replays it. A sweep over all shapes is
    `penstock simulate --seeds 5000 --jobs 2`.
    """
    if importlib.util.find_spec("aiokafka") is None:
        raise click.ClickException("the simulation needs aiokafka as its clients: pip install 'penstock-broker[chaos]'")
    first, seeds = (first, seeds) if seed is None else (seed, 1)
    options: list[object] = ["--first", first, "--seeds", seeds, "--faults-s", faults_s, "--jobs", jobs]
    for name, value in (
        ("--nodes", nodes), ("--brokers", brokers), ("--log-dirs", log_dirs), ("--members", members),
        ("--profile", profile), ("--mutant", mutant),
    ):  # fmt: skip
        options += [] if value is None else [name, value]
    for name, is_wanted in (("transactions", transactions), ("compaction", compaction), ("tiers", tiers)):
        options += [] if is_wanted is None else [f"--{name}" if is_wanted else f"--no-{name}"]
    command = child_command(
        *map(str, options),
        *(["--trace"] if trace else []),
        *(["--until-failure"] if until_failure else []),
    )
    # In place of this interpreter, so that a signal to the command ends the runs.
    os.execve(command[0], list(command), child_environment())
