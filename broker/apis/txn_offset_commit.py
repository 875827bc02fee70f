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

from collections.abc import Callable, Sequence, Set
from typing import Final

from kio.schema.txn_offset_commit.v5.request import TxnOffsetCommitRequest, TxnOffsetCommitRequestTopic
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
from ..cluster.metadata_cache import MetadataCache
from ..coordination.ports import TransactionProducer
from ..coordinators.group_coordinator import GroupCoordinator, GroupPartition
from ..coordinators.transaction_verifier import Outcome, Outcomes, TransactionSupport, TransactionVerifier, Writer
from ..groups.offset_protocol import Committer, OffsetToCommit
from ..network.handlers import Handlers
from ..network.request import Request, RequestContext
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

Codes = list[list[ErrorCode]]
"""By topic and partition of the request."""


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

    def begin(
        self, message: TxnOffsetCommitRequest, request: Request, reply: Callable[[TxnOffsetCommitResponse], None]
    ) -> None:
        """Raises KafkaError."""
        version = request.api_version
        offsets: list[OffsetToCommit] = []
        denied = _denied_topics(message, request.context)
        codes = [
            [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * len(topic.partitions)
            if topic.name in denied
            else self._check(topic, offsets)
            for topic in message.topics
        ]

        def respond(outcomes: Sequence[ErrorCode]) -> None:
            reply(_response(message, _filled(codes, outcomes), version))

        def refuse(error: ErrorCode) -> None:
            respond([error] * len(offsets))

        if not offsets:
            respond(())
            return
        try:
            coordinator = self._groups.get(message.group_id)
            _ = coordinator.shard
        except KafkaError as error:
            refuse(error.code)
            return
        writer = Writer(
            str(message.transactional_id), int(message.producer_id), int(message.producer_epoch), _support(version)
        )
        batches = {coordinator.partition: NO_SEQUENCE}

        def commit(confirmed: Outcomes) -> None:
            try:
                outcomes = _commit(coordinator, message, writer, offsets, confirmed[coordinator.partition])
            except KafkaError as error:
                refuse(_error_for(error.code, writer.support))
            else:
                coordinator.reply_when_committed(respond, lambda error: [error or outcome for outcome in outcomes])(
                    outcomes
                )

        self._verifier.confirm(writer, batches, self._verifier.begin(writer, batches), commit)

    def _check(self, wanted: TxnOffsetCommitRequestTopic, offsets: list[OffsetToCommit]) -> list[ErrorCode]:
        """Returns an error for each partition; adds those that may be committed to `offsets`."""
        topic = self._metadata.image.topics.by_name.get(wanted.name)
        errors = []
        for one in wanted.partitions:
            index = int(one.partition_index)
            if topic is None or not 0 <= index < len(topic.partitions):
                errors.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                continue
            errors.append(ErrorCode.NONE)
            offsets.append(
                OffsetToCommit(
                    topic.name,
                    topic.topic_id,
                    index,
                    int(one.committed_offset),
                    int(one.committed_leader_epoch),
                    one.committed_metadata,
                )
            )
        return errors


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
    writer: Writer,
    offsets: Sequence[OffsetToCommit],
    verification: Outcome,
) -> list[ErrorCode]:
    """Raises KafkaError."""
    if isinstance(verification, KafkaError):
        raise verification
    committer = Committer(
        str(message.group_id), message.member_id, message.group_instance_id, int(message.generation_id)
    )
    producer = TransactionProducer(writer.producer_id, writer.producer_epoch, verification)
    with coordinator.event() as shard:
        return shard.offsets.commit_in_transaction(committer, offsets, producer)


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


def _filled(codes: Codes, outcomes: Sequence[ErrorCode]) -> Codes:
    """Returns `codes` with each NONE replaced by the next of the outcomes."""
    left = iter(outcomes)
    return [[code or next(left) for code in of_topic] for of_topic in codes]


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
