"""What becomes of a request: an answer, an answer with an error, or the end of the connection."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse
from kio.static.primitive import i32Timedelta

from penstock.broker.apis.find_coordinator import error_response
from penstock.broker.network.dispatch import Dispatcher
from penstock.broker.network.handlers import Handlers, Load, Register
from penstock.broker.network.peer_log import PeerLog
from penstock.broker.network.request import Answer, CloseConnection, Request, RequestContext
from penstock.broker.network.rules.postponed import PostponedError
from penstock.protocol.apis import ApiKey
from penstock.protocol.errors import CorruptData, ErrorCode, KafkaError
from penstock.protocol.ids import NodeId
from penstock.protocol.messages import decode_response, encode_request

CONTEXT = RequestContext(listener_name="PLAINTEXT", peer_host="10.0.0.1", client_id="me")
MESSAGE = FindCoordinatorRequest(coordinator_keys=("a", "b"))
BODY_OFFSET = 11


class Connection:
    def __init__(self) -> None:
        self.answer: Answer | None = None
        self.muted_ms: list[int] = []

    def on_answer(self, _request: Request, answer: Answer) -> None:
        self.answer = answer

    def hold_later_requests(self, request: Request) -> None: ...
    def release_later_requests(self, request: Request) -> None: ...
    def mute(self, throttle_time_ms: int) -> None:
        self.muted_ms.append(throttle_time_ms)

    def set_context(self, context: RequestContext) -> None: ...

    @property
    def codes(self) -> list[ErrorCode]:
        """The errors of the response, one for each key."""
        assert isinstance(self.answer, bytes)
        _, response = decode_response(ApiKey.FIND_COORDINATOR, 6, self.answer[4:])
        assert isinstance(response, FindCoordinatorResponse)
        return [ErrorCode(int(one.error_code)) for one in response.coordinators]

    @property
    def closed_because(self) -> str:
        assert isinstance(self.answer, CloseConnection)
        return self.answer.reason


def begin(
    handlers: Handlers,
    *,
    trailing: bytes = b"",
    key: int = ApiKey.FIND_COORDINATOR,
    context: RequestContext = CONTEXT,
) -> Connection:
    """Begins FindCoordinator version 6 and lets everything that waits come to its end."""
    connection = Connection()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        dispatcher = Dispatcher(handlers, loop, PeerLog(loop))
        body = encode_request(ApiKey.FIND_COORDINATOR, 6, 7, None, MESSAGE)[4:] + trailing
        dispatcher.begin(Request(connection, key, 6, 7, context, memoryview(body), BODY_OFFSET))
        await dispatcher.stop()

    asyncio.run(run())
    return connection


def handlers_of(error: Exception | None, *, waits: bool) -> Handlers:
    async def wait(request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        await asyncio.sleep(0)
        return respond(request)

    def respond(request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        if error is not None:
            raise error
        return error_response(request, KafkaError(ErrorCode.NONE))

    def handle(
        request: FindCoordinatorRequest, _context: RequestContext
    ) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
        return wait(request) if waits else respond(request)

    handlers = Handlers()
    handlers.add_message(ApiKey.FIND_COORDINATOR, handle, answer_error=error_response)
    return handlers


@pytest.mark.parametrize("waits", [False, True])
def test_message_handler_answers_at_once_or_later(waits: bool) -> None:
    assert begin(handlers_of(None, waits=waits)).codes == [ErrorCode.NONE, ErrorCode.NONE]


@pytest.mark.parametrize("waits", [False, True])
def test_kafka_error_is_answered_in_the_shape_of_the_api(waits: bool) -> None:
    connection = begin(handlers_of(KafkaError(ErrorCode.NOT_COORDINATOR), waits=waits))
    assert connection.codes == [ErrorCode.NOT_COORDINATOR] * 2


@pytest.mark.parametrize("waits", [False, True])
def test_bug_is_answered_as_unknown_server_error_and_logged_once(waits: bool, caplog: pytest.LogCaptureFixture) -> None:
    connection = begin(handlers_of(ZeroDivisionError("a bug"), waits=waits))
    assert connection.codes == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    assert caplog.text.count("Traceback") == 1
    assert "api=FindCoordinator version=6 correlation_id=7 client=me peer=10.0.0.1" in caplog.text


def test_request_with_trailing_bytes_closes_the_connection() -> None:
    assert "too many" in begin(handlers_of(None, waits=False), trailing=b"x").closed_because


def test_api_of_another_listener_closes_the_connection() -> None:
    assert begin(Handlers()).closed_because == "FindCoordinator is not served on this listener"


def test_handler_of_bytes_that_finds_corrupt_data_closes_the_connection() -> None:
    def refuse(_request: Request) -> None:
        raise CorruptData("no sense in it")

    handlers = Handlers()
    handlers.add(ApiKey.FIND_COORDINATOR, refuse)
    assert begin(handlers).closed_because == "no sense in it"


@pytest.mark.parametrize("waits", [False, True])
def test_bug_in_a_handler_of_bytes_closes_the_connection(waits: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def fail_later() -> None:
        raise ZeroDivisionError

    def fail(_request: Request) -> Awaitable[None]:
        if waits:
            return fail_later()
        raise ZeroDivisionError

    handlers = Handlers()
    handlers.add(ApiKey.FIND_COORDINATOR, fail)
    assert "unexpected" in begin(handlers).closed_because
    assert caplog.text.count("Traceback") == 1


class Early:
    """Comes a moment too early, once."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.begun: list[bytes] = []
        self.waiting: list[Callable[[], None]] = []
        self.fails_at_last = False

    def check(self, body: bytes = b"") -> None:
        self.begun.append(body)
        if len(self.begun) == 1:
            raise PostponedError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, self.waiting.append)
        if self.fails_at_last:
            raise ZeroDivisionError("a bug")

    def reply(
        self,
        message: FindCoordinatorRequest,
        _request: Request,
        reply: Callable[[FindCoordinatorResponse], None],
    ) -> None:
        self.check()
        reply(error_response(message, KafkaError(ErrorCode.NONE)))

    def answer(self, request: Request) -> None:
        self.check(bytes(request.body))
        request.respond(b"answer")

    def reply_later(
        self,
        message: FindCoordinatorRequest,
        _request: Request,
        reply: Callable[[FindCoordinatorResponse], None],
    ) -> Awaitable[None]:
        async def later() -> None:
            self.reply(message, _request, reply)

        return later()

    def answer_later(self, request: Request) -> Awaitable[None]:
        request.body = memoryview(bytes(request.body))

        async def later() -> None:
            self.answer(request)

        return later()

    def run(self, handlers: Handlers, *, is_lost: bool = False) -> bytes:
        """Returns what the request was."""
        body = encode_request(ApiKey.FIND_COORDINATOR, 6, 7, None, MESSAGE)[4:]

        async def run() -> None:
            loop = asyncio.get_running_loop()
            dispatcher = Dispatcher(handlers, loop, PeerLog(loop))
            buffer = bytearray(body)
            request = Request(self.connection, ApiKey.FIND_COORDINATOR, 6, 7, CONTEXT, memoryview(buffer), BODY_OFFSET)
            dispatcher.begin(request)
            buffer[:] = bytes(len(buffer))
            await dispatcher.stop()
            assert self.connection.answer is None
            request.is_connected = not is_lost
            (begin_again,) = self.waiting
            begin_again()
            await dispatcher.stop()

        asyncio.run(run())
        return body


