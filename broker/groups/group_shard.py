"""The groups and offsets of one partition of `__consumer_offsets`: replayed from its records, and asked by requests.

Kafka: `GroupCoordinatorShard`, `GroupMetadataManager`.

Pure: it appends to a log that it is given (`coordination/ports.py`); all else that an event brings about it collects as
effects (`coordination/effects.py`), which its shell applies.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.leave_group.v5.request import LeaveGroupRequest
from kio.schema.sync_group.v5.request import SyncGroupRequest
from msgspec import Struct

from ...protocol.batches import NO_PRODUCER_ID
from ...protocol.errors import CorruptData, ErrorCode
from ...quorum.metadata.image import MetadataImage
from ..configuration.consumer_config import SettingsOf
from ..configuration.group_config import GroupConfig
from ..coordination.effects import Effects, Waiter
from ..coordination.ports import TransactionalStateLog
from ..coordination.record_format import version_of
from .classic.group import ClassicState
from .classic.join_phase import JoinContext, JoinPhase
from .classic.membership import Membership
from .classic.records import (
    GROUP_METADATA_KEY,
    GROUP_METADATA_KEYS,
    GROUP_METADATA_VALUE,
    OFFSET_COMMIT_KEY,
    OFFSET_COMMIT_KEYS,
    OFFSET_COMMIT_VALUE,
    group_of,
)
from .classic.results import JoinResult, SyncResult, join_failure, sync_failure
from .classic.sync_phase import SyncPhase
from .classic.timers import JoinDeadline, MemberSession, SyncDeadline
from .consumer.changes import CONSUMER_GROUP_KEYS
from .consumer.consumer_groups import ConsumerGroups
from .consumer.group_table import GroupTable
from .consumer.member_deadlines import MemberTimeout
from .group_counters import GroupCounters
from .offset_protocol import OffsetProtocol
from .offset_store import CommittedOffset, OffsetStore

logger = logging.getLogger(__name__)


class OffsetExpiration(Struct, frozen=True):
    """The timer of `offsets.retention.check.interval.ms`."""


class GroupShard:
    def __init__(
        self,
        log: TransactionalStateLog,
        *,
        config: GroupConfig,
        settings_of: SettingsOf,
        image: Callable[[], MetadataImage],
        now_ms: Callable[[], int],
        steady_now_ms: Callable[[], int],
        new_id: Callable[[], str],
        counters: GroupCounters | None = None,
    ) -> None:
        """`image` is the newest metadata. `now_ms` is the wall clock's, `steady_now_ms` one that does not follow its
        jumps: by that offsets are committed and groups become empty, and both are forgotten, which does not come back.
        `new_id` makes ends of member ids."""
        counters = GroupCounters() if counters is None else counters
        self.effects = Effects()
        self._config = config
        self._steady_now_ms = steady_now_ms
        self._offset_store = OffsetStore()
        self.groups = GroupTable(log)
        self._join_phase = JoinPhase(
            self.groups,
            self.effects,
            now_ms=steady_now_ms,
            new_id=new_id,
            max_size=config.group_max_size,
            initial_delay_ms=config.group_initial_rebalance_delay_ms,
            counters=counters,
        )
        self._sync_phase = SyncPhase(self.groups, self._join_phase, self.effects, steady_now_ms)
        self._membership = Membership(self.groups, self._join_phase)
        self.consumer = ConsumerGroups(
            self.groups,
            log,
            self.effects,
            self._join_phase,
            image,
            config=config.consumer,
            settings_of=settings_of,
            classic_max_size=config.group_max_size,
            now_ms=now_ms,
            new_id=new_id,
            counters=counters,
        )
        self.offsets = OffsetProtocol(
            self.groups,
            self._offset_store,
            self.consumer,
            log,
            self.effects,
            steady_now_ms,
            retention_ms=config.offsets_retention_ms,
            counters=counters,
        )

    # Requests of the classic protocol, to whichever kind of group has the name (KIP-848).

    def join(self, request: JoinGroupRequest, context: JoinContext, waiter: Waiter[JoinResult]) -> None:
        """The reply may come much later. A consumer group without members becomes a classic one. Raises
        KafkaError."""
        group = self.groups.find_consumer(request.group_id)
        if group is not None and not group.is_empty:
            self.consumer.classic_members.join(group, request, context, waiter)
            return
        if group is not None:
            self.consumer.make_classic(group)
        assert self.groups.find_consumer(request.group_id) is None, "a name is one group"
        self._join_phase.join(request, context, waiter)

    def sync(self, request: SyncGroupRequest, waiter: Waiter[SyncResult]) -> None:
        """The reply may come later. Raises KafkaError."""
        group = self.groups.find_consumer(request.group_id)
        if group is not None:
            self.consumer.classic_members.sync(group, request, waiter)
        else:
            self._sync_phase.sync(request, waiter)

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        """Returns REBALANCE_IN_PROGRESS or NONE. Raises KafkaError."""
        group = self.groups.find_consumer(request.group_id)
        if group is not None:
            return self.consumer.classic_members.heartbeat(group, request)
        return self._membership.heartbeat(request)

    def leave(self, request: LeaveGroupRequest) -> list[ErrorCode]:
        """Returns an error for each of the request's members, in their order. Raises KafkaError."""
        group = self.groups.find_consumer(request.group_id)
        if group is not None:
            return self.consumer.classic_members.leave(group, request)
        return self._membership.leave(request)

    # Its state, from the log.

    def is_superseded(self, key: bytes) -> bool:
        """Committed offsets. Groups are few, and what is known of them is in records of several keys."""
        return version_of(key) in OFFSET_COMMIT_KEYS

    def replay(self, offset: int, key: bytes | None, value: bytes | None, producer_id: int = NO_PRODUCER_ID) -> None:
        """One record, in their order; `producer_id` is that of a transaction. Kinds that are not known are left out.

        Raises CorruptData.
        """
        if key is None:
            raise CorruptData(f"the record at offset {offset} has no key")
        kind = version_of(key)
        if kind in OFFSET_COMMIT_KEYS:
            self._replay_offset(offset, key, value, producer_id)
        elif kind in GROUP_METADATA_KEYS:
            group_id = GROUP_METADATA_KEY.read(key).group
            if value is None:
                self.groups.forget(group_id)
            else:
                self.groups.put(group_of(group_id, GROUP_METADATA_VALUE.read(value), self.effects))
        elif kind in CONSUMER_GROUP_KEYS:
            self.consumer.replay(kind, key, value)

    def _replay_offset(self, offset: int, key: bytes, value: bytes | None, producer_id: int) -> None:
        group_id, topic, partition = OFFSET_COMMIT_KEY.read(key)
        if value is None:
            self._offset_store.remove(group_id, topic, partition)
            return
        committed = CommittedOffset.from_record(OFFSET_COMMIT_VALUE.read(value), offset)
        if producer_id == NO_PRODUCER_ID:
            self.offsets.put(group_id, topic, partition, committed)
        else:
            self.offsets.put_pending(producer_id, group_id, topic, partition, committed)

    def replay_end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        self._offset_store.end_transaction(producer_id, is_commit=is_commit)

    def on_loaded(self) -> None:
        """All is replayed: sessions begin, and members have as long as they ever had."""
        for group in list(self.groups):
            for member in group.members.values():
                group.expect_heartbeat(member)
            if len(group.members) > self._config.group_max_size:
                self._join_phase.prepare(group, "the group is larger than group.max.size")
        self.consumer.on_loaded()
        self._schedule_expiration()

    def on_unloaded(self) -> None:
        """Another node coordinates the groups now: waiting requests are answered NOT_COORDINATOR."""
        for group in self.groups:
            for member in group.members.values():
                group.answer_join(member, join_failure(ErrorCode.NOT_COORDINATOR, member.id))
                group.answer_sync(member, sync_failure(ErrorCode.NOT_COORDINATOR))

    def on_timer(self, key: Hashable) -> None:
        """Raises KafkaError: nothing could be written, and the next timer or request tries again."""
        if isinstance(key, MemberSession):
            self._membership.on_session_over(key)
        elif isinstance(key, JoinDeadline):
            self._join_phase.on_deadline(key)
        elif isinstance(key, SyncDeadline):
            self._sync_phase.on_deadline(key)
        elif isinstance(key, MemberTimeout):
            self.consumer.on_timer(key)
        else:
            assert isinstance(key, OffsetExpiration), key
            self._expire()

    def _schedule_expiration(self) -> None:
        self.effects.schedule_timer(OffsetExpiration(), self._config.offsets_retention_check_interval_ms)

    def _expire(self) -> None:
        try:
            self.offsets.expire(self._steady_now_ms())
        finally:
            self._schedule_expiration()

    def is_empty(self, group_id: str) -> bool:
        consumer_group = self.groups.find_consumer(group_id)
        if consumer_group is not None:
            return consumer_group.is_empty
        group = self.groups.find(group_id)
        return group is None or group.state is ClassicState.EMPTY
