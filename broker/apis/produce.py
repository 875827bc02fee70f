"""Produce, versions 3 to 13 (0 to 2 are advertised for the sake of librdkafka, and refused: KIP-896).

Validation and append are one synchronous step, so the batches of a connection never overtake each other; one
partition's error does not stop the next. With acks=1 the response follows the append, with acks=-1 the high watermark;
with acks=0 no response is sent, and an error closes the connection. If `flush.messages` requires a sync, the response
follows the sync. A duplicate (KIP-98) is answered with the original's offsets, and waits as the original does.

    version  KIP
    3        98   transactional id
    7        110  zstd
    8        467  errors by record
    9        482  flexible encoding
    10       951  current leader
    12       890  transactions v2
    13       516  topic ids

The first batch of a transaction in a partition waits for the transaction coordinator (KIP-890), and so do its request
and all later ones on the connection. From version 12 on the coordinator adds the partition to the transaction.

Where the protocol leaves room: null records of a partition get INVALID_RECORD, as empty ones do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.batches import NO_OFFSET, NO_TIMESTAMP, TRANSACTIONAL_FLAG, BatchHeader, Buffer
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import TopicId
from ...protocol.produce import (
    FIRST_LEADER_HINT_VERSION,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    decode_produce,
    encode_produce_response,
)
from ...protocol.single_produce import encode_single_produce, read_single_produce
from ...storage.log.rules.append_info import AppendInfo
from ...storage.log.rules.batch_admission import read_produced_batch
from ...storage.log.rules.record_batch import ProducedBatch
from ...storage.log.rules.transaction_verification import TransactionVerification
from ..coordinators.rules.transaction_writer import TransactionSupport, TransactionWriter
from ..coordinators.transaction_verifier import Outcomes, TransactionVerifier, needs_confirmation
from ..network.handlers import Handlers
from ..network.request import Request, RequestContext
from ..network.rules.request_memory import RequestMemory
from ..network.rules.request_statistics import RequestStatistics
from ..replicas.delayed_produce import DelayedProduce, OpenAppend, TopicAnswers
from ..replicas.partition import Partition
from ..replicas.replica_manager import ReplicaManager
from ..replicas.rules.produce_admission import (
    RefusedRecords,
    TopicBatches,
    admit,
    has_transactional_records,
    read_batches,
)

logger = logging.getLogger(__name__)

_PRODUCE: Final = ApiKey.PRODUCE
_WRITE: Final = AclOperation.WRITE
_TOPIC: Final = ResourceType.TOPIC

FIRST_VERSION_WITH_ABORTABLE_ERROR: Final = 11
FIRST_VERSION_THAT_ADDS_PARTITIONS: Final = 12

WITHOUT_LOG_START: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Errors of an append whose answer has no log start offset."""
UNKNOWN_TO_PRODUCERS: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        # The coordinator's metadata does not have another partition of the request yet.
        ErrorCode.OPERATION_NOT_ATTEMPTED,
    }
)
"""Coordinator errors that producers do not expect in a Produce response."""


