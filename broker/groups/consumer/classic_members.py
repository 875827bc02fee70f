"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of members of the classic protocol in a consumer group (KIP-848).

They are members as all others are, of whom the coordinator is the leader. Their generation is their member epoch; to
join is to take the next step towards the target assignment, for which they need not wait for each other; and a
heartbeat tells them to join again when there is a step to take.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.sync_group.v5.request import SyncGroupRequest

from ....protocol.errors import CorruptData, ErrorCode, KafkaError
from ...configuration.consumer_config import ConsumerGroupConfig, MigrationPolicy
from ...coordination.effects import Effects, Waiter
from ..classic.embedded_protocol import CONSUMER_PROTOCOL_TYPE, EmbeddedSubscription, read_subscription
from ..classic.join_phase import JoinContext
from ..classic.member import MemberProtocol
from ..classic.results import UNKNOWN_MEMBER_ID, JoinResult, SyncResult, join_failure
from .departures import Departures
from .group import ConsumerGroup
from .group_table import GroupTable
from .journal import ConsumerJournal
from .member import NO_PARTITIONS, ConsumerMember, MemberState
from .member_deadlines import MemberDeadlines
from .member_update import MemberUpdates, successor_of
from .migration import Downgrade, assignment_of
from .reconciliation import Owned
from .records import ClassicMembership, Subscription
from .subscribed_topics import SubscribedTopics

logger = logging.getLogger(__name__)

_MILLISECOND: Final = timedelta(milliseconds=1)


