"""`penstock down`: stop a cluster that `penstock up` started."""

from pathlib import Path

import click

from ..client.terminal import print_json, say
from .cluster_options import attached, folder_option, json_option, sentences


@click.command()
@folder_option
@json_option
def down(folder: Path, as_json: bool) -> None:
    """Stop the cluster that `penstock up` started in this folder. Its data stays.

    Only its own processes are signalled, even when their pids have been given to others since.
    """
    with sentences():
        cluster = attached(folder)
        running = [node.id for node in cluster.nodes.values() if node.is_running]
        cluster.stop()
    if as_json:
        print_json({"stopped": running})
    else:
        say(f"Stopped {len(running)} node{'s' if len(running) > 1 else ''}." if running else "It was not running.")
