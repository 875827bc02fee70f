"""`penstock start`: one node, or a node per core, in the foreground, until it is told to stop."""

import gc
import os
import socket
from collections.abc import Mapping
from typing import TextIO

import click

from ...client.cores import count_cores
from ...protocol.errors import ConfigError
from ...storage.disk.files import DiskFiles
from ..configuration.core_collisions import check_distinct
from ..configuration.core_variables import properties_of_core
from ..configuration.node_config import NodeConfig
from ..configuration.penstock_keys import CLUSTER_SCRAM_CREDENTIALS
from ..configuration.properties import load_properties, merge_properties, shown_secrets
from .unused_modules import leave_out


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
@click.option(
    "--per-core",
    is_flag=True,
    help="A node for each core that this process may run on: ${core:BASE} in a value is BASE for the first of them, "
    "BASE + 1 for the second, and so on.",
)
@click.option(
    "--nodes", "node_count", type=click.IntRange(min=1), metavar="N", help="With --per-core: so many nodes instead."
)
@click.pass_context
def start(
    context: click.Context,
    properties: TextIO | None,
    assignments: tuple[str, ...],
    scram: TextIO | None,
    per_core: bool,
    node_count: int | None,
) -> None:
    """Start one node, or one per core, and run until SIGTERM or Ctrl-C.

    PROPERTIES is a server.properties of Apache Kafka; without it the node has all roles, listens on 127.0.0.1:9092 and
    keeps its data in ./penstock-data. PENSTOCK_NODE_ID and the like set properties, too.

    With --per-core the nodes share PROPERTIES, and end together: by SIGTERM, or when one of them ends.
    """
    if node_count is not None and not per_core:
        raise click.UsageError("--nodes is of --per-core: without it one node is started.")
    try:
        told = merge_properties(
            file_text=None if properties is None else properties.read(),
            environment=os.environ,
            assignments=assignments,
        )
        if scram is not None:
            told[CLUSTER_SCRAM_CREDENTIALS] = scram.read()
        configs = _of_cores(told, node_count or count_cores()) if per_core else (_load(told),)
    except ConfigError as error:
        click.echo(f"penstock: {error}", err=True)
        context.exit(2)
    shown = shown_secrets(assignments, configs[0].variables)
    if shown:
        click.echo(
            f"penstock: --set shows {', '.join(shown)} to every user of this machine: put it into PROPERTIES, or name "
            "a variable of a configuration provider.",
            err=True,
        )
    leave_out()
    # Until the node runs: there is no garbage in code that is loaded.
    gc.disable()
    if per_core:
        from .core_nodes import run_all

        context.exit(run_all(configs))
    from .main import run

    context.exit(run(configs[0]))


def _load(properties: Mapping[str, str]) -> NodeConfig:
    return load_properties(properties, files=DiskFiles(), environment=os.environ)


def _of_cores(properties: Mapping[str, str], count: int) -> tuple[NodeConfig, ...]:
    """Raises ConfigError."""
    host_name = socket.gethostname()
    configs = tuple(_load(properties_of_core(properties, core, host_name=host_name)) for core in range(count))
    check_distinct(configs)
    return configs
