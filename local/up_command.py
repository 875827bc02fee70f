"""`penstock up`: a cluster on this machine, in the foreground or left running."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from ..client.assignments import parse_assignments
from ..client.client_properties import is_secret
from ..client.cores import count_cores
from ..client.terminal import print_json, print_table, say
from .cluster import LocalCluster, decided_keys
from .cluster_options import folder_option, json_option, sentences
from .errors import ClusterError, PortInUseError
from .foreground import look_after, stop_signals_interrupt, stop_signals_request
from .local_node import variable_of_property
from .preloaded_nodes import PreloadedNodes

DEFAULT_PORT: Final = 9092
AUTO: Final = "auto"


def _node_count(context: click.Context, parameter: click.Parameter, value: str) -> int:
    return count_cores() if value == AUTO else int(click.IntRange(min=1)(value, parameter, context))


@click.command()
@click.option(
    "--nodes",
    "node_count",
    metavar=f"N|{AUTO}",
    callback=_node_count,
    default="3",
    show_default=True,
    help=f"How many nodes; {AUTO} is one for each core that this process may run on.",
)
@folder_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port of the first node; the others follow. 0 takes free ports.",
)
@click.option(
    "--set",
    "properties",
    metavar="KEY=VALUE",
    multiple=True,
    callback=parse_assignments,
    help="A broker property by Kafka's name, for all nodes; may be repeated.",
)
@click.option("--detach", is_flag=True, help="Return once the cluster is ready; `penstock down` stops it.")
@json_option
@click.pass_obj
def up(
    preloaded: PreloadedNodes | None,
    node_count: int,
    folder: Path,
    port: int,
    properties: Mapping[str, str],
    detach: bool,
    as_json: bool,
) -> None:
    """Start a cluster on this machine and wait until clients can use it.

    Without --detach it runs until Ctrl-C. Its data stays in the folder and is there again the next time.
    """
    shown = [key for key, value in properties.items() if is_secret(key) and "${" not in value]
    if shown:
        say(f"--set shows {', '.join(shown)} to every user of this machine, who can read command lines.")
    with sentences(), stop_signals_interrupt():
        _check_environment(node_count)
        cluster = LocalCluster(
            folder,
            node_count=node_count,
            first_port=port,
            properties=properties,
            environment=os.environ,
            preloaded=preloaded,
        )
        try:
            cluster.start()
        except PortInUseError as error:
            raise ClusterError(f"{error}; --port takes others, --port 0 any that are free.") from error
        try:
            with stop_signals_request() as request:
                if as_json:
                    print_json(cluster.description())
                else:
                    _show(cluster)
                    say(_farewell(folder, detach=detach))
                if not detach:
                    look_after(cluster, request)
        except BaseException:
            # The address was not printed, or the user wants it to end at once.
            cluster.kill()
            raise


def _check_environment(node_count: int) -> None:
    """Nodes take variables for properties. Raises ClusterError."""
    for key in sorted(decided_keys(node_count)):
        name = variable_of_property(key)
        if name in os.environ:
            raise ClusterError(f"{name} is set, and {key} is decided by the local cluster for each node")


def _show(cluster: LocalCluster) -> None:
    say(f"Penstock is up. Bootstrap address: {cluster.bootstrap}")
    print_table(
        ("node", "pid", "address", "admin", "data"),
        (
            (node.id, node.process and node.process.pid, node.address, node.admin, node.data)
            for node in cluster.nodes.values()
        ),
    )


def _farewell(folder: Path, *, detach: bool) -> str:
    return f"`penstock down --data {folder}` stops it." if detach else "Ctrl-C stops it."
