"""`penstock quorum transfer` and `penstock quorum snapshot`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from ...client.bootstrap import Bootstrap, bootstrap_options
from ...client.operating.admin_options import admin_of, admin_option, json_option
from ...client.terminal import print_json
from .quorum_operator import HttpOperator, QuorumOperator

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _operator_options(command: _Command) -> Callable[..., Any]:
    """Gives a command the `QuorumOperator` as first argument: over HTTP, unless an option names a node's files."""

    @click.option(
        "--config",
        "config_path",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Ask the controllers without HTTP: the properties of any node name them and prove that one may.",
    )
    @click.option(
        "--data",
        "folder",
        metavar="FOLDER",
        type=click.Path(file_okay=False),
        help="The same, with the folder of a cluster that `penstock up` started.",
    )
    @json_option
    @admin_option
    @bootstrap_options
    @functools.wraps(command)
    def with_operator(
        bootstrap: Bootstrap, /, *, urls: str | None, config_path: str | None, folder: str | None, **options: Any
    ) -> Any:
        if config_path is not None and folder is not None:
            raise click.UsageError("--config and --data both say where a node's properties are: give one of them.")
        with _operator(bootstrap, urls, config_path, folder) as operator:
            return command(operator, **options)

    return with_operator


@contextmanager
def _operator(
    bootstrap: Bootstrap, urls: str | None, config_path: str | None, folder: str | None
) -> Iterator[QuorumOperator]:
    if config_path is None and folder is None:
        with admin_of(bootstrap, urls) as admin:
            yield HttpOperator(admin)
        return
    # What a node is made of, loaded only where the controllers are asked as a node asks them.
    from .node_properties import direct_operator

    yield direct_operator(config_path, folder, timeout_ms=int(bootstrap.timeout_s * 1000))


@click.command()
@_operator_options
@click.option("--to", "target_id", type=int, metavar="ID", help="Which one; else the one furthest along.")
def transfer(operator: QuorumOperator, target_id: int | None, as_json: bool) -> None:
    """Let another controller lead the quorum. When that does not succeed, the present one goes on."""
    leader_id = operator.transfer(target_id)
    if as_json:
        print_json({"leader_id": leader_id})
    else:
        click.echo(f"Node {leader_id} leads the quorum now.")


@click.command()
@_operator_options
@click.option("--node", "node_ids", type=int, multiple=True, metavar="ID", help="Only this one; may be repeated.")
def snapshot(operator: QuorumOperator, node_ids: tuple[int, ...], as_json: bool) -> None:
    """Let controllers write a snapshot of the metadata now, and say where: all of them unless told otherwise."""
    taken, failures = operator.take_snapshots(node_ids)
    if as_json:
        print_json({"snapshots": [one._asdict() for one in taken]})
    else:
        for one in taken:
            click.echo(f"node {one.node_id}  end offset {one.end_offset}  {one.file}")
    if failures:
        raise click.ClickException(" ".join(failures))
