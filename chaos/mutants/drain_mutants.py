"""Bugs of drains and of cluster events, each as one patch, applied around a run. No product module knows of them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from ...broker.cluster import event_stream
from ...protocol.structs import replace
from ...quorum.decisions import configs, partition_changes
from .mutant import Mutant


def _move_nothing(_: Any) -> Any:
    return lambda *_arguments, **_options: []


def _choose_any(choose: Callable[..., Any]) -> Any:
    return lambda candidates, eligible, rules, may_lead: choose(
        candidates, eligible, replace(rules, drained=frozenset()), may_lead
    )


def _derive_all(take: Callable[..., Any]) -> Any:
    def take_gathered(ring: Any, change: Any) -> None:
        change.delta.is_gathered = False
        take(ring, change)

    return take_gathered


MUTANTS: Final = (
    Mutant(
        name="drain-moves-nothing",
        bug="a broker that is drained goes on leading what it leads",
        owner=configs,
        attribute="moved_leaderships",
        make=_move_nothing,
    ),
    Mutant(
        name="drained-is-elected",
        bug="elections do not look at drains",
        owner=partition_changes,
        attribute="_choose",
        make=_choose_any,
    ),
    Mutant(
        name="gathered-changes-are-events",
        bug="a node that starts derives events from entries that it replays in one step",
        owner=event_stream,
        attribute="_take",
        make=_derive_all,
    ),
)

BUGS: Final[Mapping[str, str]] = MappingProxyType({mutant.name: mutant.bug for mutant in MUTANTS})
"""What each is, by its name."""
