"""TxnOffsetCommit 0 to 5: commits offsets of a group as part of a transaction (KIP-98).

    version  KIP
    2        320  leader epochs; its clients expect COORDINATOR_LOAD_IN_PROGRESS
    3        447  member id and generation
    4        890  TRANSACTION_ABORTABLE
    5        890  the partition of `__consumer_offsets` becomes part of the transaction

The transaction coordinator verifies the transaction first, as for a batch of records. Some partitions of a request can
be committed while others are refused. A client must be allowed to write in the transaction, and to read the group and
the topics.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence, Set
from functools import partial
from typing import Final, TypeAlias

from kio.schema.txn_offset_commit.v5.request import TxnOffsetCommitRequest
from kio.schema.txn_offset_commit.v5.response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.batches import NO_SEQUENCE
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ...quorum.metadata.image import TopicImage
from ..cluster.metadata_cache import MetadataCache
from ..coordination.ports import TransactionProducer
from ..coordinators.group_coordinator import GroupCoordinator, GroupPartition
from ..coordinators.rules.transaction_writer import TransactionSupport, TransactionWriter
from ..coordinators.transaction_verifier import Outcome, Outcomes, TransactionVerifier
from ..groups.offset_protocol import Committer
from ..groups.offset_records import OffsetRecords, TopicOffsets, codes_by_topic, encode_offsets
from ..network.handlers import Handlers
from ..network.large_messages import ITEMS_A_TURN, in_thread
from ..network.request import Request, RequestContext
from ..network.rules.large_response import LargeResponse
from ..network.rules.postponed import PostponedError
from .permissions import denied_names, require

FIRST_THAT_KNOWS_LOADING: Final = 2
FIRST_WITH_ABORTABLE_ERROR: Final = 4
FIRST_THAT_ADDS_PARTITIONS: Final = 5
OF_COORDINATORS: Final = {
    ErrorCode.CONCURRENT_TRANSACTIONS: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
}
"""Errors of the transaction coordinator, or of the partition → errors that clients expect: they retry, and look up the
coordinator again only after NOT_COORDINATOR. Clients of version 5 also know CONCURRENT_TRANSACTIONS."""

ReplyCommitted: TypeAlias = "Callable[[TxnOffsetCommitResponse | LargeResponse[TxnOffsetCommitResponse]], None]"
Codes: TypeAlias = Sequence[Sequence[ErrorCode]]
"""By topic and partition of the request."""
Found: TypeAlias = Sequence[TopicImage | ErrorCode]
"""Each topic of the request, or the error of all its partitions."""


def register(
    handlers: Handlers, groups: GroupCoordinator, metadata: MetadataCache, verifier: TransactionVerifier
) -> None:
    committing = TransactionalOffsets(groups, metadata, verifier)
    handlers.add_replying(ApiKey.TXN_OFFSET_COMMIT, committing.begin, answer_error=error_response)


class TransactionalOffsets:
    def __init__(self, groups: GroupCoordinator, metadata: MetadataCache, verifier: TransactionVerifier) -> None:
        self._groups = groups
        self._metadata = metadata
        self._verifier = verifier

    def begin(self, message: TxnOffsetCommitRequest, request: Request, reply: ReplyCommitted) -> Awaitable[None] | None:
        """Raises KafkaError."""
        found = self._find_topics(message, request.context)
        groups = self._groups
        encode = partial(_encode, message, found, groups.steady_now_ms(), groups.offset_metadata_bytes_max)
        if sum(len(topic.partitions) for topic in message.topics) > ITEMS_A_TURN:
            return self._commit_large(message, request.api_version, reply, found, encode)
        self._commit(message, request.api_version, reply, found, encode())
        return None

    async def _commit_large(
        self,
        message: TxnOffsetCommitRequest,
        version: int,
        reply: ReplyCommitted,
        found: Found,
        encode: Callable[[], OffsetRecords],
    ) -> None:
        self._commit(message, version, reply, found, await in_thread(encode), is_large=True)

    def _commit(
        self,
        message: TxnOffsetCommitRequest,
        version: int,
        reply: ReplyCommitted,
        found: Found,
        records: OffsetRecords,
        *,
        is_large: bool = False,
    ) -> None:
        """Raises PostponedError."""

        def respond(failure: ErrorCode) -> None:
            def make() -> TxnOffsetCommitResponse:
                counts = (len(topic.partitions) for topic in message.topics)
                return _response(message, codes_by_topic(found, counts, records, failure), version)

            reply(LargeResponse(make) if is_large else make())

        if not records.topics:
            respond(ErrorCode.NONE)
            return
        try:
            coordinator = self._groups.get(message.group_id)
            _ = coordinator.shard
        except PostponedError:
            raise
        except KafkaError as error:
            respond(error.code)
            return
        writer = TransactionWriter(
            str(message.transactional_id), int(message.producer_id), int(message.producer_epoch), _support(version)
        )
        batches = {coordinator.partition: NO_SEQUENCE}

        def commit(confirmed: Outcomes) -> None:
            try:
                _commit(coordinator, message, writer, records, confirmed[coordinator.partition])
            except KafkaError as error:
                respond(_error_for(error.code, writer.support))
            else:
                coordinator.reply_when_committed(respond, lambda failure: failure)(ErrorCode.NONE)

        self._verifier.confirm(writer, batches, self._verifier.begin(writer, batches), commit)

    def _find_topics(self, message: TxnOffsetCommitRequest, context: RequestContext) -> Found:
        """Raises KafkaError."""
        denied = _denied_topics(message, context)
        by_name = self._metadata.image.topics.by_name
        return [
            ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if topic.name in denied
            else by_name.get(topic.name) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            for topic in message.topics
        ]


def _encode(message: TxnOffsetCommitRequest, found: Found, now_ms: int, metadata_bytes_max: int) -> OffsetRecords:
    """Of the topics that were found."""
    offsets = [
        TopicOffsets(
            topic.name,
            topic.topic_id,
            len(topic.partitions),
            [
                (
                    int(one.partition_index),
                    int(one.committed_offset),
                    int(one.committed_leader_epoch),
                    one.committed_metadata,
                )
                for one in wanted.partitions
            ],
        )
        for wanted, topic in zip(message.topics, found, strict=True)
        if not isinstance(topic, ErrorCode)
    ]
    return encode_offsets(str(message.group_id), offsets, now_ms=now_ms, metadata_bytes_max=metadata_bytes_max)


def _denied_topics(message: TxnOffsetCommitRequest, context: RequestContext) -> Set[str]:
    """Raises KafkaError if the client may not write in the transaction, or not read the group."""
    if context.authorizer is None:
        return frozenset()
    api_key = ApiKey.TXN_OFFSET_COMMIT
    require(context, api_key, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, str(message.transactional_id))
    require(context, api_key, AclOperation.READ, ResourceType.GROUP, str(message.group_id))
    names = [str(topic.name) for topic in message.topics]
    return denied_names(context, api_key, AclOperation.READ, ResourceType.TOPIC, names)


def _commit(
    coordinator: GroupPartition,
    message: TxnOffsetCommitRequest,
    writer: TransactionWriter,
    records: OffsetRecords,
    verification: Outcome,
) -> None:
    """Raises KafkaError."""
    if isinstance(verification, KafkaError):
        raise verification
    committer = Committer(
        str(message.group_id), message.member_id, message.group_instance_id, int(message.generation_id)
    )
    producer = TransactionProducer(writer.producer_id, writer.producer_epoch, verification)
    with coordinator.event() as shard:
        shard.offsets.commit_in_transaction(committer, records, producer)


def _support(version: int) -> TransactionSupport:
    if version >= FIRST_THAT_ADDS_PARTITIONS:
        return TransactionSupport.ADDS_PARTITIONS
    if version >= FIRST_WITH_ABORTABLE_ERROR:
        return TransactionSupport.ABORTABLE_ERROR
    return TransactionSupport.OLD_ERRORS


def _error_for(code: ErrorCode, support: TransactionSupport) -> ErrorCode:
    if code is ErrorCode.CONCURRENT_TRANSACTIONS and support.adds_partitions:
        return code
    return OF_COORDINATORS.get(code, code)


def _response(message: TxnOffsetCommitRequest, codes: Codes, version: int) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=one.partition_index, error_code=kio_error(_as_known(code, version))
                    )
                    for one, code in zip(topic.partitions, of_topic, strict=True)
                ),
            )
            for topic, of_topic in zip(message.topics, codes, strict=True)
        ),
    )


def _as_known(code: ErrorCode, version: int) -> ErrorCode:
    """Older producers may crash at COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296)."""
    is_unknown = code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < FIRST_THAT_KNOWS_LOADING
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if is_unknown else code


def error_response(request: TxnOffsetCommitRequest, error: KafkaError) -> TxnOffsetCommitResponse:
    codes = [[error.code] * len(topic.partitions) for topic in request.topics]
    return _response(request, codes, FIRST_THAT_ADDS_PARTITIONS)
