"""`penstock broker`: how one broker is, and a broker that is gone for good leaves the cluster."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from ...protocol.rest.brokers import Broker
from ...protocol.rest.maintenance import Decommission, Maintenance
from ..terminal import print_json, say
from ..units import format_bytes
from .admin_options import admin_options, check_quorum, json_option

if TYPE_CHECKING:
    from ..admin import Admin


@click.command()
@click.argument("broker_id", metavar="N", type=click.IntRange(min=0))
@json_option
@admin_options
def describe(admin: Admin, broker_id: int, as_json: bool) -> None:
    """Show what broker N leads and has, and whether its node may be stopped, or taken out of the cluster."""
    broker = admin.get_broker(broker_id)
    maintenance, decommission = admin.get_maintenance(broker_id), admin.get_decommission(broker_id)
    if as_json:
        print_json(
            {
                "broker": msgspec.to_builtins(broker),
                "maintenance": msgspec.to_builtins(maintenance),
                "decommission": msgspec.to_builtins(decommission),
            }
        )
    else:
        click.echo("\n".join(broker_lines(broker, maintenance, decommission)))


@click.command()
@click.argument("broker_id", metavar="N", type=click.IntRange(min=0))
@click.option("--yes", "-y", is_flag=True, help="Do not ask. Without a terminal the command never asks.")
@json_option
@admin_options
def unregister(admin: Admin, broker_id: int, yes: bool, as_json: bool) -> None:
    """Take broker N out of the cluster, with or without replicas.

    `penstock decommission N --unregister` gives its replicas to others first. A broker that runs registers again.
    """
    check_quorum(admin)
    state = admin.get_maintenance(broker_id)
    is_active, replica_count = state.is_active, state.replica_count
    if not yes and sys.stdin.isatty():
        click.confirm(question(broker_id, is_active=is_active, replica_count=replica_count), abort=True, err=True)
    admin.delete_broker(broker_id)
    if as_json:
        print_json({"broker_id": broker_id, "replica_count": replica_count, "was_active": is_active})
    else:
        say(unregistered_sentence(broker_id, is_active=is_active, replica_count=replica_count))


def broker_lines(broker: Broker, maintenance: Maintenance, decommission: Decommission) -> list[str]:
    """A line each for where it is, what it has, and what may be done with its node."""
    at = "" if broker.host is None else f" at {broker.host}:{broker.port}"
    rack = "" if broker.rack is None else f", rack {broker.rack}"
    state = "fenced" if broker.is_fenced else "running"
    drained = ", drained" if maintenance.is_drained else ""
    size = "" if decommission.bytes_left is None else f", {format_bytes(decommission.bytes_left)}"
    moving = f", {decommission.moving_count:,} moving" if decommission.moving_count else ""
    return [
        f"broker {broker.broker_id}{at}{rack}: {state}{drained}",
        f"leads {maintenance.leadership_count:,}, has {_replicas(decommission.replica_count)}{size}{moving}",
        f"its node may be stopped: {_may(maintenance.blockers)}",
        f"it may be unregistered: {_may(decommission.blockers)}",
    ]


def _may(blockers: list[str]) -> str:
    return f"no, {'; '.join(blockers)}" if blockers else "yes"


def question(broker_id: int, *, is_active: bool, replica_count: int) -> str:
    """What a person is asked before a broker is unregistered."""
    state = "runs" if is_active else "is fenced"
    has = f" and has {_replicas(replica_count)}" if replica_count else ""
    return f"Broker {broker_id} {state}{has}. Unregister it?"


def unregistered_sentence(broker_id: int, *, is_active: bool, replica_count: int) -> str:
    """What was done, and what is left to do."""
    told = f"Broker {broker_id} is unregistered."
    if is_active:
        told += " It runs, so it registers again: stop its node first."
    if replica_count:
        told += (
            f" It is still named in {_replicas(replica_count)}: `penstock reassign apply` gives them to other brokers."
        )
    return told


def _replicas(count: int) -> str:
    return f"{count:,} replica{'' if count == 1 else 's'}"
