"""ConsumerGroupHeartbeat: members of consumer groups join, report, are moved and leave with one request (KIP-848).

member epoch  means                                                          version  KIP
0             joins, or begins anew; its id is its own from version 1 on     1        1082
> 0           is in that epoch; nothing else need be said that is as it was
-1            leaves
-2            a static member leaves, and will be back                       0        345
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.consumer_group_heartbeat.v1.response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kio.static.primitive import i32, i32Timedelta
from msgspec import Struct

from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.messages import NO_THROTTLE, kio_error
from ...configuration.consumer_config import SettingsOf
from .changes import CurrentChange
from .departures import Departures
from .expression_resolver import ExpressionResolver
from .group import ConsumerGroup
from .group_table import GroupTable
from .journal import ConsumerJournal
from .member import JOIN_EPOCH, LEAVE_EPOCH, OWNS_NOTHING, STATIC_LEAVE_EPOCH, ConsumerMember, is_subset
from .member_deadlines import MemberDeadlines
from .member_update import MemberUpdates, successor_of
from .migration import Upgrade, UpgradePlan
from .reconciliation import Owned, owned_of
from .records import Subscription

logger = logging.getLogger(__name__)

OWN_ID_SINCE: Final = 1
"""KIP-1082: a member makes its id itself."""
_MILLISECOND: Final = timedelta(milliseconds=1)
_NOT_SAID: Final = -1


class HeartbeatContext(Struct, frozen=True, kw_only=True):
    """What a ConsumerGroupHeartbeat does not say itself."""

    client_id: str
    client_host: str
    may_describe: Callable[[str], bool] | None = None
    """Whether the client may describe a topic; None where everyone may."""


class ConsumerProtocol:
    def __init__(
        self,
        groups: GroupTable,
        journal: ConsumerJournal,
        updates: MemberUpdates,
        deadlines: MemberDeadlines,
        departures: Departures,
        upgrade: Upgrade,
        expressions: ExpressionResolver,
        *,
        max_size: int,
        settings_of: SettingsOf,
        new_id: Callable[[], str],
    ) -> None:
        """`max_size` is `group.consumer.max.size`; `new_id` makes ids for members without one, never the same twice."""
        self._groups = groups
        self._journal = journal
        self._updates = updates
        self._deadlines = deadlines
        self._departures = departures
        self._upgrade = upgrade
        self._expressions = expressions
        self._max_size = max_size
        self._settings_of = settings_of
        self._new_id = new_id

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, context: HeartbeatContext
    ) -> ConsumerGroupHeartbeatResponse:
        """One that was checked (`check_heartbeat`). Raises KafkaError."""
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return self._leave(request)
        is_joining = request.member_epoch == JOIN_EPOCH
        begun = self._group_of(request.group_id, is_joining=is_joining)
        group = begun.group
        member_id = request.member_id
        if len(group.members) >= self._max_size and member_id not in group.members:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {self._max_size} members.",
            )
        member_id = member_id or self._new_id()
        owned = (
            None
            if request.topic_partitions is None
            else owned_of((topic.topic_id, topic.partitions) for topic in request.topic_partitions)
        )
        member, replaced = self._member_of(group, request, member_id, owned)
        update = self._updates.plan(
            group, member, _updated(member.subscription, request, context), owned, replaced=replaced
        )

        self._journal.write([*begun.changes, *update.changes], before=begun.before)
        if begun.classic is not None:
            self._upgrade.finish(begun.classic)
        if replaced is not None:
            self._deadlines.forget(group.id, replaced.id)
        group = self._groups.get_consumer(request.group_id)
        group.needs_metadata_refresh = False
        self._expect(group, update.member, has_moved=update.member.current != member.current)
        self._expressions.refresh_if_due(group, is_new=update.has_new_expression, may_describe=context.may_describe)
        is_told = is_joining or _is_full(request) or update.member.current.assigned != member.current.assigned
        return self._response(group, update.member, is_told=is_told)

    # Who it is.

    def _group_of(self, group_id: str, *, is_joining: bool) -> UpgradePlan:
        """The group, and what must be written for it to be there. Raises KafkaError."""
        group = self._groups.find_consumer(group_id)
        if group is not None:
            return UpgradePlan(group, [], [], None)
        if not self._groups.is_known(group_id):
            if is_joining:
                return UpgradePlan(ConsumerGroup(group_id), [], [], None)
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        if not is_joining:
            raise _not_a_consumer_group(group_id)
        return self._upgrade.plan(group_id)

    def _member_of(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, member_id: str, owned: Owned
    ) -> tuple[ConsumerMember, ConsumerMember | None]:
        """Who it is, and whose place it takes. Raises KafkaError."""
        is_joining = request.member_epoch == JOIN_EPOCH
        instance_id = request.instance_id
        if instance_id is None:
            member = group.members.get(member_id)
            if member is None and not is_joining:
                raise _unknown_member(group.id, member_id)
            if member is None:
                logger.info(
                    "Member joins the consumer group using the consumer protocol: group=%s member=%s",
                    group.id,
                    member_id,
                )
                return ConsumerMember(id=member_id), None
            _check_epoch(member, request.member_epoch, owned)
            return member, None
        known = group.static_member(instance_id)
        if not is_joining:
            member = self._departures.check_static(known, member_id, instance_id)
            _check_epoch(member, request.member_epoch, owned)
            return member, None
        if known is None:
            logger.info(
                "Static member joins the consumer group using the consumer protocol: group=%s member=%s instance=%s",
                group.id,
                member_id,
                instance_id,
            )
            return group.members.get(member_id, ConsumerMember(id=member_id)), None
        if not known.uses_classic_protocol and known.current.epoch != STATIC_LEAVE_EPOCH:
            if known.id == member_id:
                # It has not heard the answer to its join, or was fenced: ids are made by members, which keep theirs.
                return known, None
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance "
                f"id is owned by {known.id} member.",
            )
        logger.info(
            "Static member re-joins the consumer group using the consumer protocol: group=%s old=%s new=%s",
            group.id,
            known.id,
            member_id,
        )
        return successor_of(known, member_id), known

    # Leaving.

    def _leave(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        group = self._groups.find_consumer(request.group_id)
        if group is None:
            if self._groups.is_known(request.group_id):
                raise _not_a_consumer_group(request.group_id)
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
        if request.instance_id is None:
            member = group.members.get(request.member_id)
            if member is None:
                raise _unknown_member(group.id, request.member_id)
        else:
            known = group.static_member(request.instance_id)
            member = self._departures.check_static(known, request.member_id, request.instance_id)
        if request.member_epoch == STATIC_LEAVE_EPOCH:
            logger.info("Static member temporarily left the consumer group: group=%s member=%s", group.id, member.id)
            # It comes back with what it has; who reads on meanwhile in its name is too late.
            current = member.current._replace(
                epoch=STATIC_LEAVE_EPOCH,
                assigned={
                    topic_id: dict.fromkeys(of_topic, 0) for topic_id, of_topic in member.current.assigned.items()
                },
                pending_revocation=OWNS_NOTHING,
            )
            self._journal.write([CurrentChange(group.id, member.id, current)])
        else:
            self._departures.remove(group, [member], "left the consumer group")
        return ConsumerGroupHeartbeatResponse(
            throttle_time=NO_THROTTLE,
            error_code=kio_error(ErrorCode.NONE),
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            heartbeat_interval=_timedelta(0),
        )

    # What follows.

    def _expect(self, group: ConsumerGroup, member: ConsumerMember, *, has_moved: bool) -> None:
        self._deadlines.expect_heartbeat(group.id, member.id, self._settings_of(group.id).session_timeout_ms)
        if has_moved:
            self._departures.expect_revocation(group, member)

    def _response(
        self, group: ConsumerGroup, member: ConsumerMember, *, is_told: bool
    ) -> ConsumerGroupHeartbeatResponse:
        assignment = None
        if is_told:
            assignment = Assignment(
                topic_partitions=tuple(
                    TopicPartitions(topic_id=topic_id, partitions=tuple(map(i32, sorted(of_topic))))
                    for topic_id, of_topic in member.current.assigned.items()
                )
            )
        return ConsumerGroupHeartbeatResponse(
            throttle_time=NO_THROTTLE,
            error_code=kio_error(ErrorCode.NONE),
            member_id=member.id,
            member_epoch=i32(member.current.epoch),
            heartbeat_interval=_timedelta(self._settings_of(group.id).heartbeat_interval_ms),
            assignment=assignment,
        )


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: Sequence[str]) -> None:
    """What is wrong with it whatever the group. Raises KafkaError."""
    epoch = request.member_epoch
    if api_version >= OWN_ID_SINCE or epoch > 0 or epoch == LEAVE_EPOCH:
        _require(not _is_blank(request.member_id), "MemberId can't be empty.")
    _require(not _is_blank(request.group_id), "GroupId can't be empty.")
    _require(not _is_blank(request.instance_id), "InstanceId can't be empty.")
    _require(not _is_blank(request.rack_id), "RackId can't be empty.")
    if epoch == JOIN_EPOCH:
        timeout_ms = request.rebalance_timeout // _MILLISECOND
        _require(timeout_ms != _NOT_SAID, "RebalanceTimeoutMs must be provided in first request.")
        _require(request.topic_partitions == (), "TopicPartitions must be empty when (re-)joining.")
        _require(
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        )
    elif epoch == STATIC_LEAVE_EPOCH:
        _require(request.instance_id is not None, "InstanceId can't be null.")
    else:
        _require(epoch >= STATIC_LEAVE_EPOCH, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def heartbeat_failure(error: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(error),
        error_message=message,
        member_epoch=i32(0),
        heartbeat_interval=_timedelta(0),
    )


def _updated(known: Subscription, request: ConsumerGroupHeartbeatRequest, context: HeartbeatContext) -> Subscription:
    """What is not said is as it was."""
    timeout_ms = request.rebalance_timeout // _MILLISECOND
    topics = request.subscribed_topic_names
    regular_expression = request.subscribed_topic_regex
    return Subscription(
        instance_id=known.instance_id if request.instance_id is None else request.instance_id,
        rack_id=known.rack_id if request.rack_id is None else request.rack_id,
        client_id=context.client_id,
        client_host=context.client_host,
        topics=known.topics if topics is None else tuple(sorted(set(topics))),
        regular_expression=known.regular_expression if regular_expression is None else regular_expression,
        rebalance_timeout_ms=known.rebalance_timeout_ms if timeout_ms == _NOT_SAID else timeout_ms,
        assignor=known.assignor if request.server_assignor is None else request.server_assignor,
        classic=None,
    )


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether it says everything, and so wants to hear everything."""
    return (
        request.rebalance_timeout // _MILLISECOND != _NOT_SAID
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )


def _check_epoch(member: ConsumerMember, epoch: int, owned: Owned) -> None:
    """Raises KafkaError. The epoch before is good while what it owns is: the last answer may be lost."""
    current = member.current
    if epoch == JOIN_EPOCH or epoch == current.epoch:
        return
    if (
        epoch < current.epoch
        and epoch == current.previous_epoch
        and owned is not None
        and is_subset(owned, current.assigned)
    ):
        return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {'greater' if epoch > current.epoch else 'smaller'} member epoch ({epoch}) "
        f"than the one known by the group coordinator ({current.epoch}). The member must abandon all its partitions "
        "and rejoin.",
    )


def _is_blank(text: str | None) -> bool:
    return text is not None and not text.strip()


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise KafkaError(ErrorCode.INVALID_REQUEST, sentence)


def _unknown_member(group_id: str, member_id: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}.")


def _not_a_consumer_group(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def _timedelta(milliseconds: int) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(milliseconds=milliseconds))
