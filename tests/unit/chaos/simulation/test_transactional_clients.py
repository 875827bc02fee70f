"""A simulated client whose transaction was ended by an answer begins anew, and any other misuse is a bug of its own."""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import IllegalOperation
from aiokafka.producer.transaction_manager import TransactionState

from penstock.chaos.checkers.transactions import Place, Transaction
from penstock.chaos.simulation.cluster.transactional_clients import OverError, TransactionalProducer


def sending(state: TransactionState) -> Callable[[], Coroutine[Any, Any, None]]:
    """Two records, between which the producer comes into `state`."""

    async def send(*_: Any, **__: Any) -> asyncio.Future[Any]:
        if producer.sent_count:
            producer._txn_manager.state = state
            raise IllegalOperation("Can't send messages while not in transaction")
        producer.sent_count += 1
        return asyncio.get_running_loop().create_future()

    manager = SimpleNamespace(state=TransactionState.IN_TRANSACTION)
    producer = SimpleNamespace(send=send, sent_count=0, _txn_manager=manager)
    client = TransactionalProducer.__new__(TransactionalProducer)
    client._random = Random(1)
    values = [(Place("ledger", 0), b""), (Place("ledger", 1), b"")]
    return lambda: client._send(producer, Transaction("t.1"), values)


@pytest.mark.parametrize("state", [TransactionState.FATAL_ERROR, TransactionState.ABORTABLE_ERROR])
def test_a_client_that_is_refused_between_two_records_begins_anew(state: TransactionState) -> None:
    with pytest.raises(OverError):
        asyncio.run(sending(state)())


def test_a_client_that_sends_outside_of_a_transaction_is_a_bug() -> None:
    with pytest.raises(IllegalOperation):
        asyncio.run(sending(TransactionState.READY)())