class ClassicMembers:
    def __init__(
        self,
        groups: GroupTable,
        journal: ConsumerJournal,
        topics: SubscribedTopics,
        updates: MemberUpdates,
        deadlines: MemberDeadlines,
        departures: Departures,
        downgrade: Downgrade,
        effects: Effects,
        *,
        new_id: Callable[[], str],
        config: ConsumerGroupConfig,
    ) -> None:
        """`new_id` makes ids, never the same twice."""
        self._groups = groups
        self._journal = journal
        self._topics = topics
        self._updates = updates
        self._deadlines = deadlines
        self._departures = departures
        self._downgrade = downgrade
        self._effects = effects
        self._new_id = new_id
        self._max_size = config.max_size
        self._policy = config.migration_policy

    # Joining.

    def join(
        self, group: ConsumerGroup, request: JoinGroupRequest, context: JoinContext, waiter: Waiter[JoinResult]
    ) -> None:
        """The group must not be empty. A member that is refused is told no member id. Raises KafkaError."""
        if self._policy is MigrationPolicy.DISABLED:
            logger.info("classic member not let in: group=%s, whose protocol must not change", group.id)
            self._effects.reply(waiter, join_failure(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
            return
        is_new = request.member_id == UNKNOWN_MEMBER_ID
        member_id = self._new_id() if is_new else request.member_id
        instance_id = request.group_instance_id
        if len(group.members) >= self._max_size and member_id not in group.members:
            self._effects.reply(waiter, join_failure(ErrorCode.GROUP_MAX_SIZE_REACHED))
            return
        protocols = tuple(MemberProtocol(protocol.name, protocol.metadata) for protocol in request.protocols)
        if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not group.knows_classic_protocols(
            protocol.name for protocol in protocols
        ):
            self._effects.reply(waiter, join_failure(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
            return
        if is_new and instance_id is None and context.requires_member_id:
            self._effects.reply(waiter, join_failure(ErrorCode.MEMBER_ID_REQUIRED, member_id))
            return
        embedded = _read(protocols)
        is_removed = not is_new and instance_id is None and member_id not in group.members
        if is_removed and any(of_topic for _, of_topic in embedded.owned):
            # It does not know yet, and others may own by now what it claims. A member that just received its id owns
            # nothing.
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        member, replaced = self._member_of(group, member_id, instance_id, is_new=is_new)
        subscription = Subscription(
            instance_id=member.instance_id if instance_id is None else instance_id,
            rack_id=member.subscription.rack_id if embedded.rack_id is None else embedded.rack_id,
            client_id=context.client_id,
            client_host=context.client_host,
            topics=tuple(sorted(set(embedded.topics))),
            rebalance_timeout_ms=request.rebalance_timeout // _MILLISECOND,
            assignor=member.subscription.assignor,
            classic=ClassicMembership(request.session_timeout // _MILLISECOND, protocols),
        )
        if replaced is not None and self._downgrade.is_due(group, frozenset({replaced.id}), joining=True):
            self._effects.reply(
                waiter, self._join_downgraded(group, replaced, ConsumerMember(id=member.id, subscription=subscription))
            )
            return
        update = self._updates.plan(group, member, subscription, self._owned(embedded), replaced=replaced)
        self._journal.write(update.changes)
        if replaced is not None:
            self._deadlines.forget(group.id, replaced.id)
        group.needs_metadata_refresh = False
        self._deadlines.forget_join(group.id, member_id)
        # A member that spoke the consumer protocol before has no deadline for its partitions any more.
        self._deadlines.forget_revocation(group.id, member_id)
        self._deadlines.expect_heartbeat(group.id, member_id, request.session_timeout // _MILLISECOND)
        self._deadlines.expect_sync(group.id, member_id, request.rebalance_timeout // _MILLISECOND)
        self._effects.reply(waiter, _joined(member_id, update.member.current.epoch, protocols[0].name))

    def _member_of(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, *, is_new: bool
    ) -> tuple[ConsumerMember, ConsumerMember | None]:
        """Who it is, and whose place it takes. Raises KafkaError."""
        if instance_id is None:
            return group.members.get(member_id, ConsumerMember(id=member_id)), None
        known = group.static_member(instance_id)
        if not is_new:
            return self._departures.check_static(known, member_id, instance_id), None
        if known is None:
            return ConsumerMember(id=member_id), None
        logger.info("static member replaced: group=%s old=%s new=%s", group.id, known.id, member_id)
        return successor_of(known, member_id), known

    def _join_downgraded(self, group: ConsumerGroup, replaced: ConsumerMember, joining: ConsumerMember) -> JoinResult:
        """The last member of the consumer protocol was started anew, with the classic one."""
        members = list(group.members)
        target = group.targets.get(replaced.id, NO_PARTITIONS)
        classic = self._downgrade.carry_out(group, frozenset({replaced.id}), joining, target)
        for member_id in members:
            self._deadlines.forget(group.id, member_id)
        return _joined(joining.id, classic.generation, classic.protocol_name or "")

    def _owned(self, embedded: EmbeddedSubscription) -> Owned:
        by_name = self._topics.image.topics.by_name
        return tuple(
            (topic.topic_id, partitions)
            for name, partitions in embedded.owned
            if (topic := by_name.get(name)) is not None
        )

    # What members say of themselves.

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest, waiter: Waiter[SyncResult]) -> None:
        """Raises KafkaError."""
        member, classic = self._check(group, request.member_id, request.group_instance_id, request.generation_id)
        said = (request.protocol_type, request.protocol_name)
        for one, known in zip(said, (CONSUMER_PROTOCOL_TYPE, classic.protocols[0].name), strict=True):
            if one is not None and one != known:
                raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.target_epoch > member.current.epoch and member.current.state is not MemberState.UNREVOKED_PARTITIONS:
            self._deadlines.expect_join(group.id, member.id, member.subscription.rebalance_timeout_ms)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._deadlines.forget_sync(group.id, member.id)
        self._deadlines.expect_heartbeat(group.id, member.id, classic.session_timeout_ms)
        version = _read(classic.protocols).version
        assignment = assignment_of(self._topics, member.current.assigned, version)
        self._effects.reply(
            waiter, SyncResult(ErrorCode.NONE, request.protocol_type, request.protocol_name, assignment)
        )

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> ErrorCode:
        """Raises KafkaError."""
        member, classic = self._check(group, request.member_id, request.group_instance_id, request.generation_id)
        self._deadlines.expect_heartbeat(group.id, member.id, classic.session_timeout_ms)
        state = member.current.state
        error = ErrorCode.NONE
        if (
            member.current.epoch < group.target_epoch
            or state is MemberState.UNREVOKED_PARTITIONS
            or (state is MemberState.UNRELEASED_PARTITIONS and not group.is_waiting(member))
            # Without a member of the consumer protocol only a join makes the target assignment that is due.
            or (group.are_all_classic_without(frozenset()) and self._updates.is_assignment_due(group))
        ):
            error = ErrorCode.REBALANCE_IN_PROGRESS
            self._deadlines.expect_join(group.id, member.id, member.subscription.rebalance_timeout_ms)
        return error

    def leave(self, group: ConsumerGroup, request: LeaveGroupRequest) -> list[ErrorCode]:
        """Members of either protocol leave: administrators remove those of the consumer protocol this way as well.

        Returns an error for each of the request's members, in their order. Raises KafkaError.
        """
        leaving: dict[str, ConsumerMember] = {}
        errors: list[ErrorCode] = []
        for identity in request.members:
            try:
                member = self._leaving(group, identity)
            except KafkaError as failure:
                errors.append(failure.code)
            else:
                errors.append(ErrorCode.NONE)
                leaving[member.id] = member
        self._departures.remove(group, list(leaving.values()), "it left")
        return errors

    def _leaving(self, group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
        """Raises KafkaError."""
        instance_id = identity.group_instance_id
        if instance_id is not None and identity.member_id == UNKNOWN_MEMBER_ID:
            # An administrator removes a static member (KIP-345).
            member = group.static_member(instance_id)
        elif instance_id is not None:
            member = self._departures.check_static(group.static_member(instance_id), identity.member_id, instance_id)
        else:
            member = group.members.get(identity.member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def _check(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> tuple[ConsumerMember, ClassicMembership]:
        """Raises KafkaError."""
        if instance_id is None:
            member = group.members.get(member_id)
        else:
            member = self._departures.check_static(group.static_member(instance_id), member_id, instance_id)
        classic = None if member is None else member.subscription.classic
        if member is None or classic is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if generation != member.current.epoch:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return member, classic


def _read(protocols: tuple[MemberProtocol, ...]) -> EmbeddedSubscription:
    """All protocols of a member carry the same subscription. Raises KafkaError."""
    try:
        return read_subscription(protocols[0].metadata)
    except CorruptData as error:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(error)) from error


def _joined(member_id: str, generation: int, protocol_name: str) -> JoinResult:
    """No member leads: the coordinator assigns."""
    return JoinResult(
        error_code=ErrorCode.NONE,
        generation_id=generation,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=protocol_name,
        leader="",
        skip_assignment=False,
        member_id=member_id,
        members=(),
    )
