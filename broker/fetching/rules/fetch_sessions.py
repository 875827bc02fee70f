"""Fetch session cache (KIP-227): requests and responses carry only changes. Kafka: `FetchManager`, `FetchSessionCache`.

    epoch of the request   kind of fetch
    0                      full fetch that creates a session; the request's session id, if any, is closed
    -1                     full fetch without a session; the request's session id, if any, is closed
    n > 0                  incremental: the session's partitions; the request adds, updates and forgets some

A session's epoch counts its requests; it goes from the largest 32-bit integer back to 1. A session has its topics
either by name (requests below version 13) or by id (KIP-516), and never changes that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from msgspec import Struct

from ....protocol.errors import ErrorCode
from ....protocol.fetch import FIRST_TOPIC_ID_VERSION, NO_SESSION
from .fetch_session import FetchablePartition, FetchSession, FollowerId, PartitionKey
from .follower_session import FollowerSession

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = 2**31 - 1

MIN_EVICTION_MS = 120_000
"""A session unused for this long can be evicted by any other; one younger than this is safe from larger ones."""


class FetchAnswer(Protocol):
    """The fields of one partition's answer that sessions read."""

    @property
    def error_code(self) -> int: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def log_start_offset(self) -> int: ...
    @property
    def slices(self) -> Sequence[object]: ...
    @property
    def preferred_read_replica(self) -> int: ...
    @property
    def diverging_epoch(self) -> object | None: ...


Answer = TypeVar("Answer", bound=FetchAnswer)


class FetchContext(NamedTuple):
    """One request: its partitions to read, and its session or the one to create. Kafka: `FetchContext`."""

    partitions: tuple[FetchablePartition, ...] = ()
    error_code: ErrorCode = ErrorCode.NONE
    """Error for the whole request, which then has no partitions."""
    session: FetchSession | None = None
    wants_session: bool = False
    follower: FollowerId | None = None
    uses_ids: bool = False

    @property
    def is_of_follower(self) -> bool:
        return self.follower is not None or (self.session is not None and self.session.follower is not None)


class FetchSessionStatistics(Struct, frozen=True, kw_only=True):
    session_count: int
    """Kafka: NumIncrementalFetchSessions."""
    partition_count: int
    """Kafka: NumIncrementalFetchPartitionsCached."""
    eviction_count: int
    """Since start. Kafka: IncrementalFetchSessionEvictionsPerSec."""


