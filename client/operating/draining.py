"""A broker drained over HTTP: the wait until its node may be stopped, and what an operator needs to know then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...protocol.rest.maintenance import Maintenance
from .. import clock
from ..terminal import progress

if TYPE_CHECKING:
    from ..admin import Admin

LOOK_INTERVAL_S: Final = 0.5


def wait_drained(admin: Admin, state: Maintenance, deadline_s: float, *, until_restart: bool = False) -> Maintenance:
    """Return the state when the node may be stopped, when waiting gains nothing, or after `deadline_s`.

    A drain until a restart is given up where no other broker can take over: the cluster is being stopped as a whole,
    or the broker is its only one.
    """
    total = max(1, state.leadership_count)
    end_s = clock.monotonic_s() + deadline_s
    with progress(f"draining broker {state.broker_id}", total=total, unit="partitions") as bar:
        while not is_done(state) and not is_given_up(state) and clock.monotonic_s() < end_s:
            clock.pause(LOOK_INTERVAL_S)
            state = admin.get_maintenance(state.broker_id)
            if until_restart and not state.is_drained:
                # The drain was one of the start before, which the broker ends once. The next is for the next start.
                state = admin.drain_broker(state.broker_id, until_restart=True)
            bar.advance_to(max(0, total - state.leadership_count))
    return state


def is_done(state: Maintenance) -> bool:
    """Whether the node may be stopped, and leads nothing that another node could lead."""
    return state.may_stop and state.leadership_count == 0


def is_given_up(state: Maintenance) -> bool:
    """Whether a stop that is going to happen would wait for brokers that are not there."""
    return state.is_until_restart and state.is_last


def maintenance_sentence(state: Maintenance) -> str:
    """What an operator needs to know before the machine is worked on."""
    broker = f"Broker {state.broker_id}"
    if not state.is_drained:
        return f"{broker} is not drained any more; it leads {state.leadership_count:,} partitions now."
    leads = "leads nothing" if not state.leadership_count else f"still leads {_partitions(state.leadership_count)}"
    drained = "drained until it is restarted" if state.is_until_restart else "drained"
    if is_done(state):
        return f"{broker} is {drained} and {leads}. Its node may be stopped."
    reasons = list(state.blockers)
    if state.leaderships:
        reasons += sorted({one.reason for one in state.leaderships})
    why = "; ".join(reasons).rstrip(".")
    if is_given_up(state):
        return f"{broker} is {drained} and {leads}: no other broker is there to take over ({why})."
    return f"{broker} is {drained} and {leads}. Do not stop its node yet: {why}."


def _partitions(count: int) -> str:
    return f"{count:,} partition{'' if count == 1 else 's'}"
