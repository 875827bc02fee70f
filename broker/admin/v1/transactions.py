"""`/v1/transactions`: those of all coordinators, and those that hang in a partition (KIP-664)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kio.schema.describe_producers.v0.request import DescribeProducersRequest, TopicRequest
from kio.schema.describe_producers.v0.response import DescribeProducersResponse
from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.describe_transactions.v0.response import DescribeTransactionsResponse
from kio.schema.describe_transactions.v0.response import TransactionState as Described
from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from kio.schema.list_transactions.v2.response import ListTransactionsResponse
from kio.schema.list_transactions.v2.response import TransactionState as Listed
from kio.schema.types import ProducerId, TopicName, TransactionalId
from kio.schema.write_txn_markers.v2.request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kio.schema.write_txn_markers.v2.response import WriteTxnMarkersResponse
from kio.static.primitive import i16, i32, i64

from ....protocol.acls import AclOperation, ResourceType
from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.rest.elections import PartitionName
from ....protocol.rest.transactions import (
    AbortRequest,
    HangingList,
    HangingQuery,
    OpenTransaction,
    Transaction,
    TransactionList,
    TransactionsQuery,
)
from ....quorum.metadata.records import NO_LEADER
from ...network.request import RequestContext
from ..broker_answers import ask_brokers
from ..operation import Call, HttpError, Operation
from ..rules.kafka_answers import check
from ..turns import Turns

PAGE_SIZE_MAX: Final = 1_000
NOT_OPEN: Final = -1
ENDING: Final = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})
"""States in which a coordinator will end the transaction."""
_MILLISECOND: Final = timedelta(milliseconds=1)


async def _list(call: Call) -> TransactionList:
    query: TransactionsQuery = call.query
    if not 1 <= query.page_size <= PAGE_SIZE_MAX:
        raise HttpError(400, "Bad Request", f"page_size is from 1 to {PAGE_SIZE_MAX}, not {query.page_size}.")
    listed, failures = await _ask_all(
        call,
        ListTransactionsRequest(
            state_filters=() if query.state is None else (query.state,),
            producer_id_filters=() if query.producer_id is None else (ProducerId(query.producer_id),),
            duration_filter=i64(-1 if query.running_longer_ms is None else query.running_longer_ms),
            transactional_id_pattern=query.pattern,
        ),
    )
    behind = sorted(
        (one for one in listed if query.page_token is None or one[1].transactional_id > query.page_token),
        key=lambda one: one[1].transactional_id,
    )
    page = behind[: query.page_size]
    described = await _describe(call, page)
    now_ms = call.node.wall_clock_ms()
    return TransactionList(
        transactions=[
            _transaction(coordinator, one, described.get(one.transactional_id), now_ms) for coordinator, one in page
        ],
        next=str(page[-1][1].transactional_id) if len(behind) > len(page) else None,
        unanswered=failures,
    )


async def _ask_all(
    call: Call, request: ListTransactionsRequest, context: RequestContext | None = None
) -> tuple[list[tuple[int, Listed]], list[str]]:
    """What every active broker coordinates, with its id. Raises KafkaError where no broker answers.

    `context`: see `ask_brokers`.
    """
    brokers = [broker.id for broker in call.node.active_brokers()]
    answers, failures = await ask_brokers(call, brokers, request, ListTransactionsResponse, context)
    reasons = [f"Broker {broker_id}: {reason}" for broker_id, reason in sorted(failures.items())]
    if not answers:
        if request.transactional_id_pattern is not None:
            # Most often the pattern is at fault: any broker says so itself.
            check((await call.node.ask(request, ListTransactionsResponse, call.context)).error_code)
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "; ".join(reasons) or "No broker is active.")
    found = [(broker_id, one) for broker_id, answer in answers.items() for one in answer.transaction_states]
    return found, reasons


async def _describe(
    call: Call, listed: Sequence[tuple[int, Listed]], context: RequestContext | None = None
) -> dict[str, Described]:
    """By transactional id, from the coordinators that answer. `context`: see `ask_brokers`."""
    by_coordinator: dict[int, list[TransactionalId]] = {}
    for coordinator, one in listed:
        by_coordinator.setdefault(coordinator, []).append(TransactionalId(one.transactional_id))
    found: dict[str, Described] = {}
    for coordinator, names in by_coordinator.items():
        request = DescribeTransactionsRequest(transactional_ids=tuple(names))
        answers, _ = await ask_brokers(call, (coordinator,), request, DescribeTransactionsResponse, context)
        for answer in answers.values():
            found.update((str(one.transactional_id), one) for one in answer.transaction_states)
    return found


def _transaction(coordinator: int, listed: Listed, described: Described | None, now_ms: int) -> Transaction:
    if described is None or described.error_code:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE if described is None else ErrorCode(int(described.error_code))
        return Transaction(
            transactional_id=listed.transactional_id,
            coordinator_id=coordinator,
            state=listed.transaction_state,
            producer_id=int(listed.producer_id),
            producer_epoch=None,
            timeout_ms=None,
            age_ms=None,
            partitions=[],
            error=code.name,
        )
    opened_ms = _opened_ms(described)
    return Transaction(
        transactional_id=listed.transactional_id,
        coordinator_id=coordinator,
        state=described.transaction_state,
        producer_id=int(described.producer_id),
        producer_epoch=int(described.producer_epoch),
        timeout_ms=described.transaction_timeout // _MILLISECOND,
        age_ms=None if opened_ms is None else max(0, now_ms - opened_ms),
        partitions=[PartitionName(topic=topic, partition=index) for topic, index in _partitions(described)],
    )


def _opened_ms(described: Described) -> int | None:
    # Null on the wire where there is no transaction, whatever the class says.
    started: Any = described.transaction_start_time
    if started is None or described.transaction_state not in ENDING:
        return None
    return int((started - datetime(1970, 1, 1, tzinfo=UTC)) // _MILLISECOND)


def _partitions(described: Described) -> list[tuple[str, int]]:
    return [(str(topic.topic), int(index)) for topic in described.topics for index in sorted(topic.partitions)]


async def _hanging(call: Call) -> HangingList:
    query: HangingQuery = call.query
    if query.topic is None and query.broker_id is None:
        raise HttpError(400, "Bad Request", "It needs a topic or a broker_id: all partitions would be asked.")
    if query.partition is not None and query.topic is None:
        raise HttpError(400, "Bad Request", "A partition needs its topic.")
    opened = await _open(call, await _leaders(call, query.topic, query.partition, query.broker_id))
    old = [one for one in opened if one.idle_ms >= query.running_longer_ms]
    return HangingList(transactions=await _without_coordinator(call, old))


async def _leaders(
    call: Call, name: str | None, partition: int | None, broker_id: int | None
) -> dict[tuple[str, int], int]:
    """The leaders of the partitions that are asked for and have one, of topics that the client may read, as for
    DescribeProducers. Raises KafkaError."""
    topics = call.node.image.topics
    if name is not None:
        call.require_topic(AclOperation.READ, name)
        if name not in topics.by_name:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic {name!r} does not exist.")
    chosen = list(topics.by_id.values()) if name is None else [topics.by_name[name]]
    found = {}
    turns = Turns()
    async for topic in turns.over(chosen):
        if not call.may(AclOperation.READ, ResourceType.TOPIC, topic.name):
            continue
        for index, one in enumerate(topic.partitions):
            if one.leader != NO_LEADER and partition in (None, index) and broker_id in (None, one.leader):
                found[topic.name, index] = int(one.leader)
    return found


async def _open(call: Call, leaders: Mapping[tuple[str, int], int]) -> list[OpenTransaction]:
    """What these partitions have open. Raises KafkaError where a leader does not answer: it may have one that hangs."""
    by_leader: dict[int, dict[str, list[i32]]] = {}
    for (topic, index), leader in leaders.items():
        by_leader.setdefault(leader, {}).setdefault(topic, []).append(i32(index))
    now_ms = call.node.wall_clock_ms()
    found = []
    for leader, topics in sorted(by_leader.items()):
        request = DescribeProducersRequest(
            topics=tuple(TopicRequest(name=TopicName(name), partition_indexes=tuple(of)) for name, of in topics.items())
        )
        answer = await call.node.ask_broker(leader, request, DescribeProducersResponse, call.context)
        for told in answer.topics:
            for partition in told.partitions:
                check(partition.error_code, partition.error_message)
                found += [
                    OpenTransaction(
                        topic=str(told.name),
                        partition=int(partition.partition_index),
                        producer_id=int(one.producer_id),
                        producer_epoch=int(one.producer_epoch),
                        coordinator_epoch=int(one.coordinator_epoch),
                        start_offset=int(one.current_txn_start_offset),
                        idle_ms=max(0, now_ms - int(one.last_timestamp)),
                    )
                    for one in partition.active_producers
                    if one.current_txn_start_offset != NOT_OPEN
                ]
    return sorted(found, key=lambda one: (one.topic, one.partition, one.start_offset))


async def _without_coordinator(call: Call, opened: Collection[OpenTransaction]) -> list[OpenTransaction]:
    """Those that no coordinator knows to be open in their partition. Raises KafkaError where one does not answer.

    Coordinators are asked for all of their transactions: one that the client may not see does not hang.
    """
    if not opened:
        return []
    own = call.node.own_context
    producers = sorted({one.producer_id for one in opened})
    listed, failures = await _ask_all(
        call,
        ListTransactionsRequest(
            state_filters=(), producer_id_filters=tuple(map(ProducerId, producers)), duration_filter=i64(-1)
        ),
        own,
    )
    if failures:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "; ".join(failures))
    ending = [(coordinator, one) for coordinator, one in listed if one.transaction_state in ENDING]
    described = await _describe(call, ending, own)
    if any(one.transactional_id not in described for _, one in ending):
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "A coordinator did not describe its transactions.")
    known = {(int(one.producer_id), topic, index) for one in described.values() for topic, index in _partitions(one)}
    return [one for one in opened if (one.producer_id, one.topic, one.partition) not in known]


async def _abort(call: Call) -> OpenTransaction:
    """In its partition, without its coordinator."""
    body: AbortRequest = call.body
    leaders = await _leaders(call, body.topic, body.partition, None)
    if not leaders:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Partition {body.topic}-{body.partition} has no leader."
        )
    opened = await _open(call, leaders)
    found = next((one for one in opened if one.start_offset == body.start_offset), None)
    if found is None:
        raise HttpError(
            404, "Not Found", f"No transaction begins at offset {body.start_offset} of {body.topic}-{body.partition}."
        )
    marker = WritableTxnMarker(
        producer_id=ProducerId(found.producer_id),
        producer_epoch=i16(found.producer_epoch),
        transaction_result=False,
        topics=(WritableTxnMarkerTopic(name=TopicName(found.topic), partition_indexes=(i32(found.partition),)),),
        # As Apache Kafka's tool: a partition without a marker so far says -1.
        coordinator_epoch=i32(max(found.coordinator_epoch, 0)),
    )
    request = WriteTxnMarkersRequest(markers=(marker,))
    answer = await call.node.ask_broker(
        leaders[found.topic, found.partition], request, WriteTxnMarkersResponse, call.context
    )
    _check_markers(answer)
    return found


def _check_markers(answer: WriteTxnMarkersResponse) -> None:
    codes: Iterable[int] = (
        partition.error_code for told in answer.markers for topic in told.topics for partition in topic.partitions
    )
    for code in codes:
        check(code)


OPERATIONS: Final = (
    Operation(
        name="listTransactions",
        method="GET",
        path="/v1/transactions",
        tag="Transactions",
        summary="The transactions of all coordinators",
        run=_list,
        query=TransactionsQuery,
        answer=TransactionList,
    ),
    Operation(
        name="listHangingTransactions",
        method="GET",
        path="/v1/transactions/hanging",
        tag="Transactions",
        summary="Transactions that are open in a partition and that no coordinator will end",
        run=_hanging,
        query=HangingQuery,
        answer=HangingList,
    ),
    Operation(
        name="abortTransaction",
        method="POST",
        path="/v1/transactions/abort",
        tag="Transactions",
        summary="Abort a transaction in one partition, without its coordinator",
        run=_abort,
        body=AbortRequest,
        answer=OpenTransaction,
    ),
)
