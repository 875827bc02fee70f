"""The groups of one coordinator without a node: a log in memory, and effects applied to timers turned by hand and to
answers that are kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any, Generic, TypeVar
from uuid import UUID

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.sync_group.v5.request import SyncGroupRequest, SyncGroupRequestAssignment
from kio.schema.types import GroupId
from kio.static.primitive import i32, i32Timedelta
from puppet_timers import PuppetTimers

from penstock.broker.configuration.consumer_config import ConsumerGroupConfig, GroupSettings, MigrationPolicy
from penstock.broker.configuration.group_config import GroupConfig
from penstock.broker.coordination.effects import CancelTimer, Effect, Reply, ScheduleTimer, Waiter
from penstock.broker.coordination.ports import StateRecord, TransactionProducer
from penstock.broker.groups.classic.join_phase import JoinContext
from penstock.broker.groups.classic.results import JoinResult, SyncResult
from penstock.broker.groups.consumer.expression_resolver import ResolveExpressions
from penstock.broker.groups.group_shard import GroupShard
from penstock.broker.groups.offset_records import OffsetRecords, TopicOffsets, encode_offsets
from penstock.protocol.batches import read_header
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.records import EncodedRecords, batch_of, read_records
from penstock.quorum.metadata.image import EMPTY_IMAGE, MetadataImage

GROUP = "group"
INITIAL_DELAY_MS = 3_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000
RETENTION_MS = 7 * 24 * 3_600_000
EXPIRATION_CHECK_MS = 600_000
CONFIG = GroupConfig(
    group_min_session_timeout_ms=6_000,
    group_max_session_timeout_ms=1_800_000,
    group_initial_rebalance_delay_ms=INITIAL_DELAY_MS,
    group_max_size=2**31 - 1,
    consumer=ConsumerGroupConfig(
        is_enabled=True,
        assignors=("uniform", "range"),
        max_size=2**31 - 1,
        migration_policy=MigrationPolicy.BIDIRECTIONAL,
        regex_refresh_interval_ms=600_000,
    ),
    offset_metadata_max_bytes=4_096,
    offsets_commit_timeout_ms=5_000,
    offsets_load_buffer_size=5 * 1024 * 1024,
    offsets_retention_ms=RETENTION_MS,
    offsets_retention_check_interval_ms=EXPIRATION_CHECK_MS,
    offsets_topic_num_partitions=50,
    offsets_topic_replication_factor=3,
    is_replication_factor_capped=True,
    offsets_topic_segment_bytes=100 * 1024 * 1024,
    offsets_topic_compression_codec=0,
)
SETTINGS = GroupSettings(session_timeout_ms=45_000, heartbeat_interval_ms=5_000, assignment_interval_ms=0)
T = TypeVar("T")


class PuppetLog:
    """Keeps what is appended; `refuses` is the error of the next append."""

    def __init__(self) -> None:
        self.records: list[StateRecord] = []
        self.refuses: ErrorCode | None = None
        self.producers: list[TransactionProducer] = []

    def append(self, records: Sequence[StateRecord]) -> int:
        if self.refuses is not None:
            error, self.refuses = self.refuses, None
            raise KafkaError(error)
        self.records += records
        return len(self.records) - len(records)

    def append_encoded(self, records: EncodedRecords) -> int:
        batch = batch_of(records, timestamp_ms=0)
        found = read_records(batch, read_header(batch, 0))
        return self.append([StateRecord(one.key or b"", one.value) for one in found])

    def append_in_transaction(self, records: EncodedRecords, producer: TransactionProducer) -> int:
        self.producers.append(producer)
        return self.append_encoded(records)


@dataclass
class Waiting(Waiter[T], Generic[T]):
    """One request's answer, when it has come."""

    answers: list[T] = field(default_factory=list)

    def __call__(self, response: T) -> None:
        assert not self.answers, "a request is answered once"
        self.answers.append(response)

    @property
    def is_open(self) -> bool:
        return not self.answers

    @property
    def answer(self) -> Any:
        (answer,) = self.answers
        return answer

    @property
    def error(self) -> ErrorCode:
        return ErrorCode(int(self.answer.error_code))


