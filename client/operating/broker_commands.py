"""`penstock broker unregister`: a broker that is gone for good leaves the cluster, as kafka-cluster unregister does."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ..terminal import print_json, say
from .admin_options import admin_options, check_quorum, json_option

if TYPE_CHECKING:
    from ..admin import Admin


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
