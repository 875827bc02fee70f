"""ListOffsets, versions 1 to 11: offsets by position or by timestamp.

    timestamp  from version  requested offset
    -1         1             latest: the high watermark, or the last stable offset for read_committed (KIP-98)
    -2         1             earliest: the log start offset
    -3         7             the record with the largest timestamp (KIP-734)
    -4         8             earliest on this node's disk (KIP-405)
    -5         9             last in the tier (KIP-1005); none for topics without one
    -6         11            earliest that is not in the tier yet (KIP-1023); none for topics without one
    ≥ 0        1             the first record with that timestamp or a larger one

Only records that the client may read are found. While the high watermark is below the start offset of the leader epoch,
the latest offset is unknown: OFFSET_NOT_AVAILABLE (KIP-207), up to version 4 LEADER_NOT_AVAILABLE. Requests of replicas
and of debuggers read the whole log. A timestamp is looked for in the tier first, where only that has the start of
the log: such a request is answered later, what was not found by then with REQUEST_TIMED_OUT (KIP-1075: TimeoutMs of the
request from version 10 on, else `remote.list.offsets.request.timeout.ms`). Kafka: `Partition.fetchOffsetForTimestamp`,
`DelayedRemoteListOffsets`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeAlias

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.batches import NO_TIMESTAMP
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.fetch import READ_COMMITTED
from ...protocol.ids import NO_LEADER_EPOCH, LeaderEpoch, NodeId
from ...protocol.list_offsets import (
    AskedPartition,
    ListOffsetsRequest,
    ToldPartition,
    ToldTopic,
    decode_list_offsets,
    encode_list_offsets_response,
)
from ...storage.log.timestamp_lookup import TimestampOffset
from ..cluster.rules.offset_questions import OffsetTime
from ..network.handlers import Handlers
from ..network.large_messages import ITEMS_A_TURN, LARGE_BODY_BYTES, in_thread, in_turns
from ..network.request import Request, RequestContext
from ..replicas.partition import Partition
from ..replicas.replica_manager import ReplicaManager

logger = logging.getLogger(__name__)

FIRST_VERSIONS: Final[Mapping[int, int]] = {
    OffsetTime.LATEST: 1,
    OffsetTime.EARLIEST: 1,
    OffsetTime.MAX_TIMESTAMP: 7,
    OffsetTime.EARLIEST_LOCAL: 8,
    OffsetTime.LATEST_TIERED: 9,
    OffsetTime.EARLIEST_PENDING_UPLOAD: 11,
}
FIRST_OFFSET_NOT_AVAILABLE_VERSION: Final = 5
CONSUMER_REPLICA_ID: Final = -1
DEBUGGING_REPLICA_ID: Final = -2


class FoundOffset(NamedTuple):
    offset: int = -1
    timestamp_ms: int = NO_TIMESTAMP
    leader_epoch: LeaderEpoch = NO_LEADER_EPOCH


NOT_FOUND: Final = FoundOffset()


class TierSearch(Protocol):
    """The part of `tiers/timestamp_search.py` that is used here."""

    @property
    def timeout_ms(self) -> int:
        """`remote.list.offsets.request.timeout.ms`."""

    async def find_by_timestamp(self, partition: Partition, timestamp_ms: int) -> TimestampOffset | None:
        """Raises KafkaError."""


TierOffsets: TypeAlias = Mapping[tuple[str, int], FoundOffset | KafkaError]
"""What the tier has for the partitions whose timestamp was looked for there, where it has something."""


def register(
    handlers: Handlers, partitions: ReplicaManager, tier: Callable[[], TierSearch | None] = lambda: None
) -> None:
    handlers.add(ApiKey.LIST_OFFSETS, ListOffsetsHandler(partitions, tier).begin)


class ListOffsetsHandler:
    def __init__(self, partitions: ReplicaManager, tier: Callable[[], TierSearch | None]) -> None:
        self._partitions = partitions
        self._tier = tier

    def begin(self, request: Request) -> Awaitable[None] | None:
        if len(request.body) - request.body_offset > LARGE_BODY_BYTES:
            return self._answer_large(request, bytes(request.body[request.body_offset :]))
        message = decode_list_offsets(request.api_version, request.body, request.body_offset)
        return self._answer(request, message)

    async def _answer_large(self, request: Request, body: bytes) -> None:
        try:
            message = await in_thread(decode_list_offsets, request.api_version, body, 0)
        except CorruptData as error:
            request.close_connection(str(error))
            return
        waiting = self._answer(request, message)
        if waiting is not None:
            await waiting

    def _answer(self, request: Request, message: ListOffsetsRequest) -> Awaitable[None] | None:
        question = self._question(request, message)
        search = self._tier()
        if search is not None and any(_in_tier(self._partitions, message, question.denied)):
            return self._answer_later(request, question, search)
        return _respond(request, question)

    async def _answer_later(self, request: Request, question: OffsetQuestion, search: TierSearch) -> None:
        question.tiered = await search_tier(self._partitions, question.request, search, question.denied)
        waiting = _respond(request, question)
        if waiting is not None:
            await waiting

    def _question(self, request: Request, message: ListOffsetsRequest) -> OffsetQuestion:
        context = request.context
        denied = () if context.authorizer is None else _denied(context, message)
        return OffsetQuestion(self._partitions, message, request.api_version, denied)


def _denied(context: RequestContext, request: ListOffsetsRequest) -> Container[str]:
    """The topics that the client may not describe."""
    names = dict.fromkeys(topic.name for topic in request.topics)
    return {
        name for name in names if not context.may(ApiKey.LIST_OFFSETS, AclOperation.DESCRIBE, ResourceType.TOPIC, name)
    }


def _in_tier(
    partitions: ReplicaManager, request: ListOffsetsRequest, denied: Container[str]
) -> Iterator[tuple[Partition, AskedPartition]]:
    """The partitions that are asked for a timestamp, and whose start only a tier has."""
    for topic in request.topics:
        if topic.name in denied:
            continue
        for wanted in topic.partitions:
            partition = partitions.find(topic.name, wanted.partition_index) if wanted.timestamp >= 0 else None
            if partition is not None and partition.log.log_start_offset < partition.log.local_log_start_offset:
                yield partition, wanted


async def search_tier(
    partitions: ReplicaManager, request: ListOffsetsRequest, search: TierSearch, denied: Container[str] = ()
) -> TierOffsets:
    answers: dict[tuple[str, int], FoundOffset | KafkaError] = {}

    async def find(partition: Partition, wanted: AskedPartition) -> None:
        key = partition.topic, partition.index
        answers[key] = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        try:
            check_epoch(partition, wanted, NodeId(request.replica_id))
            found = await search.find_by_timestamp(partition, wanted.timestamp)
        except KafkaError as error:
            answers[key] = error
        else:
            del answers[key]
            if found is not None:
                answers[key] = FoundOffset(found.offset, found.timestamp, found.leader_epoch)

    timeout_ms = request.timeout_ms or search.timeout_ms
    try:
        async with asyncio.timeout(timeout_ms / 1000), asyncio.TaskGroup() as tasks:
            for partition, wanted in _in_tier(partitions, request, denied):
                tasks.create_task(find(partition, wanted))
    except TimeoutError:
        logger.info("A search of the tier took longer than the request is to wait: milliseconds=%d", timeout_ms)
    return answers


class OffsetQuestion:
    """What is asked for, and the answer for each partition of it."""

    def __init__(
        self, partitions: ReplicaManager, request: ListOffsetsRequest, version: int, denied: Container[str] = ()
    ) -> None:
        """`denied` are topics that the client may not describe."""
        self.request = request
        self.denied = denied
        self.tiered: TierOffsets = MappingProxyType({})
        self.asked = [(topic.name, wanted) for topic in request.topics for wanted in topic.partitions]
        self._partitions = partitions
        self._version = version
        self._replica_id = NodeId(request.replica_id)
        # One is not asked for twice, and one is what most requests ask for.
        self._times_asked = (
            Counter((name, wanted.partition_index) for name, wanted in self.asked) if len(self.asked) > 1 else None
        )

    def answer(self, asked: tuple[str, AskedPartition]) -> ToldPartition:
        name, wanted = asked
        index, version = wanted.partition_index, self._version
        error, found = ErrorCode.NONE, NOT_FOUND
        try:
            if name in self.denied:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            if self._times_asked is not None and self._times_asked[name, index] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            if wanted.timestamp < 0 and version < FIRST_VERSIONS.get(wanted.timestamp, version + 1):
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
            partition = self._partitions.get_online(name, index)
            in_tier = self.tiered.get((name, index))
            if isinstance(in_tier, KafkaError):
                raise in_tier
            found = find_offset(partition, wanted, self._replica_id, self.request.isolation_level)
            if in_tier is not None:
                found = in_tier
        except KafkaError as refusal:
            error = refusal.code
            if error is ErrorCode.OFFSET_NOT_AVAILABLE and version < FIRST_OFFSET_NOT_AVAILABLE_VERSION:
                error = ErrorCode.LEADER_NOT_AVAILABLE
        return ToldPartition(index, error, found.timestamp_ms, found.offset, found.leader_epoch)


def told_topics(asked: Iterable[tuple[str, AskedPartition]], answers: Iterable[ToldPartition]) -> Sequence[ToldTopic]:
    """A duplicate topic is answered once; a topic without partitions is not answered."""
    topics: dict[str, dict[int, ToldPartition]] = {}
    for (name, wanted), answer in zip(asked, answers, strict=True):
        topics.setdefault(name, {})[wanted.partition_index] = answer
    return [ToldTopic(name, [*of_topic.values()]) for name, of_topic in topics.items()]


def _encode(request: Request, asked: Iterable[tuple[str, AskedPartition]], answers: Iterable[ToldPartition]) -> bytes:
    return encode_list_offsets_response(request.api_version, request.correlation_id, told_topics(asked, answers))


def _respond(request: Request, question: OffsetQuestion) -> Awaitable[None] | None:
    """At once about few partitions, about many in turns."""
    asked = question.asked
    if len(asked) > ITEMS_A_TURN:
        return _respond_in_turns(request, question)
    request.respond(_encode(request, asked, map(question.answer, asked)))
    return None


async def _respond_in_turns(request: Request, question: OffsetQuestion) -> None:
    answers = await in_turns(question.asked, question.answer)
    request.respond(await in_thread(_encode, request, question.asked, answers))


def find_offset(partition: Partition, wanted: AskedPartition, replica_id: NodeId, isolation_level: int) -> FoundOffset:
    """Raises KafkaError."""
    check_epoch(partition, wanted, replica_id)
    state = partition.state
    log = partition.log
    is_client = replica_id == CONSUMER_REPLICA_ID
    if not is_client:
        end_offset = log.log_end_offset
    elif isolation_level == READ_COMMITTED:
        end_offset = log.last_stable_offset(state.high_watermark)
    else:
        end_offset = state.high_watermark
    is_latest_unknown = is_client and not state.is_latest_offset_known
    found: TimestampOffset | None = None
    match wanted.timestamp:
        case OffsetTime.LATEST:
            if is_latest_unknown:
                raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
            return FoundOffset(end_offset, NO_TIMESTAMP, state.leader_epoch)
        case OffsetTime.EARLIEST:
            return _at(partition, log.log_start_offset)
        case OffsetTime.EARLIEST_LOCAL:
            return _at(partition, log.local_log_start_offset)
        case OffsetTime.LATEST_TIERED:
            return _latest_tiered(partition)
        case OffsetTime.EARLIEST_PENDING_UPLOAD:
            return _earliest_pending_upload(partition)
        case OffsetTime.MAX_TIMESTAMP:
            found = partition.with_storage_errors(log.max_timestamp_offset)
        case timestamp_ms:
            found = partition.with_storage_errors(partial(log.offset_for_timestamp, timestamp_ms, end_offset))
    if found is None or found.offset >= end_offset:
        if is_latest_unknown:
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
        return NOT_FOUND
    return FoundOffset(found.offset, found.timestamp, found.leader_epoch)


def check_epoch(partition: Partition, wanted: AskedPartition, replica_id: NodeId) -> None:
    """Raises KafkaError when this replica is not the one to ask."""
    state = partition.state
    current_leader_epoch = LeaderEpoch(wanted.current_leader_epoch)
    error = (
        state.compare_epoch(current_leader_epoch)
        if replica_id == DEBUGGING_REPLICA_ID
        else state.check_leader(current_leader_epoch)
    )
    if error is not ErrorCode.NONE:
        raise KafkaError(error)


def _at(partition: Partition, offset: int) -> FoundOffset:
    # An epoch that starts above the offset is not that of its record: then it is -1.
    epoch = partition.log.leader_epochs.epoch_of(offset)
    return FoundOffset(offset, NO_TIMESTAMP, NO_LEADER_EPOCH if epoch is None else epoch)


def _latest_tiered(partition: Partition) -> FoundOffset:
    log = partition.log
    if not log.config.remote_storage_enable or log.tiered_end_offset <= log.log_start_offset:
        return NOT_FOUND
    return _at(partition, log.tiered_end_offset - 1)


def _earliest_pending_upload(partition: Partition) -> FoundOffset:
    log = partition.log
    if not log.config.remote_storage_enable:
        return NOT_FOUND
    if log.tiered_end_offset > log.log_start_offset:
        return _at(partition, log.tiered_end_offset)
    # Nothing was copied yet; or it is not known what was.
    is_all_local = log.log_start_offset == log.local_log_start_offset
    return _at(partition, log.log_start_offset) if is_all_local else NOT_FOUND