class GroupPuppet:
    def __init__(
        self,
        log: PuppetLog | None = None,
        config: GroupConfig = CONFIG,
        settings: GroupSettings = SETTINGS,
        image: MetadataImage = EMPTY_IMAGE,
        now_ms: int = 1_000_000,
    ) -> None:
        """With a log, what is in it is loaded."""
        self.log = PuppetLog() if log is None else log
        self.config = config
        self.settings = settings
        self.image = image
        # What is done aside, until the test wants it done.
        self.aside: list[Callable[[], None]] = []
        self.is_aside_failing = False
        self.is_unloaded = False
        self.timers = PuppetTimers(now_ms, self._on_timer)
        self.clock_ahead_ms = 0
        """How far the wall clock has jumped."""
        numbers = count(1)
        self.shard = GroupShard(
            self.log,
            config=config,
            settings_of=lambda _group: self.settings,
            image=lambda: self.image,
            now_ms=lambda: self.timers.now_ms + self.clock_ahead_ms,
            steady_now_ms=lambda: self.timers.now_ms,
            new_id=lambda: f"id{next(numbers)}",
        )
        for offset, record in enumerate(self.log.records):
            self.shard.replay(offset, record.key, record.value)
        with self.event() as shard:
            shard.on_loaded()

    @contextmanager
    def event(self) -> Iterator[GroupShard]:
        """As `CoordinatorContext.event`."""
        left = self.shard.effects.take()
        assert not left, f"collected by a call that was no event: {left}"
        try:
            yield self.shard
        finally:
            for effect in self.shard.effects.take():
                self.apply(effect)

    def apply(self, effect: Effect) -> None:
        if isinstance(effect, Reply):
            assert isinstance(effect.waiter, Waiting)
            effect.waiter(effect.response)
        elif isinstance(effect, ScheduleTimer):
            self.timers.schedule(effect.key, effect.delay_ms)
        elif isinstance(effect, CancelTimer):
            self.timers.cancel(effect.key)
        else:
            assert isinstance(effect, ResolveExpressions)
            self.aside.append(lambda: self._resolve(effect))

    def offsets(
        self,
        topic: str,
        topic_id: UUID,
        partitions: Sequence[int],
        offset: int,
        metadata: str | None = None,
        *,
        group: str = GROUP,
    ) -> OffsetRecords:
        """Of a commit by the group."""
        committed = [(partition, offset, -1, metadata) for partition in partitions]
        return encode_offsets(
            group,
            [TopicOffsets(topic, topic_id, max(partitions) + 1, committed)],
            now_ms=self.timers.now_ms,
            metadata_bytes_max=self.config.offset_metadata_max_bytes,
        )

    def _on_timer(self, key: Hashable) -> None:
        with self.event() as shard:
            shard.on_timer(key)

    def _resolve(self, effect: ResolveExpressions) -> None:
        matching = effect.matching_topics(lambda: not self.is_unloaded)
        if self.is_unloaded:
            return
        with self.event() as shard:
            if self.is_aside_failing:
                shard.consumer.expressions.on_failed(effect)
            else:
                shard.consumer.expressions.on_resolved(effect, matching)

    def unload(self) -> None:
        self.is_unloaded = True
        with self.event() as shard:
            shard.on_unloaded()

    def restarted(self) -> GroupPuppet:
        """Another coordinator of the same log."""
        return GroupPuppet(self.log, self.config, self.settings, self.image, self.timers.now_ms)

    def join(
        self,
        member_id: str = "",
        *,
        protocols: Mapping[str, bytes] | Sequence[tuple[str, bytes]] | None = None,
        protocol_type: str = "consumer",
        instance_id: str | None = None,
        client_id: str = "client",
        requires_member_id: bool = False,
        may_skip_assignment: bool = True,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
    ) -> Waiting[JoinResult]:
        waiting: Waiting[JoinResult] = Waiting()
        known = protocols or {"range": b"meta"}
        request = JoinGroupRequest(
            group_id=GroupId(GROUP),
            session_timeout=_timedelta(session_ms),
            rebalance_timeout=_timedelta(rebalance_ms),
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=tuple(
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in (known.items() if isinstance(known, Mapping) else known)
            ),
            reason=None,
        )
        context = JoinContext(
            client_id=client_id,
            client_host="/127.0.0.1",
            requires_member_id=requires_member_id,
            may_skip_assignment=may_skip_assignment,
        )
        try:
            with self.event() as shard:
                shard.join(request, context, waiting)
        except KafkaError as error:
            raise AssertionError(f"join raised {error.code.name}") from error
        return waiting

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: Mapping[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        protocol_name: str | None = None,
    ) -> Waiting[SyncResult]:
        """Raises KafkaError."""
        waiting: Waiting[SyncResult] = Waiting()
        request = SyncGroupRequest(
            group_id=GroupId(GROUP),
            generation_id=i32(generation),
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=None,
            protocol_name=protocol_name,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=one, assignment=assignment)
                for one, assignment in (assignments or {}).items()
            ),
        )
        with self.event() as shard:
            shard.sync(request, waiting)
        return waiting

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None = None) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=GroupId(GROUP),
            generation_id=i32(generation),
            member_id=member_id,
            group_instance_id=instance_id,
        )
        try:
            with self.event() as shard:
                return shard.heartbeat(request)
        except KafkaError as error:
            return error.code

    def leave(self, *members: tuple[str, str | None]) -> list[ErrorCode]:
        request = LeaveGroupRequest(
            group_id=GroupId(GROUP),
            members=tuple(
                MemberIdentity(member_id=member_id, group_instance_id=instance_id, reason=None)
                for member_id, instance_id in members
            ),
        )
        with self.event() as shard:
            return shard.leave(request)

    def stable(self, count_of_members: int = 2, **options: Any) -> tuple[int, list[str]]:
        """Generation and members, the leader first, of a group whose members all have an assignment, named as it is."""
        joins = [self.join(**options) for _ in range(count_of_members)]
        self.timers.wait(2 * INITIAL_DELAY_MS)
        members = [join.answer.member_id for join in joins]
        generation = joins[0].answer.generation_id
        syncs = [self.sync(member_id, generation) for member_id in members[1:]]
        syncs.append(self.sync(members[0], generation, {one: one.encode() for one in members}))
        assert all(sync.error is ErrorCode.NONE for sync in syncs)
        return generation, members

    @property
    def state(self) -> str:
        group = self.shard.groups.find(GROUP)
        assert group is not None
        return group.state.value


def _timedelta(milliseconds: int) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(milliseconds=milliseconds))
