"""InitProducerId and the blocks that ids come from."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.types import ProducerId, TransactionalId
from kio.static.primitive import i16, i32Timedelta
from permission_cases import UNRESTRICTED

from penstock.broker.apis.init_producer_id import fenced_as_known, register
from penstock.broker.cluster.producer_ids import ProducerIds
from penstock.broker.network.handlers import Handlers
from penstock.broker.transactions.transaction_shard import Producer
from penstock.protocol.apis import ApiKey
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.messages import NO_THROTTLE

T = TypeVar("T")


class Controller:
    """Gives blocks of three, when it is told to."""

    def __init__(self) -> None:
        self.block_count = 0
        self.failure: KafkaError | None = None

    async def allocate(self) -> range:
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        start = 3 * self.block_count
        self.block_count += 1
        return range(start, start + 3)


def run(awaitable: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(awaitable)


def request(transactional_id: str | None = None, producer_id: int = -1, epoch: int = -1) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=None if transactional_id is None else TransactionalId(transactional_id),
        transaction_timeout=NO_THROTTLE,
        producer_id=ProducerId(producer_id),
        producer_epoch=i16(epoch),
    )


async def ask(ids: ProducerIds, asked: InitProducerIdRequest) -> Any:
    """The answer when no transactional id has a coordinator here. Raises KafkaError."""

    def refuse(*_: object) -> None:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    handlers = Handlers()
    transactions: Any = SimpleNamespace(start=asyncio.ensure_future, ask=refuse)
    register(handlers, ids, transactions)
    answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    begun: Any = SimpleNamespace(api_version=5, context=UNRESTRICTED)
    handlers.by_reply[ApiKey.INIT_PRODUCER_ID].begin(asked, begun, answered.set_result)
    return await answered


def test_ids_are_never_given_twice() -> None:
    controller = Controller()

    async def take() -> list[int]:
        ids = ProducerIds(controller.allocate)
        return await asyncio.gather(*(ids.next_id() for _ in range(8)))

    assert sorted(run(take())) == list(range(8))
    assert controller.block_count == 3


def test_a_request_at_the_moment_a_block_has_come_gets_an_id_of_it() -> None:
    async def take() -> list[int]:
        released: asyncio.Future[range] = asyncio.get_running_loop().create_future()

        async def allocate() -> range:
            return await released

        ids = ProducerIds(allocate)
        first = asyncio.create_task(ids.next_id())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        released.set_result(range(3))
        # Runs behind the step that ends the allocation, before all that waits for its end.
        second = asyncio.create_task(ids.next_id())
        return list(await asyncio.gather(first, second))

    assert sorted(run(take())) == [0, 1]


def test_a_client_that_goes_does_not_take_the_block_with_it() -> None:
    controller = Controller()

    async def take() -> int:
        ids = ProducerIds(controller.allocate)
        leaving = asyncio.create_task(ids.next_id())
        staying = asyncio.create_task(ids.next_id())
        await asyncio.sleep(0)
        leaving.cancel()
        return await staying

    assert run(take()) == 0
    assert controller.block_count == 1


def test_failed_allocation_is_told_and_tried_again() -> None:
    controller = Controller()

    async def take() -> int:
        ids = ProducerIds(controller.allocate)
        controller.failure = KafkaError(ErrorCode.NOT_CONTROLLER)
        with pytest.raises(KafkaError):
            await ids.next_id()
        controller.failure = None
        return await ids.next_id()

    assert run(take()) == 0


@pytest.mark.parametrize("brought", [(-1, -1), (500, 3)])
def test_every_request_without_transactional_id_gets_a_new_id_with_epoch_0(brought: tuple[int, int]) -> None:
    ids = ProducerIds(Controller().allocate)
    answer: Any = run(ask(ids, request(None, *brought)))
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (ErrorCode.NONE, 0, 0)


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (request(None, 5, -1), ErrorCode.INVALID_REQUEST),
        (request(None, -1, 5), ErrorCode.INVALID_REQUEST),
        (request(""), ErrorCode.INVALID_REQUEST),
        (request("t"), ErrorCode.NOT_COORDINATOR),
    ],
)
def test_refusals(refused: InitProducerIdRequest, error: ErrorCode) -> None:
    with pytest.raises(KafkaError) as raised:
        run(ask(ProducerIds(Controller().allocate), refused))
    assert raised.value.code is error


@pytest.mark.parametrize("timeout_ms", [1, 999, 1001, 60_000, 524_281, 900_000])
def test_the_timeout_is_what_the_producer_said_to_the_millisecond(timeout_ms: int) -> None:
    timeouts: list[int] = []

    def begin(_id: str, timeout_ms: int, *_: object) -> Producer:
        timeouts.append(timeout_ms)
        return Producer(7, 0)

    shard: Any = SimpleNamespace(init_producer_id=begin)

    async def ask_coordinator() -> None:
        handlers = Handlers()
        transactions: Any = SimpleNamespace(ask=lambda _id, operation, *_: operation(shard, None))
        register(handlers, ProducerIds(Controller().allocate), transactions)
        asked = replace(request("t"), transaction_timeout=i32Timedelta.parse(timedelta(milliseconds=timeout_ms)))
        begun: Any = SimpleNamespace(api_version=5, context=UNRESTRICTED)
        handlers.by_reply[ApiKey.INIT_PRODUCER_ID].begin(asked, begun, lambda _: None)

    run(ask_coordinator())
    assert timeouts == [timeout_ms]


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_clients_come_back_while_there_are_no_ids_to_be_had(error: ErrorCode) -> None:
    controller = Controller()
    controller.failure = KafkaError(error)
    answer: Any = run(ask(ProducerIds(controller.allocate), request()))
    told = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (told, -1, -1)


def test_versions_below_4_know_no_producer_fenced() -> None:
    fenced, other = KafkaError(ErrorCode.PRODUCER_FENCED), KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert fenced_as_known(fenced, 4, 4).code is ErrorCode.PRODUCER_FENCED
    assert fenced_as_known(fenced, 3, 4).code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert fenced_as_known(other, 3, 4).code is ErrorCode.CONCURRENT_TRANSACTIONS
