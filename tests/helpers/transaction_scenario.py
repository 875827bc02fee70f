"""The same nodes with a transaction of which no coordinator knows (KIP-664), told in words too."""

from __future__ import annotations

from kio.schema.types import ProducerId, TopicName
from kio.schema.write_txn_markers.v1.request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kio.static.primitive import i16, i32
from open_transactions import HANGING_PRODUCER_ID, leave_open
from replication_scenario import ANSWER_MS, TOPIC, Scenario

from penstock.chaos.simulation.cluster.machine import BROKER_PORT
from penstock.client.connection import connect
from penstock.protocol.errors import ErrorCode


class TransactionScenario(Scenario):
    def __init__(self) -> None:
        # No coordinator is asked whether the transaction is its own.
        super().__init__(settings={"transaction.partition.verification.enable": "false"})

    def produce_in_transaction(self, name: str) -> None:
        """One record, of a producer whose transaction no coordinator knows."""
        self.say(f"a client sends 1 record in a transaction to {name}: {self._run(self._leave_open(self._host(name)))}")

    def abort(self, name: str) -> None:
        """What an administrator does about such a transaction (KIP-664)."""
        self.say(f"an administrator has {name} abort the transaction: {self._run(self._abort(self._host(name)))}")

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
