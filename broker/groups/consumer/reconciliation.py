"""The next step of one member towards the target assignment (KIP-848 "Reconciliation").

A member first gives up what it is to have no more, and says so by not naming it; until then its epoch does not rise.
Then it moves to the epoch of the target assignment with the partitions that are free, and later gets the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import TypeAlias
from uuid import UUID

from ....protocol.errors import ErrorCode, KafkaError
from .member import NO_PARTITIONS, OWNS_NOTHING, CurrentAssignment, MemberState, OwnedPartitions, Partitions, merged

Owned: TypeAlias = tuple[tuple[UUID | None, tuple[int, ...]], ...] | None
"""What a member says it has, by topic; None when it says nothing."""


def next_assignment(
    current: CurrentAssignment,
    *,
    target_epoch: int,
    target: Partitions,
    owned: Owned,
    owner_epoch: Callable[[UUID, int], int | None],
    subscribed_topic_ids: Set[UUID],
    has_subscription_changed: bool,
) -> CurrentAssignment:
    """`current` itself when nothing can be done. `subscribed_topic_ids` are those that the member reads now, which the
    target assignment may not know of yet when `has_subscription_changed`.

    Raises KafkaError(FENCED_MEMBER_EPOCH).
    """

    def advanced() -> CurrentAssignment:
        return _towards_target(
            current, current.epoch, target_epoch, _only(target, subscribed_topic_ids), owned, owner_epoch
        )

    match current.state:
        case MemberState.STABLE:
            if current.epoch != target_epoch:
                return advanced()
            return _without_unsubscribed(current, owned, subscribed_topic_ids) if has_subscription_changed else current
        case MemberState.UNREVOKED_PARTITIONS:
            if not _owns_any(owned, current.pending_revocation):
                return advanced()
            return _without_unsubscribed(current, owned, subscribed_topic_ids) if has_subscription_changed else current
        case MemberState.UNRELEASED_PARTITIONS:
            return advanced()
        case MemberState.UNKNOWN:
            if owned != ():
                raise KafkaError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The consumer group member is in a unknown state. The member must abandon all its partitions and "
                    "rejoin.",
                )
            return _towards_target(
                current, target_epoch, target_epoch, _only(target, subscribed_topic_ids), owned, owner_epoch
            )


def _towards_target(
    current: CurrentAssignment,
    epoch: int,
    target_epoch: int,
    target: Partitions,
    owned: Owned,
    owner_epoch: Callable[[UUID, int], int | None],
) -> CurrentAssignment:
    kept: dict[UUID, Mapping[int, int]] = {}
    to_revoke: dict[UUID, Mapping[int, int]] = {}
    to_assign: dict[UUID, Mapping[int, int]] = {}
    are_some_unreleased = False
    for topic_id in dict.fromkeys((*target, *current.assigned)):
        wanted = target.get(topic_id, frozenset())
        has = current.assigned.get(topic_id, {})
        _put(kept, topic_id, {one: epoch_of for one, epoch_of in has.items() if one in wanted})
        _put(to_revoke, topic_id, {one: epoch_of for one, epoch_of in has.items() if one not in wanted})
        missing = wanted - has.keys()
        free = {one: target_epoch for one in missing if owner_epoch(topic_id, one) is None}
        _put(to_assign, topic_id, free)
        are_some_unreleased = are_some_unreleased or len(free) < len(missing)
    if to_revoke and _owns_any(owned, to_revoke):
        return current.moved_to(epoch, MemberState.UNREVOKED_PARTITIONS, kept, to_revoke)
    state = MemberState.UNRELEASED_PARTITIONS if are_some_unreleased else MemberState.STABLE
    return current.moved_to(target_epoch, state, merged(kept, to_assign) if to_assign else kept, OWNS_NOTHING)


def _without_unsubscribed(
    current: CurrentAssignment, owned: Owned, subscribed_topic_ids: Set[UUID]
) -> CurrentAssignment:
    """What the member does not read any more is taken from it at once, without a new target assignment."""
    unsubscribed = {
        topic_id: of_topic for topic_id, of_topic in current.assigned.items() if topic_id not in subscribed_topic_ids
    }
    if not unsubscribed:
        return current
    kept = {topic_id: of_topic for topic_id, of_topic in current.assigned.items() if topic_id in subscribed_topic_ids}
    pending = merged(current.pending_revocation, unsubscribed)
    if _owns_any(owned, pending):
        return current.moved_to(current.epoch, MemberState.UNREVOKED_PARTITIONS, kept, pending)
    return current.moved_to(current.epoch, current.state, kept, OWNS_NOTHING)


def _only(target: Partitions, topic_ids: Set[UUID]) -> Partitions:
    if all(topic_id in topic_ids for topic_id in target):
        return target
    return {topic_id: partitions for topic_id, partitions in target.items() if topic_id in topic_ids} or NO_PARTITIONS


def _owns_any(owned: Owned, partitions: OwnedPartitions) -> bool:
    """A member that does not say what it owns may own anything."""
    return owned is None or any(
        topic_id is not None and one in partitions.get(topic_id, {}) for topic_id, of_topic in owned for one in of_topic
    )


def _put(where: dict[UUID, Mapping[int, int]], topic_id: UUID, partitions: Mapping[int, int]) -> None:
    if partitions:
        where[topic_id] = partitions


def owned_of(topics: Iterable[tuple[UUID | None, Iterable[int]]]) -> Owned:
    return tuple((topic_id, tuple(partitions)) for topic_id, partitions in topics)