class ProduceHandler:
    def __init__(
        self,
        partitions: ReplicaManager,
        verifier: TransactionVerifier,
        memory: RequestMemory,
        requests: RequestStatistics,
        wall_clock_ms: Callable[[], int],
    ) -> None:
        """Requests that wait for a coordinator are charged to `memory`. `requests` counts the errors of partitions."""
        self._partitions = partitions
        self._verifier = verifier
        self._memory = memory
        self._requests = requests
        self._wall_clock_ms = wall_clock_ms

    def on_memory(self) -> None:
        raise AssertionError("a received request does not wait for memory")

    def begin(self, request: Request) -> None:
        single = read_single_produce(request.api_version, request.body, request.body_offset)
        if single is None or not self._append_single(request, *single):
            self._append_any(request)

    def _append_single(
        self, request: Request, acks: int, timeout_ms: int, topic: bytes, name: str | None, index: int, records: Buffer
    ) -> bool:
        """Appends to one partition. Returns False if the batch is not admitted: `_append_any` then finds out why."""
        partitions = self._partitions
        partition = partitions.find_by_id(topic, index) if name is None else partitions.find(name, index)
        if partition is None:
            return False
        context = request.context
        authorizer = context.authorizer
        if (
            authorizer is not None
            and partition.topic not in authorizer.permit(context).writable
            and not authorizer.allows(context, _PRODUCE, _WRITE, _TOPIC, partition.topic)
        ):
            return False
        try:
            batch = read_produced_batch(records, request.api_version)
            admit(batch, acks, request.client_id, partition.is_internal)
        except KafkaError:
            return False
        if batch.header.attributes & TRANSACTIONAL_FLAG:
            return False
        try:
            info = partition.append(batch, self._wall_clock_ms(), acks)
        except KafkaError as error:
            topic_id = partition.topic_id if name is None else None
            self._answer(request, acks, timeout_ms, [(name, topic_id, [append_failure(index, partition, error)])], [])
            return True
        end_offset = info.last_offset + 1
        if not acks:
            request.respond_nothing(0 if context.quota is None else context.quota.on_unanswered(len(request.body)))
        elif not partition.is_pending(end_offset, acks):
            throttle_time_ms = 0 if context.quota is None else context.quota.on_produced(len(request.body))
            request.respond(
                encode_single_produce(
                    request.api_version,
                    request.correlation_id,
                    topic,
                    index,
                    0,
                    info.first_offset,
                    info.log_append_time_ms,
                    info.log_start_offset,
                    throttle_time_ms,
                ),
                throttle_time_ms,
            )
        else:
            topic_id = partition.topic_id if name is None else None
            answers = [success(index, info)]
            opened = OpenAppend(partition, end_offset, partition.state.leader_epoch, answers, 0)
            self._answer(request, acks, timeout_ms, [(name, topic_id, answers)], [opened])
        partitions.complete_fetches(partition)
        return True

    def _append_any(self, request: Request) -> None:
        """Appends to all partitions of a request, those of transactional batches once these are verified."""
        message = decode_produce(request.api_version, request.body, request.body_offset)
        try:
            topics = read_batches(message, request.api_version)
            if request.context.authorizer is not None:
                _check_transactional(request.context, message)
            headers = (
                {} if message.transactional_id is None else self._transactional_headers(request, message.acks, topics)
            )
        except KafkaError as error:
            self._refuse(request, message, error)
            return
        if not headers:
            self._append_all(request, message, topics, {})
        else:
            self._append_in_transaction(request, message, topics, headers)

    def _refuse(self, request: Request, message: ProduceRequest, error: KafkaError) -> None:
        """Answers every partition with the error."""
        answers: list[TopicAnswers] = [
            (topic.name, topic.topic_id, [failure(index, error) for index, _ in topic.partitions])
            for topic in message.topics
            if topic.partitions
        ]
        self._answer(request, message.acks, message.timeout_ms, answers, [])

    def _transactional_headers(
        self, request: Request, acks: int, topics: Sequence[TopicBatches]
    ) -> dict[Partition, BatchHeader]:
        """Returns the headers of the transactional batches that may be appended; raises KafkaError, for all partitions,
        if they have several producers."""
        headers: dict[Partition, BatchHeader] = {}
        for name, topic_id, batches in topics:
            for index, batch in batches:
                with suppress(KafkaError):
                    partition = self._find(request.context, name, topic_id, index, batch)
                    admitted = admit(batch, acks, request.client_id, partition.is_internal)
                    if admitted.header.is_transactional:
                        headers[partition] = admitted.header
        if len({(header.producer_id, header.producer_epoch) for header in headers.values()}) > 1:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return headers

    def _append_in_transaction(
        self,
        request: Request,
        message: ProduceRequest,
        topics: Sequence[TopicBatches],
        headers: Mapping[Partition, BatchHeader],
    ) -> None:
        assert message.transactional_id is not None
        version = request.api_version
        first = next(iter(headers.values()))
        writer = TransactionWriter(
            message.transactional_id, first.producer_id, first.producer_epoch, transaction_support(version)
        )
        sequences = {partition: header.base_sequence for partition, header in headers.items()}
        outcomes = self._verifier.begin(writer, sequences)
        if not needs_confirmation(outcomes):
            self._append_all(request, message, topics, outcomes)
            return
        # The connection's buffer is reused when this returns.
        kept = decode_produce(version, memoryview(bytes(request.body)), request.body_offset)
        kept_bytes = len(request.body)
        self._memory.take(kept_bytes)
        request.hold_later_requests()
        self._verifier.confirm(writer, sequences, outcomes, partial(self._append_confirmed, request, kept, kept_bytes))

    def _append_confirmed(self, request: Request, message: ProduceRequest, kept_bytes: int, outcomes: Outcomes) -> None:
        self._memory.give_back(self, kept_bytes)
        request.release_later_requests()
        try:
            self._append_all(request, message, read_batches(message, request.api_version), outcomes)
        except Exception:
            logger.exception("Error processing transactional produce request: client=%s", request.client_id)
            if request.answer is None:
                request.close_connection("error processing transactional produce request")

    def _append_all(
        self, request: Request, message: ProduceRequest, topics: Sequence[TopicBatches], outcomes: Outcomes
    ) -> None:
        """Appends the batches of `topics`, which are those of `message`; `outcomes` are those of transactional ones."""
        acks, context = message.acks, request.context
        now_ms = self._wall_clock_ms()
        answers: list[TopicAnswers] = []
        opened: list[OpenAppend] = []
        appended: list[Partition] = []
        for name, topic_id, batches in topics:
            topic_answers: list[PartitionProduceResponse] = []
            answers.append((name, topic_id, topic_answers))
            for index, batch in batches:
                try:
                    partition = self._find(context, name, topic_id, index, batch)
                    admitted = admit(batch, acks, request.client_id, partition.is_internal)
                    verification = verified(partition, admitted, outcomes, request.api_version)
                except KafkaError as error:
                    topic_answers.append(failure(index, error))
                    continue
                try:
                    info = partition.append(admitted, now_ms, acks, verification)
                except KafkaError as error:
                    topic_answers.append(append_failure(index, partition, error))
                    continue
                appended.append(partition)
                end_offset = info.last_offset + 1
                if acks and partition.is_pending(end_offset, acks):
                    leader_epoch = partition.state.leader_epoch
                    opened.append(OpenAppend(partition, end_offset, leader_epoch, topic_answers, len(topic_answers)))
                topic_answers.append(success(index, info))
        self._answer(request, acks, message.timeout_ms, answers, opened)
        for partition in appended:
            self._partitions.complete_fetches(partition)

    def _find(
        self,
        context: RequestContext,
        name: str | None,
        topic_id: TopicId | None,
        index: int,
        batch: ProducedBatch | RefusedRecords,
    ) -> Partition:
        """Returns the partition; raises KafkaError if the client may not write to it.

        If it is not hosted, raises KafkaError too, and notes the batch (`refused_batches.py`).
        """
        known = name if topic_id is None else self._partitions.topic_name(topic_id)
        if context.authorizer is not None and known is not None and not _may_write(context, known):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partition = None if known is None else self._partitions.find(known, index)
        if partition is not None:
            return partition
        error = KafkaError(ErrorCode.UNKNOWN_TOPIC_ID if known is None else self._partitions.absence(known, index))
        if not isinstance(batch, RefusedRecords):
            self._partitions.note_refused(topic_id or name, index, batch, error)
        raise error

    def _answer(
        self,
        request: Request,
        acks: int,
        timeout_ms: int,
        answers: Sequence[TopicAnswers],
        opened: list[OpenAppend],
    ) -> None:
        """Answers the request, once the `opened` appends are acknowledged."""
        if acks and not opened:
            self._respond(request, answers)
        elif opened:
            operation = DelayedProduce(acks, answers, opened, partial(self._respond, request))
            produces = self._partitions.produces
            # Appends stay when the client disconnects; only the delayed response is cancelled.
            request.on_disconnect = lambda: produces.cancel(operation)
            produces.watch(operation, {append.partition for append in opened}, timeout_ms)
        elif error := first_error(answers):
            request.close_connection(f"produce with acks=0 failed: {error}")
        else:
            quota = request.context.quota
            request.respond_nothing(0 if quota is None else quota.on_unanswered(len(request.body)))

    def _respond(self, request: Request, answers: Sequence[TopicAnswers]) -> None:
        version = request.api_version
        has_hints = version >= FIRST_LEADER_HINT_VERSION
        endpoints: dict[int, NodeEndpoint] = {}
        for name, topic_id, topic_answers in answers:
            for position, answer in enumerate(topic_answers):
                if not answer.error_code:
                    continue
                self._requests.note_error(ApiKey.PRODUCE, answer.error_code)
                if has_hints and answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    known = name if topic_id is None else self._partitions.topic_name(topic_id)
                    leader, endpoint = self._partitions.leader_hint(
                        known, answer.partition_index, request.context.listener_name
                    )
                    topic_answers[position] = answer._replace(current_leader=leader)
                    if endpoint is not None:
                        endpoints[endpoint.node_id] = endpoint
        quota = request.context.quota
        throttle_time_ms = 0 if quota is None else quota.on_produced(len(request.body))
        request.respond(
            encode_produce_response(
                version,
                request.correlation_id,
                answers,
                throttle_time_ms=throttle_time_ms,
                node_endpoints=tuple(endpoints.values()),
            ),
            throttle_time_ms,
        )