@pytest.fixture
def early() -> Early:
    return Early(Connection())


def replying(early: Early) -> Handlers:
    handlers = Handlers()
    handlers.add_replying(ApiKey.FIND_COORDINATOR, early.reply, answer_error=error_response)
    return handlers


def of_bytes(early: Early) -> Handlers:
    handlers = Handlers()
    handlers.add(ApiKey.FIND_COORDINATOR, early.answer)
    return handlers


def replying_later(early: Early) -> Handlers:
    handlers = Handlers()
    handlers.add_replying(ApiKey.FIND_COORDINATOR, early.reply_later, answer_error=error_response)
    return handlers


def of_bytes_later(early: Early) -> Handlers:
    handlers = Handlers()
    handlers.add(ApiKey.FIND_COORDINATOR, early.answer_later)
    return handlers


REPLYING = [replying, replying_later]
OF_BYTES = [of_bytes, of_bytes_later]


@pytest.mark.parametrize("make", REPLYING)
def test_what_comes_too_early_begins_again(early: Early, make: Callable[[Early], Handlers]) -> None:
    early.run(make(early))
    assert early.connection.codes == [ErrorCode.NONE, ErrorCode.NONE]


@pytest.mark.parametrize("make", OF_BYTES)
def test_what_comes_too_early_begins_again_with_its_own_bytes(early: Early, make: Callable[[Early], Handlers]) -> None:
    """The buffer that it lay in has others by then."""
    body = early.run(make(early))
    assert early.begun == [body, body]
    assert early.connection.answer == b"answer"


@pytest.mark.parametrize("make", [*REPLYING, *OF_BYTES])
def test_what_begins_again_for_a_client_that_is_gone_is_let_be(early: Early, make: Callable[[Early], Handlers]) -> None:
    early.run(make(early), is_lost=True)
    assert len(early.begun) == 1


