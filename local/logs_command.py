"""`penstock logs N`: the log of a node, as far as it is, or as it grows."""

from __future__ import annotations

import sys
from collections import deque
from pathlib import Path
from typing import BinaryIO, Final

import click

from ..client import clock
from .cluster_options import attached, folder_option, sentences
from .errors import ClusterError

_POLL_S: Final = 0.1


@click.command()
@click.argument("node_id", metavar="N", type=int)
@click.option("--follow", "-f", is_flag=True, help="Go on with what the node logs from now on, until Ctrl-C.")
@click.option("--lines", "-n", type=click.IntRange(min=0), help="Only the last lines; otherwise all.")
@folder_option
def logs(node_id: int, follow: bool, lines: int | None, folder: Path) -> None:
    """Show the log of node N, running or not, of a cluster that `penstock up` started."""
    with sentences():
        cluster = attached(folder)
        if node_id not in cluster.nodes:
            known = ", ".join(map(str, cluster.nodes))
            raise ClusterError(f"there is no node {node_id} in {folder}; its nodes are {known}.")
        path = cluster.nodes[node_id].log
        try:
            log = path.open("rb")
        except OSError as error:
            raise ClusterError(f"the log of node {node_id} cannot be read: {error.strerror}: {path}") from error
    with log:
        output = sys.stdout.buffer
        for line in log if lines is None else deque(log, maxlen=lines):
            output.write(line)
        output.flush()
        if follow:
            _follow(log, output)


def _follow(log: BinaryIO, output: BinaryIO) -> None:
    try:
        while True:
            grown = log.read()
            if grown:
                output.write(grown)
                output.flush()
            else:
                clock.pause(_POLL_S)
    except KeyboardInterrupt:
        # That is how it ends.
        return