def register(handlers: Handlers, handler: ProduceHandler) -> None:
    handlers.add(ApiKey.PRODUCE, handler.begin, overlaps=True)


def _may_write(context: RequestContext, topic: str) -> bool:
    return context.may(ApiKey.PRODUCE, AclOperation.WRITE, ResourceType.TOPIC, topic)


def _check_transactional(context: RequestContext, message: ProduceRequest) -> None:
    """Raises KafkaError if there are transactional batches, and the client may not write in their transaction."""
    name = message.transactional_id
    if (
        name is not None
        and has_transactional_records(message)
        and not context.may(ApiKey.PRODUCE, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, name)
    ):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def transaction_support(version: int) -> TransactionSupport:
    if version >= FIRST_VERSION_THAT_ADDS_PARTITIONS:
        return TransactionSupport.ADDS_PARTITIONS
    if version >= FIRST_VERSION_WITH_ABORTABLE_ERROR:
        return TransactionSupport.ABORTABLE_ERROR
    return TransactionSupport.OLD_ERRORS


def unverified(error: ErrorCode, version: int) -> KafkaError:
    """Returns the producer's error if its transaction does not have the partition, or the verification failed."""
    if error is ErrorCode.INVALID_TXN_STATE:
        return KafkaError(error, "Partition was not added to the transaction")
    if error in UNKNOWN_TO_PRODUCERS or (
        error is ErrorCode.CONCURRENT_TRANSACTIONS and version < FIRST_VERSION_THAT_ADDS_PARTITIONS
    ):
        # NOT_ENOUGH_REPLICAS makes producers of all releases retry, without a metadata refresh.
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"Unable to verify the partition has been added to the transaction. Underlying error: {error.name}",
        )
    return KafkaError(error)


