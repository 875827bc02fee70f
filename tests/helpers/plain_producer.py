"""A transactional producer that sends what it is told to, in any version and at the wrong moment too."""

from __future__ import annotations

import itertools
import socket
import struct
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from kio.schema.add_offsets_to_txn.v4.request import AddOffsetsToTxnRequest
from kio.schema.add_partitions_to_txn.v5.request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kio.schema.end_txn.v5.request import EndTxnRequest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.produce.v12.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.txn_offset_commit.v5.request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kio.schema.types import GroupId, ProducerId, TopicName, TransactionalId
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta, i64

from penstock.protocol.apis import ApiKey
from penstock.protocol.errors import ErrorCode
from penstock.protocol.messages import decode_response, encode_request
from penstock.protocol.records import Record, write_batch

Ask = Callable[[ApiKey, int, Any], Any]
DEADLINE_S: Final = 30.0
TIME_MS: Final = 1_700_000_000_000
TRANSACTION: Final = 1
"""Key type of FindCoordinator."""
TIMEOUT: Final = i32Timedelta.parse(timedelta(seconds=30))
NOT_YET: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_ENOUGH_REPLICAS,
    }
)
"""Every producer tries again when it hears these."""


class PlainClient:
    """One connection, one request at a time."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.split(",")[0].rpartition(":")
        self._connection = socket.create_connection((host, int(port)), timeout=DEADLINE_S)
        self._stream = self._connection.makefile("rb")
        self._correlation_ids = itertools.count(1)

    def __call__(self, key: ApiKey, version: int, request: Any) -> Any:
        sent_id = next(self._correlation_ids)
        self._connection.sendall(encode_request(key, version, sent_id, "plain", request))
        size = self._stream.read(4)
        assert len(size) == 4, f"the broker closed the connection on {key.name} v{version}"
        answered_id, answer = decode_response(key, version, self._stream.read(*struct.unpack(">i", size)))
        assert answered_id == sent_id
        return answer

    def close(self) -> None:
        self._stream.close()
        self._connection.close()


class PlainProducer:
    """Version 2 of transactions unless `is_old`. What is not asked for raises AssertionError."""

    def __init__(self, ask: Ask, transactional_id: str, *, is_old: bool = False) -> None:
        self._ask = ask
        self._id = TransactionalId(transactional_id)
        self._is_old = is_old
        self.producer_id = -1
        self.epoch = -1

    def init(self, *, timeout_ms: int = 60_000, version: int = 5) -> None:
        request = InitProducerIdRequest(
            transactional_id=self._id, transaction_timeout=i32Timedelta.parse(timedelta(milliseconds=timeout_ms))
        )
        # The topic of the coordinators is made when one is first looked for.
        wanted = FindCoordinatorRequest(key_type=i8(TRANSACTION), coordinator_keys=(self._id,))
        found = _settled(
            lambda: self._ask(ApiKey.FIND_COORDINATOR, 6, wanted), lambda one: one.coordinators[0].error_code
        )
        assert found.coordinators[0].error_code == ErrorCode.NONE
        answer = _settled(lambda: self._ask(ApiKey.INIT_PRODUCER_ID, version, request), lambda one: one.error_code)
        assert answer.error_code == ErrorCode.NONE
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    def add(self, topic: str, partition: int = 0, *, version: int = 3, epoch: int | None = None) -> ErrorCode:
        request = AddPartitionsToTxnRequest(
            transactions=(
                AddPartitionsToTxnTransaction(
                    transactional_id=self._id,
                    producer_id=ProducerId(self.producer_id),
                    producer_epoch=i16(self.epoch if epoch is None else epoch),
                    topics=(AddPartitionsToTxnTopic(name=TopicName(topic), partitions=(i32(partition),)),),
                ),
            ),
        )

        def code_of(answer: Any) -> int:
            (result,) = answer.results_by_transaction
            return int(result.topic_results[0].results_by_partition[0].partition_error_code)

        return ErrorCode(code_of(_settled(lambda: self._ask(ApiKey.ADD_PARTITIONS_TO_TXN, version, request), code_of)))

    def produce(
        self,
        topic: str,
        sequence: int,
        *,
        partition: int = 0,
        epoch: int | None = None,
        version: int | None = None,
        value: bytes = b"v",
    ) -> ErrorCode:
        batch = write_batch(
            [Record(0, TIME_MS, b"k", value)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = (PartitionProduceData(index=i32(partition), records=Records(batch)),)
        request = ProduceRequest(
            transactional_id=self._id,
            acks=i16(-1),
            timeout=TIMEOUT,
            topic_data=(TopicProduceData(name=TopicName(topic), partition_data=data),),
        )
        chosen = version or (11 if self._is_old else 12)

        def code_of(answer: Any) -> int:
            return int(answer.responses[0].partition_responses[0].error_code)

        return ErrorCode(code_of(_settled(lambda: self._ask(ApiKey.PRODUCE, chosen, request), code_of)))

    def add_offsets(self, group: str, *, version: int = 4) -> ErrorCode:
        request = AddOffsetsToTxnRequest(
            transactional_id=self._id,
            producer_id=ProducerId(self.producer_id),
            producer_epoch=i16(self.epoch),
            group_id=GroupId(group),
        )
        answer = _settled(lambda: self._ask(ApiKey.ADD_OFFSETS_TO_TXN, version, request), lambda one: one.error_code)
        return ErrorCode(int(answer.error_code))

    def commit_offset(self, group: str, topic: str, offset: int, *, version: int | None = None) -> ErrorCode:
        one = TxnOffsetCommitRequestPartition(
            partition_index=i32(0), committed_offset=i64(offset), committed_metadata="note"
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=GroupId(group),
            producer_id=ProducerId(self.producer_id),
            producer_epoch=i16(self.epoch),
            topics=(TxnOffsetCommitRequestTopic(name=TopicName(topic), partitions=(one,)),),
        )
        chosen = (4 if self._is_old else 5) if version is None else version

        def code_of(answer: Any) -> int:
            return int(answer.topics[0].partitions[0].error_code)

        return ErrorCode(code_of(_settled(lambda: self._ask(ApiKey.TXN_OFFSET_COMMIT, chosen, request), code_of)))

    def end(self, *, is_commit: bool = True, epoch: int | None = None, version: int | None = None) -> ErrorCode:
        """With version 2 the next transaction has the epoch that the answer tells."""
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=ProducerId(self.producer_id),
            producer_epoch=i16(self.epoch if epoch is None else epoch),
            committed=is_commit,
        )
        chosen = (4 if self._is_old else 5) if version is None else version
        answer = _settled(lambda: self._ask(ApiKey.END_TXN, chosen, request), lambda one: one.error_code)
        if answer.error_code == ErrorCode.NONE and answer.producer_id >= 0:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return ErrorCode(int(answer.error_code))


def _settled(ask: Callable[[], Any], code_of: Callable[[Any], int]) -> Any:
    """The first answer that does not say to ask again."""
    deadline_s = time.perf_counter() + DEADLINE_S
    while ErrorCode(int(code_of(answer := ask()))) in NOT_YET:
        assert time.perf_counter() < deadline_s, f"still {ErrorCode(int(code_of(answer))).name}"
    return answer
