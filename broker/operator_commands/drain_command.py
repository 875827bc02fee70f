"""`penstock drain`: a broker leads nothing while its machine is worked on, or while it restarts (decision 19)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
import msgspec

from ...client.operating.admin_options import check_quorum, json_option, opener_options
from ...client.operating.draining import is_done, is_given_up, maintenance_sentence, wait_drained
from ...client.terminal import print_json, say
from ...protocol.errors import ConfigError
from ...protocol.structs import replace

if TYPE_CHECKING:
    from ...client.operating.admin_options import Opener
    from ..configuration.node_config import NodeConfig

# Addresses to listen at that are no addresses to ask.
_EVERY_INTERFACE: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


@click.command()
@click.argument("broker_id", metavar="[N]", type=click.IntRange(min=0), required=False)
@click.option("--undo", is_flag=True, help="End the drain: leaderships come back at once.")
@click.option("--wait", "is_waiting", is_flag=True, help="Wait until the node may be stopped.")
@click.option(
    "--until-restart",
    is_flag=True,
    help="The broker ends the drain itself when it has been restarted and has caught up.",
)
@click.option(
    "--config",
    "config_path",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Instead of N: the properties of a node of this machine, which is drained and asked.",
)
@click.option(
    "--deadline",
    "deadline_s",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="How long --wait waits.",
)
@json_option
@opener_options
def drain(
    opened: Opener,
    broker_id: int | None,
    undo: bool,
    is_waiting: bool,
    until_restart: bool,
    config_path: str | None,
    deadline_s: float,
    as_json: bool,
) -> None:
    """Move leaderships off broker N, and say when its node may be stopped.

    It stays drained when it is restarted, until --undo or as --until-restart says. Exit status 1: --wait ended before
    it may be stopped.
    """
    if undo and (is_waiting or until_restart):
        raise click.UsageError("--wait and --until-restart are of a drain, not of its end.")
    if (broker_id is None) == (config_path is None):
        raise click.UsageError("Either N or --config says which broker.")
    urls = None
    if config_path is not None:
        from .node_properties import load_node

        try:
            config = load_node(config_path)
        except ConfigError as error:
            raise click.ClickException(str(error)) from error
        if not config.is_broker:
            say(f"Node {config.node_id} is no broker: it leads no partitions.")
            return
        broker_id, urls = config.node_id, _own_admin(config)
    assert broker_id is not None
    with opened(urls) as admin:
        check_quorum(admin)
        state = admin.undrain_broker(broker_id) if undo else admin.drain_broker(broker_id, until_restart=until_restart)
        if is_waiting:
            state = wait_drained(admin, state, deadline_s, until_restart=until_restart)
    if as_json:
        print_json(msgspec.to_builtins(state))
    else:
        say(maintenance_sentence(state))
    if is_waiting and not is_done(state) and not is_given_up(state):
        raise click.exceptions.Exit(1)


def _own_admin(config: NodeConfig) -> str:
    """Where the node's HTTP administration is asked on its own machine."""
    for listener in config.admin_listeners:
        if listener.port:
            return str(replace(listener, host=_EVERY_INTERFACE.get(listener.host, listener.host)))
    raise click.ClickException(
        "admin.listeners has no fixed port, so the node cannot be found: name the broker and --admin."
    )
