"""Bugs of group coordinators, each as one patch; the simulation finds every one of them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from ...broker.coordination.effects import Effects
from ...broker.coordination.latest_records import LatestRecords
from ...broker.coordinators.coordinator_context import CoordinatorContext
from ...broker.groups import group_shard
from ...broker.groups.classic import sync_phase
from ...broker.groups.classic.group import ClassicGroup
from ...broker.groups.classic.records import GroupMetadataValue
from ...broker.groups.consumer.group import ConsumerGroup
from .edited import edited
from .mutant import Mutant


def _as_the_leader(synced: Callable[..., Any]) -> Any:
    def synced_as_the_leader(group: ClassicGroup, member: Any) -> Any:
        return synced(group, group.members.get(group.leader or "", member))

    return synced_as_the_leader


def _without_generation(group_of: Callable[..., ClassicGroup]) -> Any:
    def group_without_generation(group_id: str, value: GroupMetadataValue, effects: Effects) -> ClassicGroup:
        return group_of(group_id, value._replace(generation=0), effects)

    return group_without_generation


def _of_no_member(_: Any) -> Any:
    return lambda _group, _topic_id, _partition: None


def _at_append(_: Any) -> Any:
    def reply(_partition: Any, respond: Callable[[Any], None], _answer_error: Any, response: Any) -> None:
        respond(response)

    return reply


MUTANTS: Final = (
    Mutant(
        name="one-assignment-for-all",
        bug="every member of a classic group gets its leader's assignment",
        owner=sync_phase,
        attribute="synced",
        make=_as_the_leader,
    ),
    Mutant(
        name="generations-begin-anew",
        bug="a coordinator that loads a classic group does not go on with its generation",
        owner=group_shard,
        attribute="group_of",
        make=_without_generation,
    ),
    Mutant(
        name="given-while-held",
        bug="a member is given what another has not let go (KIP-848)",
        owner=ConsumerGroup,
        attribute="owner_epoch",
        make=_of_no_member,
    ),
    Mutant(
        name="commit-answered-at-append",
        bug="coordinators answer when they have the records, which may be lost with them",
        owner=CoordinatorContext,
        attribute="_reply",
        make=_at_append,
    ),
    Mutant(
        name="first-offset-wins",
        bug="a coordinator that loads committed offsets takes the oldest of each partition",
        owner=LatestRecords,
        attribute="add_values",
        make=edited("            latest[key] = record", "            latest.setdefault(key, record)"),
    ),
)

BUGS: Final[Mapping[str, str]] = MappingProxyType({mutant.name: mutant.bug for mutant in MUTANTS})
"""What each is, by its name."""
