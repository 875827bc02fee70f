"""`penstock start`: one node, in the foreground, until it is told to stop."""

import os
import sys
from typing import TextIO

import click

from ...protocol.errors import ConfigError
from ...storage.disk.files import DiskFiles
from ..configuration.penstock_keys import CLUSTER_SCRAM_CREDENTIALS
from ..configuration.properties import load_properties, merge_properties, shown_secrets


@click.command()
@click.argument("properties", type=click.File(encoding="utf-8"), required=False)
@click.option(
    "--set",
    "assignments",
    metavar="KEY=VALUE",
    multiple=True,
    help="A broker property by Kafka's name, over the file and the environment; may be repeated.",
)
@click.option(
    "--add-scram",
    "scram",
    type=click.File(encoding="utf-8"),
    metavar="FILE",
    help="SCRAM credentials of a new cluster, each SCRAM-SHA-256=[name=alice,password=…]; - is the standard input.",
)
@click.pass_context
def start(
    context: click.Context, properties: TextIO | None, assignments: tuple[str, ...], scram: TextIO | None
) -> None:
    """Start one node and run it until SIGTERM or Ctrl-C.

    PROPERTIES is a server.properties of Apache Kafka; without it the node has all roles, listens on 127.0.0.1:9092 and
    keeps its data in ./penstock-data. PENSTOCK_NODE_ID and the like set properties, too.
    """
    try:
        told = merge_properties(
            file_text=None if properties is None else properties.read(),
            environment=os.environ,
            assignments=assignments,
        )
        if scram is not None:
            told[CLUSTER_SCRAM_CREDENTIALS] = scram.read()
        config = load_properties(
            told,
            files=DiskFiles(),
            environment=os.environ,
        )
    except ConfigError as error:
        click.echo(f"penstock: {error}", err=True)
        context.exit(2)
    shown = shown_secrets(assignments, config.variables)
    if shown:
        click.echo(
            f"penstock: --set shows {', '.join(shown)} to every user of this machine: put it into PROPERTIES, or name "
            "a variable of a configuration provider.",
            err=True,
        )
    # Where hypothesis is installed, which is where this is developed, kio imports it for the sake of its own users'
    # tests: a third of a second and 15 MiB that a node has no use for.
    sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]
    from .main import run

    context.exit(run(config))