class FetchSessions:
    """The fetch sessions of a node, at most `max_slots` (`max.incremental.fetch.session.cache.slots`)."""

    def __init__(self, max_slots: int, next_id: Callable[[], int]) -> None:
        """`next_id` returns random positive 32-bit integers: only ids that are hard to guess protect a session from
        other clients' mistakes."""
        self._max_slots = max_slots
        self._next_id = next_id
        # Least recently used first.
        self._sessions: dict[int, FetchSession] = {}
        self._eviction_count = 0

    def statistics(self) -> FetchSessionStatistics:
        return FetchSessionStatistics(
            session_count=len(self._sessions),
            partition_count=sum(len(session.partitions) for session in self._sessions.values()),
            eviction_count=self._eviction_count,
        )

    def begin(
        self,
        *,
        version: int,
        session_id: int,
        session_epoch: int,
        partitions: Sequence[FetchablePartition],
        forgotten: Iterable[PartitionKey],
        follower: FollowerId | None,
        now_ms: int,
    ) -> FetchContext:
        """Applies a request to its session; returns the partitions to read. `follower` is None for a consumer's
        request. Kafka: `FetchManager.newContext`."""
        uses_ids = version >= FIRST_TOPIC_ID_VERSION
        if session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._end(session_id)
            if len({partition.index for partition in partitions}) < len(partitions):
                # Of a partition that is in the request twice, the last entry counts.
                partitions = tuple({partition.key: partition for partition in partitions}.values())
            return FetchContext(
                partitions=tuple(partitions),
                wants_session=session_epoch == INITIAL_EPOCH,
                follower=follower,
                uses_ids=uses_ids,
            )
        session = self._sessions.get(session_id)
        if session is None or session.follower != follower:
            return FetchContext(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != session_epoch:
            return FetchContext(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_ids != uses_ids:
            return FetchContext(error_code=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if session.parked is not None:
            session.parked.interrupt()
        known = session.partitions
        for partition in partitions:
            key = partition.key
            cached = known.get(key)
            if cached is None:
                known[key] = partition
                session.on_named(partition)
            else:
                cached.fetch_offset = partition.fetch_offset
                cached.max_bytes = partition.max_bytes
                cached.current_leader_epoch = partition.current_leader_epoch
                cached.last_fetched_epoch = partition.last_fetched_epoch
                cached.log_start_offset = partition.log_start_offset
                session.on_named(cached)
        for key in forgotten:
            gone = known.pop(key, None)
            if gone is not None:
                session.on_forgotten(gone)
        del self._sessions[session_id]
        if not known:
            return FetchContext()
        self._sessions[session_id] = session
        session.last_used_ms = now_ms
        session.epoch = session.epoch + 1 if session.epoch < MAX_EPOCH else 1
        return FetchContext(partitions=session.wanted(), session=session)

    def finish(
        self, context: FetchContext, answers: Sequence[tuple[FetchablePartition, Answer]], now_ms: int
    ) -> tuple[int, Sequence[tuple[FetchablePartition, Answer]]]:
        """Returns the session id for the response, and the answers that must be in it.

        `answers` has every partition of the context; an incremental response omits partitions without changes, and a
        caller may omit those that are `is_known` before. Kafka: `FetchContext.updateAndGenerateResponseData`.
        """
        session = context.session
        if session is None:
            return self._create(context, answers, now_ms), answers
        return session.id, [pair for pair in answers if self._must_answer(session, *pair)]

    def throttled(self, context: FetchContext) -> int:
        """Returns the session id for a response without partitions, because its client is throttled: the session, which
        knows the request, has sent nothing, and none is created. Kafka: `FetchContext.getThrottledResponse`."""
        return NO_SESSION if context.session is None else context.session.id

    def _create(self, context: FetchContext, answers: Sequence[tuple[FetchablePartition, Answer]], now_ms: int) -> int:
        """Creates the session that the request wants; returns its id, or NO_SESSION if it wants none or none fits."""
        if not context.wants_session:
            return NO_SESSION
        follower = context.follower
        if follower is not None:
            self._end_those_before(follower)
        if not self._has_room(len(answers), follower is not None, now_ms):
            return NO_SESSION
        session_id = self._next_id()
        while session_id in self._sessions:
            session_id = self._next_id()
        by_key = {}
        for partition, answer in answers:
            partition.sent_high_watermark = answer.high_watermark
            partition.sent_log_start_offset = answer.log_start_offset
            by_key[partition.key] = partition
        if follower is None:
            session = FetchSession(session_id, by_key, uses_ids=context.uses_ids, now_ms=now_ms)
        else:
            session = FollowerSession(session_id, by_key, follower=follower, uses_ids=context.uses_ids, now_ms=now_ms)
        self._sessions[session_id] = session
        return session_id

    def _end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.on_end()

    def _end_those_before(self, follower: FollowerId) -> None:
        """Closes the follower's earlier sessions: it has one with a leader. A session of an earlier process is dead,
        and one of the same process was lost with the response or connection that created it."""
        for session in list(self._sessions.values()):
            other = session.follower
            if other is not None and other.replica_id == follower.replica_id and other <= follower:
                self._end(session.id)

    def _must_answer(self, session: FetchSession, partition: FetchablePartition, answer: Answer) -> bool:
        """Notes the offsets that are sent; returns True if the answer must be in the response.

        Kafka: `CachedPartition.maybeUpdateResponseData`.
        """
        is_new = not partition.is_known(answer.high_watermark, answer.log_start_offset)
        partition.sent_high_watermark = answer.high_watermark
        partition.sent_log_start_offset = answer.log_start_offset
        if answer.error_code:
            # An impossible value, so that the partition is in the answer again once the error is gone.
            partition.sent_high_watermark = -1
            return True
        if answer.slices:
            session.on_read(partition)
            return True
        return is_new or answer.preferred_read_replica >= 0 or answer.diverging_epoch is not None

    def _has_room(self, partition_count: int, is_privileged: bool, now_ms: int) -> bool:
        """Evicts a session, if needed and allowed, for one with `partition_count` partitions; returns True if it fits.

        A stale session is evicted first, else the smallest that is worth less than the new one; a follower's session
        is worth more than any consumer's. Kafka: `FetchSessionCache.tryEvict`.
        """
        if len(self._sessions) < self._max_slots:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.last_used_ms > MIN_EVICTION_MS:
            return self._evict(oldest)
        evictable = [
            session
            for session in self._sessions.values()
            if now_ms - session.created_ms > MIN_EVICTION_MS or (is_privileged and session.follower is None)
        ]
        if not evictable:
            return False
        least = min(evictable, key=_worth)
        return (is_privileged, partition_count, 0) >= _worth(least) and self._evict(least)

    def _evict(self, session: FetchSession) -> bool:
        self._end(session.id)
        self._eviction_count += 1
        return True


def _worth(session: FetchSession) -> tuple[bool, int, int]:
    return session.follower is not None, len(session.partitions), session.id
