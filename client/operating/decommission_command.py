"""`penstock decommission`: all replicas are taken off a broker, which leaves the cluster then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
import msgspec

from ...protocol.rest.maintenance import Decommission, DecommissionRequest
from .. import clock
from ..terminal import print_json, progress, say
from ..units import format_bytes
from .admin_options import admin_options, check_quorum, json_option, moving_max_option
from .partition_names import check_outcomes

if TYPE_CHECKING:
    from ..admin import Admin

STEP_INTERVAL_S: Final = 1.0


@click.command()
@click.argument("broker_id", metavar="N", type=click.IntRange(min=0))
@click.option("--wait", "is_waiting", is_flag=True, help="Begin moves until the broker has no replica.")
@click.option("--unregister", is_flag=True, help="Take the broker out of the cluster once it has no replica.")
@click.option("--cancel", is_flag=True, help="Cancel the moves off the broker, and end its drain.")
@moving_max_option("leave the broker")
@json_option
@admin_options
def decommission(
    admin: Admin,
    broker_id: int,
    is_waiting: bool,
    unregister: bool,
    cancel: bool,
    moving_max: int,
    as_json: bool,
) -> None:
    """Drain broker N and move its replicas to other brokers.

    The broker may run or be gone for good: other replicas are copied then. Asking again goes on where it was.
    """
    if cancel and (is_waiting or unregister):
        raise click.UsageError("--cancel stands alone.")
    check_quorum(admin)
    if cancel:
        state = admin.cancel_decommission(broker_id)
    else:
        body = DecommissionRequest(moving_max=moving_max, unregister=unregister)
        state = admin.decommission_broker(broker_id, body)
        if is_waiting:
            state = _wait(admin, state, body)
    if as_json:
        print_json(msgspec.to_builtins(state))
    else:
        say("\n".join(decommission_lines(state, is_cancelled=cancel)))
    check_outcomes(state.results, what="moved")


def decommission_lines(state: Decommission, *, is_cancelled: bool = False) -> list[str]:
    """How far it is, and what to do next."""
    broker = f"Broker {state.broker_id}"
    if is_cancelled:
        return [f"{broker} keeps its {_replicas(state.replica_count)} and is not drained any more."]
    if state.is_unregistered:
        return [f"{broker} has no replica and is unregistered. Its node may be stopped, and its folder deleted."]
    if not state.replica_count:
        again = f"`penstock decommission {state.broker_id} --unregister` takes it out of the cluster"
        return [f"{broker} has no replica. {again}; then stop its node."]
    size = "" if state.bytes_left is None else f", {format_bytes(state.bytes_left)}"
    lines = [f"{broker} has {_replicas(state.replica_count)}{size}; {state.moving_count:,} of them are moving."]
    if state.stuck:
        names = ", ".join(f"{one.topic}-{one.partition}" for one in state.stuck[:5])
        lines.append(f"Without a leader until the broker is started: {names}. What they have is on this broker only.")
    lines.append(f"`penstock decommission {state.broker_id} --wait` goes on.")
    return lines


def _replicas(count: int) -> str:
    return f"{count:,} replica{'' if count == 1 else 's'}"


def _wait(admin: Admin, state: Decommission, body: DecommissionRequest) -> Decommission:
    """Steps until the broker has no replica. A step that is refused ends it, and so do partitions that cannot move."""
    total = max(1, state.replica_count)
    with progress(f"emptying broker {state.broker_id}", total=total, unit="replicas") as bar:
        while not _is_over(state, body):
            clock.pause(STEP_INTERVAL_S)
            state = admin.decommission_broker(state.broker_id, body)
            bar.advance_to(max(0, total - state.replica_count))
    return state


def _is_over(state: Decommission, body: DecommissionRequest) -> bool:
    if state.results or state.is_unregistered:
        return True
    if state.stuck and state.moving_count <= len(state.stuck) and state.replica_count <= len(state.stuck):
        return True
    return not state.replica_count and (state.may_unregister and not body.unregister)
