"""Messages about many partitions: what else the event loop does meanwhile, and what threads are left."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Sequence

import pytest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse

from penstock.broker.apis.find_coordinator import error_response
from penstock.broker.network.dispatch import Dispatcher
from penstock.broker.network.handlers import Handlers
from penstock.broker.network.large_messages import ITEMS_A_TURN, LARGE_BODY_BYTES, answer_each, in_turns
from penstock.broker.network.own_requests import OwnRequests
from penstock.broker.network.peer_log import PeerLog
from penstock.broker.network.request import Answer, CloseConnection, Request, RequestContext
from penstock.broker.network.rules.large_response import LargeResponse
from penstock.protocol.apis import ApiKey
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.messages import decode_response, encode_request

CONTEXT = RequestContext(listener_name="PLAINTEXT", peer_host="10.0.0.1", client_id="me")
BODY_OFFSET = 11
KEYS = tuple(f"group-{number:05}" for number in range(ITEMS_A_TURN * 3))


class Connection:
    def __init__(self) -> None:
        self.answers: list[Answer] = []

    def on_answer(self, _request: Request, answer: Answer) -> None:
        self.answers.append(answer)

    def hold_later_requests(self, request: Request) -> None: ...
    def release_later_requests(self, request: Request) -> None: ...
    def mute(self, throttle_time_ms: int) -> None: ...
    def set_context(self, context: RequestContext) -> None: ...


class Answering:
    """Answers FindCoordinator for each key, with the key as the host, and notes in which threads."""

    def __init__(self, *, replies: bool = False) -> None:
        self.handlers = Handlers()
        self.made_in: list[int] = []
        if replies:
            self.handlers.add_replying(
                ApiKey.FIND_COORDINATOR,
                lambda message, _, reply: reply(LargeResponse(lambda: self.make(message, message.coordinator_keys))),
                answer_error=error_response,
            )
        else:
            self.handlers.add_message(ApiKey.FIND_COORDINATOR, self.handle, answer_error=error_response)

    def handle(
        self, message: FindCoordinatorRequest, _context: RequestContext
    ) -> FindCoordinatorResponse | Awaitable[LargeResponse[FindCoordinatorResponse]]:
        return answer_each(message.coordinator_keys, str.upper, lambda told: self.make(message, told))

    def make(self, message: FindCoordinatorRequest, told: Sequence[str]) -> FindCoordinatorResponse:
        assert len(told) == len(message.coordinator_keys)
        self.made_in.append(threading.get_ident())
        return error_response(message, KafkaError(ErrorCode.NONE))


def send(handlers: Handlers, keys: Sequence[str], *, cut: int = 0) -> Connection:
    """Begins a request, whose bytes are gone when that returns, as those in the buffer of a connection may be."""
    connection = Connection()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        dispatcher = Dispatcher(handlers, loop, PeerLog(loop))
        whole = encode_request(
            ApiKey.FIND_COORDINATOR, 6, 7, None, FindCoordinatorRequest(coordinator_keys=tuple(keys))
        )
        body = bytearray(whole[4 : len(whole) - cut])
        dispatcher.begin(Request(connection, ApiKey.FIND_COORDINATOR, 6, 7, CONTEXT, memoryview(body), BODY_OFFSET))
        body[:] = bytes(len(body))
        await dispatcher.stop()

    asyncio.run(run())
    return connection


def keys_in(answer: Answer) -> list[str]:
    assert isinstance(answer, bytes)
    correlation_id, response = decode_response(ApiKey.FIND_COORDINATOR, 6, answer[4:])
    assert correlation_id == 7
    assert isinstance(response, FindCoordinatorResponse)
    return [str(one.key) for one in response.coordinators]


@pytest.mark.parametrize("replies", [False, True])
def test_a_large_request_is_answered_from_a_thread(replies: bool) -> None:
    assert sum(map(len, KEYS)) > LARGE_BODY_BYTES
    answering = Answering(replies=replies)
    (answer,) = send(answering.handlers, KEYS).answers
    assert keys_in(answer) == [*KEYS]
    (maker,) = answering.made_in
    assert maker != threading.get_ident()


def test_few_items_are_answered_at_once() -> None:
    answering = Answering()
    (answer,) = send(answering.handlers, KEYS[:3]).answers
    assert keys_in(answer) == [*KEYS[:3]]
    assert answering.made_in == [threading.get_ident()]


def test_a_large_request_that_cannot_be_read_closes_the_connection() -> None:
    (answer,) = send(Answering().handlers, KEYS, cut=5).answers
    assert isinstance(answer, CloseConnection)
    assert "FindCoordinator request v6" in answer.reason


def test_what_goes_wrong_in_the_thread_is_logged_and_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    handlers = Handlers()
    handlers.add_replying(
        ApiKey.FIND_COORDINATOR,
        lambda _message, _request, reply: reply(LargeResponse(lambda: 1 // 0)),  # type: ignore[arg-type, return-value]
        answer_error=error_response,
    )
    (answer,) = send(handlers, KEYS).answers
    assert isinstance(answer, CloseConnection)
    assert "ZeroDivisionError" in caplog.text


def test_a_node_that_asks_itself_gets_the_response_itself() -> None:
    async def ask() -> FindCoordinatorResponse:
        own = OwnRequests(Answering().handlers, asyncio.get_running_loop())
        response = await own.ask(FindCoordinatorRequest(coordinator_keys=KEYS), CONTEXT)
        assert isinstance(response, FindCoordinatorResponse)
        return response

    assert [one.key for one in asyncio.run(ask()).coordinators] == [*KEYS]


def test_others_have_their_turn_between_some_hundreds_of_items() -> None:
    async def run() -> list[int]:
        done: list[int] = []
        seen: list[int] = []
        working = asyncio.ensure_future(in_turns(range(ITEMS_A_TURN * 2 + 1), done.append))
        while not working.done():
            await asyncio.sleep(0)
            seen.append(len(done))
        return seen

    seen = asyncio.run(run())
    assert {ITEMS_A_TURN, ITEMS_A_TURN * 2} <= {*seen}
    assert seen[-1] == ITEMS_A_TURN * 2 + 1
