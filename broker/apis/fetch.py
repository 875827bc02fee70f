"""Fetch, versions 4 to 18.

A long poll: answered at once if there is enough to read, an error or a diverging epoch, or if max_wait_ms is 0; else by
the append that completes min_bytes, or at the deadline with the records that exist. Records are never copied or
decoded: a response consists of slices of segment files.

    version  KIP
    4        98   isolation level
    5        107  log start offset
    7        227  sessions
    9        320  leader epochs
    11       392  closest replica: followers answer consumers up to their own high watermark
    12       320  divergence by last fetched epoch
    13       516  topic ids
    15       903  replica state
    16       951  current leader

The fetch offset of a follower (replica id ≥ 0) is the leader's proof of replication, so the fetch is refused with
CLUSTER_AUTHORIZATION_FAILED unless the connection is authenticated as that node. It reads to the log end offset.

A consumer that has exceeded its quota gets an empty response with the throttle time at once, and is muted for it; its
session stays as it was (KIP-219).

Where the protocol leaves room: a second request of a fetch session completes the first one's wait.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode
from ...protocol.fetch import (
    FIRST_LEADER_HINT_VERSION,
    FIRST_ZSTD_VERSION,
    READ_COMMITTED,
    FetchRequest,
    FetchTopic,
    TopicFetchResponse,
    decode_fetch,
    encode_fetch_error,
    encode_fetch_response,
)
from ...protocol.produce import NodeEndpoint
from ...storage.log.file_slice import FileSlice
from ..fetching.delayed_fetch import DelayedFetch
from ..fetching.fetch_read import (
    FetchAnswers,
    FetchEnd,
    FetchLimits,
    FetchRead,
    FollowerFetch,
    LeaderThrottle,
    PartitionAnswer,
    Tier,
    failed,
)
from ..fetching.rules.closest_replica import Reader
from ..fetching.rules.fetch_session import FetchablePartition, FollowerId, partition_key
from ..fetching.rules.fetch_sessions import FetchContext, FetchSessions
from ..network.handlers import Handlers
from ..network.request import Authorizer, Request, RequestContext
from ..network.rules.request_statistics import RequestStatistics
from ..replicas.partition import Partition
from ..replicas.replica_manager import ReplicaManager
from ..replicas.rules.topic_counters import TopicCounters
from ..replication.rules.replication_quota import ReplicationQuota

FUTURE_REPLICA_ID: Final = -3
"""A replica that moves between the log directories of one broker; like followers it reads to the log end offset."""
ZSTD_TYPE: Final = "zstd"
"""Of the config `compression.type`."""
FIRST_STORAGE_ERROR_VERSION: Final = 6
FIRST_CLOSEST_REPLICA_VERSION: Final = 11
_NONE_HOSTED: Final[Mapping[int, Partition]] = MappingProxyType({})
ELSEWHERE: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class FetchHandler:
    def __init__(
        self,
        partitions: ReplicaManager,
        sessions: FetchSessions,
        *,
        max_bytes: int,
        is_closest_replica_read: bool,
        leader_quota: ReplicationQuota,
        requests: RequestStatistics,
        monotonic_ms: Callable[[], int],
        call_soon: Callable[[Callable[[], None]], object],
        tier: Callable[[], Tier | None] = lambda: None,
    ) -> None:
        """`max_bytes` is `fetch.max.bytes`: the upper bound of one response, except for a single larger batch.

        With `is_closest_replica_read` leaders redirect consumers that send their rack to a follower in it;
        `leader_quota` throttles the bytes sent to followers; `requests` counts the errors of partitions. `monotonic_ms`
        is the clock of the followers' progress; `call_soon` calls at the end of this turn of the event loop. `tier` is
        where tiered storage is on.
        """
        self._partitions = partitions
        self._sessions = sessions
        self._max_bytes = max_bytes
        self._is_closest_replica_read = is_closest_replica_read
        self._leader_quota = leader_quota
        self._requests = requests
        self._monotonic_ms = monotonic_ms
        self._call_soon = call_soon
        self._tier = tier

    def begin(self, request: Request) -> None:
        version = request.api_version
        message = decode_fetch(version, request.body, request.body_offset)
        is_follower = message.replica_id >= 0
        if is_follower and request.context.node_id != message.replica_id:
            error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            request.respond(encode_fetch_error(version, request.correlation_id, message, error))
            return
        context = self._sessions.begin(
            version=version,
            session_id=message.session_id,
            session_epoch=message.session_epoch,
            partitions=self._wanted(message.topics, is_follower=is_follower),
            forgotten=[
                partition_key(topic.name, topic.topic_id, index)
                for topic in message.forgotten_topics
                for index in topic.partitions
            ],
            follower=FollowerId(message.replica_id, message.replica_epoch) if is_follower else None,
            now_ms=self._monotonic_ms(),
        )
        max_bytes = min(message.max_bytes, self._max_bytes)
        quota = request.context.quota
        if quota is not None:
            # More would be throttled, and read for nothing.
            max_bytes = min(max_bytes, quota.fetch_bytes_max())
        is_leader_only = is_follower or version < FIRST_CLOSEST_REPLICA_VERSION
        reader: Reader | None = None
        if self._is_closest_replica_read and message.rack_id and not is_leader_only:
            reader = Reader(message.rack_id, request.context.listener_name)
        limits = FetchLimits(fetch_end(message), min(message.min_bytes, max_bytes), max_bytes, is_leader_only, reader)
        throttle: LeaderThrottle | None = None
        if is_follower and self._leader_quota.is_set:
            throttle = LeaderThrottle(self._leader_quota, message.replica_id, self._monotonic_ms)
        tier = self._tier()
        denied: Container[FetchablePartition] | None = None
        if request.context.authorizer is not None and not is_follower:
            denied = self._denied(request.context.authorizer, request.context, context.partitions)
        read = FetchRead(self._partitions, context, limits, throttle, tier, denied)
        follower: FollowerFetch | None = None
        if is_follower:
            follower = FollowerFetch(message.replica_id, message.replica_epoch, self._monotonic_ms())
        # A request that its session refused has no partitions: it is answered at once.
        is_enough = read.read(follower)
        max_wait_ms = message.max_wait_ms
        if read.waits_for_tier and tier is not None:
            # Whatever the client says: a store needs some time to begin, and may not answer (KIP-1018).
            max_wait_ms = tier.max_wait_ms
        if is_enough or max_wait_ms <= 0:
            self._respond(request, read)
        else:
            fetch = DelayedFetch(read, partial(self._respond, request), self._partitions.fetches, self._call_soon)
            request.on_disconnect = fetch.on_disconnect
            fetch.park(max_wait_ms)
        # A follower's fetch offset may complete other requests: their responses follow its own.
        for partition, effects in read.effects:
            self._partitions.apply_effects(partition, effects)

    def _wanted(self, topics: Sequence[FetchTopic], *, is_follower: bool) -> list[FetchablePartition]:
        wanted = []
        for topic, topic_id, asked in topics:
            # The session of a follower watches its partitions from when `FetchRead` finds them.
            hosted = _NONE_HOSTED if is_follower else self._partitions.hosted_of(topic, topic_id)
            name = next(iter(hosted.values())).topic if hosted else topic
            wanted += [
                FetchablePartition(
                    name,
                    topic_id,
                    one.partition_index,
                    one.fetch_offset,
                    one.partition_max_bytes,
                    one.current_leader_epoch,
                    one.last_fetched_epoch,
                    one.log_start_offset,
                    hosted.get(one.partition_index),
                )
                for one in asked
            ]
        return wanted

    def _denied(
        self, authorizer: Authorizer, client: RequestContext, partitions: Sequence[FetchablePartition]
    ) -> Container[FetchablePartition] | None:
        """Returns the partitions whose topics the client may not read, None if it may read all of them."""
        permit = authorizer.permit(client)
        readable = permit.readable
        # Denied ones are asked for again each time: they are to be logged.
        by_topic: dict[str, list[FetchablePartition]] = {}
        for wanted in partitions:
            if wanted.permit is permit:
                continue
            name = wanted.topic
            if name is None and wanted.topic_id is not None:
                name = self._partitions.topic_name(wanted.topic_id)
            if name in readable:
                wanted.permit = permit
            elif name is not None:
                by_topic.setdefault(name, []).append(wanted)
        if not by_topic:
            return None
        denied: set[FetchablePartition] = set()
        for name, of_topic in by_topic.items():
            if client.may(ApiKey.FETCH, AclOperation.READ, ResourceType.TOPIC, name, count=len(of_topic)):
                for wanted in of_topic:
                    wanted.permit = permit
            else:
                denied.update(of_topic)
                for wanted in of_topic:
                    wanted.permit = wanted.hosted = None
        return denied or None

    def _respond(self, request: Request, read: FetchRead) -> None:
        version = request.api_version
        context = read.context
        if context.session is not None:
            context.session.parked = None
        read.on_sent()
        if context.error_code:
            self._requests.note_error(ApiKey.FETCH, context.error_code)
        answers = read.answers
        if version < FIRST_ZSTD_VERSION:
            answers = [(wanted, _for_old_client(version, wanted, answer)) for wanted, answer in answers]
        quota = request.context.quota
        if quota is not None:
            throttle_time_ms = quota.on_fetched(_size_of(answers))
            if throttle_time_ms:
                self._respond_throttled(request, context, throttle_time_ms)
                return
        session_id, sent = self._sessions.finish(context, answers, self._monotonic_ms())
        topics: list[TopicFetchResponse[FileSlice]] = []
        group: list[PartitionAnswer] = []
        last: FetchablePartition | None = None
        endpoints: dict[int, NodeEndpoint] = {}
        for wanted, answer in sent:
            if last is None or wanted.topic_id is not last.topic_id or wanted.topic != last.topic:
                group = []
                topics.append((wanted.topic, wanted.topic_id, group))
                last = wanted
            if answer.slices:
                if wanted.hosted is not None:
                    _count_out(wanted.hosted.counters, answer.slices, is_follower=context.is_of_follower)
            elif answer.error_code:
                self._requests.note_error(ApiKey.FETCH, answer.error_code)
                if answer.error_code in ELSEWHERE and version >= FIRST_LEADER_HINT_VERSION:
                    leader, endpoint = self._partitions.leader_hint(
                        wanted.topic, wanted.index, request.context.listener_name
                    )
                    answer = answer._replace(current_leader=leader)
                    if endpoint is not None:
                        endpoints[endpoint.node_id] = endpoint
            group.append(answer)
        request.respond(
            encode_fetch_response(
                version,
                request.correlation_id,
                topics,
                error_code=context.error_code,
                session_id=session_id,
                node_endpoints=tuple(endpoints.values()),
            )
        )

    def _respond_throttled(self, request: Request, context: FetchContext, throttle_time_ms: int) -> None:
        """Without partitions: the consumer asks for their records again after the throttle time (KIP-219)."""
        frame: list[bytes | FileSlice] = encode_fetch_response(
            request.api_version,
            request.correlation_id,
            (),
            error_code=context.error_code,
            session_id=self._sessions.throttled(context),
            throttle_time_ms=throttle_time_ms,
        )
        request.respond(frame, throttle_time_ms)


def register(handlers: Handlers, handler: FetchHandler) -> None:
    handlers.add(ApiKey.FETCH, handler.begin, overlaps=True)


def fetch_end(message: FetchRequest) -> FetchEnd:
    if message.replica_id >= 0 or message.replica_id == FUTURE_REPLICA_ID:
        return FetchEnd.LOG_END
    return FetchEnd.LAST_STABLE_OFFSET if message.isolation_level == READ_COMMITTED else FetchEnd.HIGH_WATERMARK


def _size_of(answers: FetchAnswers) -> int:
    """Bytes of records. What stands around them is not counted: a response of as many as the window of a quota allows
    would always be throttled."""
    size = 0
    for _, answer in answers:
        for part in answer.slices:
            size += part.size
    return size


def _count_out(counters: TopicCounters, slices: Sequence[FileSlice], *, is_follower: bool) -> None:
    size = 0
    for part in slices:
        size += part.size
    if is_follower:
        counters.replication_bytes_out += size
    else:
        counters.bytes_out += size


def _for_old_client(version: int, wanted: FetchablePartition, answer: PartitionAnswer) -> PartitionAnswer:
    """Clients below version 10 cannot read zstd; those below 6 do not know KAFKA_STORAGE_ERROR."""
    if answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR and version < FIRST_STORAGE_ERROR_VERSION:
        return answer._replace(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if wanted.hosted is not None and wanted.hosted.log.config.compression_type == ZSTD_TYPE:
        return failed(wanted.index, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    return answer
