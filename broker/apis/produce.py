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
from typing import Final

from ...protocol.apis import ApiKey
from ...protocol.batches import NO_OFFSET, NO_TIMESTAMP, BatchHeader, Buffer
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.produce import (
    FIRST_LEADER_HINT_VERSION,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    decode_produce,
    encode_produce_response,
)
from ...protocol.single_produce import encode_single_produce, read_single_produce
from ...storage.log.rules.batch_admission import read_produced_batch
from ..coordinators.transaction_verifier import (
    Outcomes,
    TransactionSupport,
    TransactionVerifier,
    Writer,
    needs_confirmation,
)
from ..network.handlers import Handlers
from ..network.request import Request
from ..network.rules.request_memory import RequestMemory
from ..replicas.delayed_produce import DelayedProduce, OpenAppend, TopicAnswers
from ..replicas.partition import Partition
from ..replicas.replica_manager import ReplicaManager
from ..replicas.rules.produce_admission import admit, request_refusal

logger = logging.getLogger(__name__)

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
        wall_clock_ms: Callable[[], int],
    ) -> None:
        """Requests that wait for a coordinator are charged to `memory`."""
        self._partitions = partitions
        self._verifier = verifier
        self._memory = memory
        self._wall_clock_ms = wall_clock_ms

    def on_memory(self) -> None:
        raise AssertionError("a received request does not wait for memory")

    def begin(self, request: Request) -> None:
        single = read_single_produce(request.api_version, request.body, request.body_offset)
        if single is None or not self._begin_single(request, *single):
            self._begin_any(request)

    def _begin_single(
        self, request: Request, acks: int, timeout_ms: int, topic: bytes, name: str | None, index: int, records: Buffer
    ) -> bool:
        """Appends to one partition. Returns False if the batch is not admitted: `_begin_any` then finds out why."""
        partitions = self._partitions
        partition = partitions.find_by_id(topic, index) if name is None else partitions.find(name, index)
        if partition is None:
            return False
        try:
            batch = admit(records, request.api_version, acks, request.client_id, partition.is_internal)
        except KafkaError:
            return False
        try:
            info = partition.append(batch, self._wall_clock_ms(), acks)
        except KafkaError as error:
            message = decode_produce(request.api_version, request.body, request.body_offset)
            self._append_all(request, message, {}, failed=error)
            return True
        if not acks:
            request.respond_nothing()
        elif partition.is_pending(info.last_offset + 1, acks):
            answer = PartitionProduceResponse(
                index, 0, info.first_offset, info.log_append_time_ms, info.log_start_offset
            )
            topic_id = partition.topic_id if name is None else None
            answers: list[TopicAnswers] = [(name, topic_id, [answer])]
            opened = OpenAppend(partition, info.last_offset + 1, partition.state.leader_epoch, answers[0][2], 0)
            self._park(request, acks, timeout_ms, answers, [opened])
        else:
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
                )
            )
        partitions.complete_fetches(partition)
        return True

    def _begin_any(self, request: Request) -> None:
        message = decode_produce(request.api_version, request.body, request.body_offset)
        headers = None if message.transactional_id is None else self._transactional_batches(request, message)
        if not headers:
            self._append_all(request, message, {})
        elif len({(header.producer_id, header.producer_epoch) for header in headers.values()}) > 1:
            self._append_all(request, message, {}, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        else:
            self._begin_in_transaction(request, message, headers)

    def _transactional_batches(self, request: Request, message: ProduceRequest) -> dict[Partition, BatchHeader]:
        """Returns the headers of the transactional batches that may be appended."""
        headers = {}
        for topic in message.topics:
            name = topic.name if topic.topic_id is None else self._partitions.topic_name(topic.topic_id)
            for index, records in topic.partitions:
                partition = None if name is None else self._partitions.find(name, index)
                if partition is None:
                    continue
                try:
                    batch = admit(
                        records,
                        request.api_version,
                        message.acks,
                        request.client_id,
                        partition.is_internal,
                        is_in_transaction=True,
                    )
                except KafkaError:
                    continue
                if batch.header.is_transactional:
                    headers[partition] = batch.header
        return headers

    def _begin_in_transaction(
        self, request: Request, message: ProduceRequest, headers: Mapping[Partition, BatchHeader]
    ) -> None:
        assert message.transactional_id is not None
        first = next(iter(headers.values()))
        support = transaction_support(request.api_version)
        writer = Writer(message.transactional_id, first.producer_id, first.producer_epoch, support)
        sequences = {partition: header.base_sequence for partition, header in headers.items()}
        outcomes = self._verifier.begin(writer, sequences)
        if not needs_confirmation(outcomes):
            self._append_all(request, message, outcomes)
            return
        # The connection's buffer is reused when this returns.
        kept = decode_produce(request.api_version, memoryview(bytes(request.body)), request.body_offset)
        kept_bytes = len(request.body)
        self._memory.take(kept_bytes)
        request.hold_later_requests()

        def append(confirmed: Outcomes) -> None:
            self._memory.give_back(self, kept_bytes)
            request.release_later_requests()
            try:
                self._append_all(request, kept, confirmed)
            except Exception:
                logger.exception("Error processing transactional produce request: client=%s", request.client_id)
                if request.answer is None:
                    request.close_connection("error processing transactional produce request")

        self._verifier.confirm(writer, sequences, outcomes, append)

    def _append_all(
        self,
        request: Request,
        message: ProduceRequest,
        outcomes: Outcomes,
        refusal: ErrorCode | None = None,
        *,
        failed: KafkaError | None = None,
    ) -> None:
        """`failed` is the error of an append that was tried already, to the only partition of the message."""
        acks = message.acks
        now_ms = self._wall_clock_ms()
        refusal = refusal or request_refusal(message)
        is_in_transaction = message.transactional_id is not None
        answers: list[TopicAnswers] = []
        opened: list[OpenAppend] = []
        appended: list[Partition] = []
        has_error = False
        for topic in message.topics:
            name = topic.name if topic.topic_id is None else self._partitions.topic_name(topic.topic_id)
            topic_answers: list[PartitionProduceResponse] = []
            if topic.partitions:
                answers.append((topic.name, topic.topic_id, topic_answers))
            for index, records in topic.partitions:
                partition = None if name is None else self._partitions.find(name, index)
                try:
                    if refusal is not None:
                        raise KafkaError(refusal)
                    if partition is None:
                        error = KafkaError(self._absence(name, index))
                        with suppress(KafkaError):
                            batch = read_produced_batch(records, request.api_version)
                            self._partitions.note_refused(topic.topic_id or topic.name, index, batch, error)
                        raise error
                    batch = admit(
                        records,
                        request.api_version,
                        acks,
                        request.client_id,
                        partition.is_internal,
                        is_in_transaction=is_in_transaction,
                    )
                    if partition not in outcomes and batch.header.is_transactional:
                        # The partition moved here while the coordinator verified the others.
                        raise partition.in_passing(batch, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
                    verification = outcomes.get(partition)
                    if isinstance(verification, KafkaError):
                        raise unverified(verification.code, request.api_version)
                except KafkaError as error:
                    has_error = True
                    topic_answers.append(failure(index, error, NO_OFFSET, error.message))
                    continue
                try:
                    if failed is not None:
                        raise failed
                    info = partition.append(batch, now_ms, acks, verification)
                except KafkaError as error:
                    has_error = True
                    log_start_offset = NO_OFFSET if error.code in WITHOUT_LOG_START else partition.log.log_start_offset
                    # The log's error message is sent only with its record errors (KIP-467).
                    message_text = error.message if error.record_errors else None
                    topic_answers.append(failure(index, error, log_start_offset, message_text))
                    continue
                appended.append(partition)
                end_offset = info.last_offset + 1
                if acks and partition.is_pending(end_offset, acks):
                    leader_epoch = partition.state.leader_epoch
                    opened.append(OpenAppend(partition, end_offset, leader_epoch, topic_answers, len(topic_answers)))
                topic_answers.append(
                    PartitionProduceResponse(
                        index, 0, info.first_offset, info.log_append_time_ms, info.log_start_offset
                    )
                )
        if opened:
            self._park(request, acks, message.timeout_ms, answers, opened)
        elif acks:
            self._respond(request, answers)
        elif has_error:
            request.close_connection(f"produce with acks=0 failed: {_first_error(answers)}")
        else:
            request.respond_nothing()
        for partition in appended:
            self._partitions.complete_fetches(partition)

    def _absence(self, name: str | None, index: int) -> ErrorCode:
        if name is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        return self._partitions.absence(name, index)

    def _park(
        self,
        request: Request,
        acks: int,
        timeout_ms: int,
        answers: Sequence[TopicAnswers],
        opened: list[OpenAppend],
    ) -> None:
        operation = DelayedProduce(acks, answers, opened, lambda settled: self._respond(request, settled))
        produces = self._partitions.produces
        # Appends stay when the client disconnects; only the delayed response is cancelled.
        request.on_disconnect = lambda: produces.cancel(operation)
        produces.watch(operation, {append.partition for append in opened}, timeout_ms)

    def _respond(self, request: Request, answers: Sequence[TopicAnswers]) -> None:
        version = request.api_version
        endpoints: dict[int, NodeEndpoint] = {}
        if version >= FIRST_LEADER_HINT_VERSION:
            for name, topic_id, topic_answers in answers:
                for position, answer in enumerate(topic_answers):
                    if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                        known = name if topic_id is None else self._partitions.topic_name(topic_id)
                        leader, endpoint = self._partitions.leader_hint(
                            known, answer.partition_index, request.context.listener_name
                        )
                        topic_answers[position] = answer._replace(current_leader=leader)
                        if endpoint is not None:
                            endpoints[endpoint.node_id] = endpoint
        request.respond(
            encode_produce_response(version, request.correlation_id, answers, node_endpoints=tuple(endpoints.values()))
        )


def register(handlers: Handlers, handler: ProduceHandler) -> None:
    handlers.add(ApiKey.PRODUCE, handler.begin, overlaps=True)


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


def failure(index: int, error: KafkaError, log_start_offset: int, message: str | None) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index, error.code, NO_OFFSET, NO_TIMESTAMP, log_start_offset, error.record_errors, message
    )


def _first_error(answers: Sequence[TopicAnswers]) -> str:
    for name, topic_id, topic_answers in answers:
        for answer in topic_answers:
            if answer.error_code:
                return f"{ErrorCode(answer.error_code).name} for {name or topic_id}-{answer.partition_index}"
    raise AssertionError("no partition failed")
