"""The same nodes with producers that have ids: idempotent, or in a transaction that no coordinator knows (KIP-664)."""

from __future__ import annotations

from datetime import timedelta

from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kio.schema.types import ProducerId, TopicName
from kio.schema.write_txn_markers.v1.request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kio.static.primitive import i16, i32, i32Timedelta, i64
from open_transactions import HANGING_PRODUCER_ID, leave_open
from produce_requests import produce_request
from replication_scenario import ANSWER_MS, TOPIC, Scenario, told_of_produce

from penstock.chaos.simulation.cluster.machine import BROKER_PORT
from penstock.client.connection import connect
from penstock.protocol.errors import ErrorCode
from penstock.protocol.records import Record, write_batch

IDEMPOTENT_PRODUCER_ID = 901


class ProducerScenario(Scenario):
    def __init__(self, *, min_isr: int = 1) -> None:
        # No coordinator is asked whether the transaction is its own.
        super().__init__(min_isr=min_isr, settings={"transaction.partition.verification.enable": "false"})

    def produce_idempotently(self, name: str, *, sequence: int = 0) -> None:
        """Two records, of this sequence and the next (KIP-98). The same again is a retry."""
        self.until(lambda: self._knows_that_it_leads(name))
        answer = self._run(self._send(self._host(name), sequence))
        self.say(f"an idempotent producer sends 2 records of sequence {sequence} to {name}: {answer}")

    def delete_records(self, name: str, offset: int) -> None:
        self.say(f"a client deletes records below {offset}: {self._run(self._delete(self._host(name), offset))}")

    def produce_in_transaction(self, name: str) -> None:
        """One record, of a producer whose transaction no coordinator knows."""
        self.say(f"a client sends 1 record in a transaction to {name}: {self._run(self._leave_open(self._host(name)))}")

    def abort(self, name: str) -> None:
        """What an administrator does about such a transaction (KIP-664)."""
        self.say(f"an administrator has {name} abort the transaction: {self._run(self._abort(self._host(name)))}")

    async def _send(self, host: str, sequence: int) -> str:
        records = [Record(offset=n, timestamp_ms=0, key=None, value=b"%d" % n, headers=()) for n in range(2)]
        batch = write_batch(records, producer_id=IDEMPOTENT_PRODUCER_ID, producer_epoch=0, base_sequence=sequence)
        return told_of_produce(await self._ask(host, produce_request(self._topic_id, 0, batch)), len(records))

    async def _delete(self, host: str, offset: int) -> str:
        wanted = DeleteRecordsPartition(partition_index=i32(0), offset=i64(offset))
        request = DeleteRecordsRequest(
            topics=(DeleteRecordsTopic(name=TopicName(TOPIC), partitions=(wanted,)),),
            timeout=i32Timedelta.parse(timedelta(milliseconds=ANSWER_MS)),
        )
        response = await self._ask(host, request)
        if response is None:
            return "no answer"
        answer = response.topics[0].partitions[0]
        error = ErrorCode(int(answer.error_code))
        return f"the log starts at {answer.low_watermark}" if error is ErrorCode.NONE else error.name

    async def _leave_open(self, host: str) -> str:
        async with await connect(host, BROKER_PORT, timeout_ms=ANSWER_MS) as connection:
            await leave_open(connection, TOPIC)
        return "acknowledged"

    async def _abort(self, host: str) -> str:
        marker = WritableTxnMarker(
            producer_id=ProducerId(HANGING_PRODUCER_ID), producer_epoch=i16(0), transaction_result=False,
            topics=(WritableTxnMarkerTopic(name=TopicName(TOPIC), partition_indexes=(i32(0),)),),
            coordinator_epoch=i32(0),
        )  # fmt: skip
        response = await self._ask(host, WriteTxnMarkersRequest(markers=(marker,)))
        if response is None:
            return "no answer"
        error = ErrorCode(int(response.markers[0].topics[0].partitions[0].error_code))
        return "done" if error is ErrorCode.NONE else error.name