def verified(
    partition: Partition, batch: ProducedBatch, outcomes: Outcomes, version: int
) -> TransactionVerification | None:
    """Returns the verification that the append needs; raises KafkaError if the batch may not be appended."""
    if partition not in outcomes and batch.header.is_transactional:
        # The partition moved here while the coordinator verified the others.
        raise partition.in_passing(batch, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    outcome = outcomes.get(partition)
    if isinstance(outcome, KafkaError):
        raise unverified(outcome.code, version)
    return outcome


def success(index: int, info: AppendInfo) -> PartitionProduceResponse:
    return PartitionProduceResponse(index, 0, info.first_offset, info.log_append_time_ms, info.log_start_offset)


def failure(index: int, error: KafkaError) -> PartitionProduceResponse:
    """Answers a batch that did not come to the log."""
    return PartitionProduceResponse(index, error.code, error_message=error.message)


def append_failure(index: int, partition: Partition, error: KafkaError) -> PartitionProduceResponse:
    log_start_offset = NO_OFFSET if error.code in WITHOUT_LOG_START else partition.log.log_start_offset
    # The log's error message is sent only with its record errors (KIP-467).
    message = error.message if error.record_errors else None
    return PartitionProduceResponse(
        index, error.code, NO_OFFSET, NO_TIMESTAMP, log_start_offset, error.record_errors, message
    )


def first_error(answers: Sequence[TopicAnswers]) -> str | None:
    for name, topic_id, topic_answers in answers:
        for answer in topic_answers:
            if answer.error_code:
                return f"{ErrorCode(answer.error_code).name} for {name or topic_id}-{answer.partition_index}"
    return None
