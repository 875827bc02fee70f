"""`penstock drain`: a broker leads nothing while its machine is worked on (decision 19)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
import msgspec

from ...protocol.rest.maintenance import Maintenance
from .. import clock
from ..terminal import print_json, progress, say
from .admin_options import admin_options, check_quorum, json_option

if TYPE_CHECKING:
    from ..admin import Admin

LOOK_INTERVAL_S: Final = 0.5


@click.command()
@click.argument("broker_id", metavar="N", type=click.IntRange(min=0))
@click.option("--undo", is_flag=True, help="End the drain: leaderships come back at once.")
@click.option("--wait", "is_waiting", is_flag=True, help="Wait until the node may be stopped.")
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
@admin_options
def drain(admin: Admin, broker_id: int, undo: bool, is_waiting: bool, deadline_s: float, as_json: bool) -> None:
    """Move leaderships off broker N, and say when its node may be stopped.

    It stays drained when it is restarted, until --undo. Exit status 1: --wait ended before it may be stopped.
    """
    if undo and is_waiting:
        raise click.UsageError("--wait waits for a drain, not for its end.")
    check_quorum(admin)
    state = admin.undrain_broker(broker_id) if undo else admin.drain_broker(broker_id)
    if is_waiting:
        state = _wait(admin, state, deadline_s)
    if as_json:
        print_json(msgspec.to_builtins(state))
    else:
        say(maintenance_sentence(state))
    if is_waiting and not is_done(state):
        raise click.exceptions.Exit(1)


def is_done(state: Maintenance) -> bool:
    """Whether the node may be stopped, and leads nothing that another node could lead."""
    return state.may_stop and state.leadership_count == 0


def maintenance_sentence(state: Maintenance) -> str:
    """What an operator needs to know before the machine is worked on."""
    broker = f"Broker {state.broker_id}"
    if not state.is_drained:
        return f"{broker} is not drained any more; it leads {state.leadership_count:,} partitions now."
    leads = "leads nothing" if not state.leadership_count else f"still leads {_partitions(state.leadership_count)}"
    if is_done(state):
        return f"{broker} is drained and {leads}. Its node may be stopped."
    reasons = list(state.blockers)
    if state.leaderships:
        reasons += sorted({one.reason for one in state.leaderships})
    return f"{broker} is drained and {leads}. Do not stop its node yet: {'; '.join(reasons).rstrip('.')}."


def _partitions(count: int) -> str:
    return f"{count:,} partition{'' if count == 1 else 's'}"


def _wait(admin: Admin, state: Maintenance, deadline_s: float) -> Maintenance:
    total = max(1, state.leadership_count)
    end_s = clock.monotonic_s() + deadline_s
    with progress(f"draining broker {state.broker_id}", total=total, unit="partitions") as bar:
        while not is_done(state) and clock.monotonic_s() < end_s:
            clock.pause(LOOK_INTERVAL_S)
            state = admin.get_maintenance(state.broker_id)
            bar.advance_to(max(0, total - state.leadership_count))
    return state