@pytest.mark.parametrize("make", REPLYING)
def test_a_bug_in_what_begins_again_is_logged_and_answered(
    early: Early, make: Callable[[Early], Handlers], caplog: pytest.LogCaptureFixture
) -> None:
    early.fails_at_last = True
    early.run(make(early))
    assert early.connection.codes == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    assert caplog.text.count("Traceback") == 1


@pytest.mark.parametrize("make", OF_BYTES)
def test_a_bug_in_what_begins_again_by_its_bytes_closes_the_connection(
    early: Early, make: Callable[[Early], Handlers]
) -> None:
    early.fails_at_last = True
    early.run(make(early))
    assert "unexpected" in early.connection.closed_because


def test_only_what_has_a_handler_is_built() -> None:
    handlers = handlers_of(None, waits=False)
    handlers.add(ApiKey.PRODUCE, lambda _request: None, overlaps=True)
    assert [api.key for api in handlers.built] == [ApiKey.PRODUCE, ApiKey.FIND_COORDINATOR]
    assert handlers.overlapping == {ApiKey.PRODUCE}


class Loading:
    """Code of FindCoordinator and Heartbeat that is loaded later."""

    def __init__(self) -> None:
        self.count = 0
        self.handlers = Handlers()
        self.handlers.add_later((ApiKey.FIND_COORDINATOR, ApiKey.HEARTBEAT), self.load)

    def load(self) -> Register:
        self.count += 1
        return self.register

    def register(self, handlers: Handlers) -> None:
        handlers.add_message(ApiKey.FIND_COORDINATOR, error_response_of_none, answer_error=error_response)
        handlers.add(ApiKey.HEARTBEAT, lambda _request: None)

    async def in_thread(self, load: Load) -> Register:
        return load()


def error_response_of_none(request: FindCoordinatorRequest, _context: RequestContext) -> FindCoordinatorResponse:
    return error_response(request, KafkaError(ErrorCode.NONE))


def test_the_first_request_loads_what_serves_it_and_what_comes_with_it() -> None:
    later = Loading()
    assert [api.key for api in later.handlers.built] == [ApiKey.FIND_COORDINATOR, ApiKey.HEARTBEAT]
    assert later.count == 0
    for _ in range(2):
        assert begin(later.handlers).codes == [ErrorCode.NONE, ErrorCode.NONE]
    assert later.handlers.find(ApiKey.HEARTBEAT) is not None
    assert later.count == 1
    assert [api.key for api in later.handlers.built] == [ApiKey.FIND_COORDINATOR, ApiKey.HEARTBEAT]


def test_what_no_client_asks_for_is_loaded_too() -> None:
    later = Loading()
    asyncio.run(later.handlers.load_all(later.in_thread))
    assert later.count == 1
    assert begin(later.handlers).codes == [ErrorCode.NONE, ErrorCode.NONE]
    assert later.count == 1


def test_a_request_that_comes_while_its_code_is_loaded_is_served_at_once() -> None:
    later = Loading()
    found = []

    async def slowly(load: Load) -> Register:
        register = load()
        found.append(later.handlers.find(ApiKey.HEARTBEAT))
        return register

    asyncio.run(later.handlers.load_all(slowly))
    assert found != [None]
    assert later.count == 2


def test_code_that_serves_something_else_than_was_said_is_found() -> None:
    later = Loading()
    later.handlers.add_later((ApiKey.SYNC_GROUP,), lambda: lambda _handlers: None)
    with pytest.raises(AssertionError, match="what was said"):
        later.handlers.find(ApiKey.SYNC_GROUP)
    with pytest.raises(AssertionError, match="two handlers"):
        later.handlers.add(ApiKey.HEARTBEAT, lambda _request: None)


@pytest.mark.parametrize(("node_id", "muted_ms"), [(None, [1500]), (NodeId(2), [])])
def test_a_client_that_has_no_quota_here_is_muted_for_the_time_that_the_controller_told(
    node_id: NodeId | None, muted_ms: list[int]
) -> None:
    """KIP-219, KIP-599: the quota may have come after the request began. What a node is told is for its client."""

    def throttle(request: FindCoordinatorRequest, _context: RequestContext) -> FindCoordinatorResponse:
        throttle_time = i32Timedelta.parse(timedelta(milliseconds=1500))
        return replace(error_response(request, KafkaError(ErrorCode.NONE)), throttle_time=throttle_time)

    handlers = Handlers()
    handlers.add_message(ApiKey.FIND_COORDINATOR, throttle, answer_error=error_response)
    assert begin(handlers, context=replace(CONTEXT, node_id=node_id)).muted_ms == muted_ms
