"""`penstock node …`: single nodes of a cluster that `penstock up` started, in the foreground or detached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from ..client.terminal import print_json, print_table, say
from .cluster import START_TIMEOUT_S, LocalCluster
from .cluster_options import attached, folder_option, json_option, sentences
from .errors import ClusterError
from .local_node import LocalNode
from .readiness import wait_ready

_ids_argument = click.argument("node_ids", metavar="N…", type=int, nargs=-1, required=True)
_LOOK_AGAIN: Final = "`penstock node list` shows all of them"


@click.group()
def node() -> None:
    """List, start, stop, kill, pause and resume nodes of a cluster of `up`."""


@node.command("list")
@folder_option
@json_option
def list_(folder: Path, as_json: bool) -> None:
    """List the nodes, and whether they run."""
    with sentences():
        cluster = attached(folder)
    nodes = cluster.nodes.values()
    if as_json:
        print_json({"nodes": [_described(one) for one in nodes]})
        return
    print_table(
        ("node", "state", "pid", "address", "data"),
        ((one.id, one.state, _pid(one), one.address, one.data) for one in nodes),
    )


@node.command()
@_ids_argument
@folder_option
@json_option
def start(node_ids: tuple[int, ...], folder: Path, as_json: bool) -> None:
    """Start nodes that were stopped or killed, with the properties and ports that they had, and wait for them."""
    with _nodes_of(folder, node_ids) as (cluster, nodes):
        for one in nodes:
            cluster.begin_start(one.id)
        missing = cluster.missing_voters()
        if not missing:
            wait_ready(nodes, timeout_s=START_TIMEOUT_S)
    if not as_json and missing:
        waited_for = " or ".join(map(str, missing))
        say(f"Started {_named(nodes)}. There is no quorum yet: start node {waited_for} as well.")
    _report(nodes, f"Started {_named(nodes)}.", as_json, silent=bool(missing))


@node.command()
@_ids_argument
@folder_option
@json_option
def stop(node_ids: tuple[int, ...], folder: Path, as_json: bool) -> None:
    """Stop nodes in their own order: they hand over what they lead first."""
    with _nodes_of(folder, node_ids) as (cluster, nodes):
        _check_running(nodes)
        for one in nodes:
            cluster.stop_node(one.id)
    _report(nodes, f"Stopped {_named(nodes)}.", as_json)


@node.command()
@_ids_argument
@folder_option
@json_option
def kill(node_ids: tuple[int, ...], folder: Path, as_json: bool) -> None:
    """Kill nodes at once (SIGKILL), as a crash does."""
    with _nodes_of(folder, node_ids) as (cluster, nodes):
        _check_running(nodes)
        for one in nodes:
            cluster.kill_node(one.id)
    _report(nodes, f"Killed {_named(nodes)}.", as_json)


@node.command()
@_ids_argument
@folder_option
@json_option
def pause(node_ids: tuple[int, ...], folder: Path, as_json: bool) -> None:
    """Let nodes stand still (SIGSTOP): they keep their connections and do nothing."""
    _signal(folder, node_ids, LocalCluster.pause_node, "Paused", as_json)


@node.command()
@_ids_argument
@folder_option
@json_option
def resume(node_ids: tuple[int, ...], folder: Path, as_json: bool) -> None:
    """Let paused nodes go on."""
    _signal(folder, node_ids, LocalCluster.resume_node, "Resumed", as_json)


def _signal(
    folder: Path, node_ids: tuple[int, ...], send: Callable[[LocalCluster, int], None], verb: str, as_json: bool
) -> None:
    with _nodes_of(folder, node_ids) as (cluster, nodes):
        _check_running(nodes)
        for one in nodes:
            send(cluster, one.id)
    _report(nodes, f"{verb} {_named(nodes)}.", as_json)


@contextmanager
def _nodes_of(folder: Path, node_ids: tuple[int, ...]) -> Iterator[tuple[LocalCluster, tuple[LocalNode, ...]]]:
    """Raises ClickException for what goes wrong inside too."""
    with sentences():
        cluster = attached(folder)
        for node_id in node_ids:
            if node_id not in cluster.nodes:
                raise ClusterError(f"there is no node {node_id} in {folder}; {_LOOK_AGAIN}.")
        yield cluster, tuple(cluster.nodes[node_id] for node_id in dict.fromkeys(node_ids))


def _check_running(nodes: tuple[LocalNode, ...]) -> None:
    """Raises ClusterError before anything is done to any of them."""
    for one in nodes:
        if not one.is_running:
            raise ClusterError(f"node {one.id} is not running; `penstock node start {one.id}` starts it.")


def _report(nodes: tuple[LocalNode, ...], sentence: str, as_json: bool, *, silent: bool = False) -> None:
    if as_json:
        print_json({"nodes": [_described(one) for one in nodes]})
    elif not silent:
        say(sentence)


def _described(one: LocalNode) -> dict[str, object]:
    return {"id": one.id, "state": one.state, "pid": _pid(one), "address": one.address, "data": str(one.data)}


def _pid(one: LocalNode) -> int | None:
    return one.process.pid if one.process is not None and one.is_running else None


def _named(nodes: tuple[LocalNode, ...]) -> str:
    return f"node{'s' if len(nodes) > 1 else ''} {', '.join(str(one.id) for one in nodes)}"
