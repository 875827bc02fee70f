"""`penstock quorum transfer` and `penstock quorum snapshot`."""

from __future__ import annotations

import asyncio
import functools
import json
import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from ..broker.configuration.node_config import load
from ..broker.configuration.properties import merge_properties
from ..protocol.errors import ConfigError
from ..quorum.raft.operations import Refused, SnapshotTaken, TakeSnapshot
from ..storage.disk.files import DiskFiles
from .controllers import Controllers, Unanswered

_Command = TypeVar("_Command", bound=Callable[..., Any])

# Where `penstock up` keeps its cluster unless told otherwise.
DEFAULT_FOLDER: Final = "penstock-cluster"


def _cluster_options(command: _Command) -> Callable[..., Any]:
    """Gives a command the controllers as first argument."""

    @click.option(
        "--config",
        "config_path",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="The properties of any node of the cluster: they name its controllers and prove that one may.",
    )
    @click.option(
        "--data",
        "folder",
        metavar="FOLDER",
        type=click.Path(file_okay=False),
        default=DEFAULT_FOLDER,
        show_default=True,
        help="Without --config: the folder of a cluster that `penstock up` started.",
    )
    @click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0.1),
        default=10.0,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for an answer.",
    )
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
    @functools.wraps(command)
    def with_controllers(*, config_path: str | None, folder: str, timeout_s: float, **options: Any) -> Any:
        try:
            controllers = _controllers(config_path, folder, timeout_ms=int(timeout_s * 1000))
        except ConfigError as error:
            raise click.ClickException(str(error)) from error
        return command(controllers, **options)

    return with_controllers


def _controllers(config_path: str | None, folder: str, *, timeout_ms: int) -> Controllers:
    if config_path is None:
        # A cluster on this machine is as its files say, whatever is exported around it.
        return Controllers(_load(_local_properties(folder), {}), DiskFiles(), timeout_ms=timeout_ms)
    return Controllers(_load(config_path, dict(os.environ)), DiskFiles(), timeout_ms=timeout_ms)


def _load(path: str, environment: dict[str, str]) -> Any:
    try:
        text = DiskFiles().read(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    return load(merge_properties(file_text=text, environment=environment))


def _local_properties(folder: str) -> str:
    files = DiskFiles()
    names = files.list_directory(folder) if files.is_directory(folder) else []
    found = [name for name in names if name.startswith("node-") and name.endswith(".properties")]
    if not found:
        raise ConfigError(
            f"No cluster has been started in {folder}. --config names the properties of a node of another one."
        )
    return f"{folder}/{found[0]}"


@click.command()
@_cluster_options
@click.option("--to", "target_id", type=int, metavar="ID", help="Which one; else the one furthest along.")
def transfer(controllers: Controllers, target_id: int | None, as_json: bool) -> None:
    """Let another controller lead the quorum. When that does not succeed, the present one goes on."""
    try:
        leader_id = asyncio.run(controllers.transfer(target_id))
    except Unanswered as error:
        raise click.ClickException(str(error)) from error
    click.echo(json.dumps({"leader_id": leader_id}) if as_json else f"Node {leader_id} leads the quorum now.")


@click.command()
@_cluster_options
@click.option("--node", "node_ids", type=int, multiple=True, metavar="ID", help="Only this one; may be repeated.")
def snapshot(controllers: Controllers, node_ids: tuple[int, ...], as_json: bool) -> None:
    """Let controllers write a snapshot of the metadata now, and say where: all of them unless told otherwise."""
    taken, failures = asyncio.run(_take_snapshots(controllers, node_ids or controllers.ids))
    if as_json:
        described = [{"node_id": node_id, **outcome._asdict()} for node_id, outcome in taken.items()]
        click.echo(json.dumps({"snapshots": described}))
    else:
        for node_id, outcome in taken.items():
            click.echo(f"node {node_id}  end offset {outcome.end_offset}  {outcome.file}")
    if failures:
        raise click.ClickException(" ".join(failures))


async def _take_snapshots(
    controllers: Controllers, node_ids: tuple[int, ...]
) -> tuple[dict[int, SnapshotTaken], list[str]]:
    taken: dict[int, SnapshotTaken] = {}
    failures = []
    for node_id in node_ids:
        try:
            outcome = await controllers.ask(node_id, TakeSnapshot())
        except Unanswered as error:
            failures.append(str(error))
            continue
        if isinstance(outcome, SnapshotTaken):
            taken[node_id] = outcome
        elif isinstance(outcome, Refused):
            failures.append(f"Node {node_id}: {outcome.sentence}")
    return taken, failures
