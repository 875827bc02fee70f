"""Requests of this node to itself: the handlers of its own table, asked by values, without a connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from ...protocol.apis import APIS
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import Request as Message
from ...protocol.messages import Response, decode_header, decode_response, encode_request
from .handlers import Begin, Handlers, MessageHandler, ReplyingHandler
from .request import Answer, AnswerPart, CloseConnection, Request, RequestContext
from .rules.large_response import LargeResponse

logger = logging.getLogger(__name__)

_SIZE_BYTES: Final = 4
"""Of the size in front of a frame."""
_NO_CORRELATION: Final = 0


class OwnRequests:
    """Asks what is in `handlers`, as a connection would; `context` says who asks."""

    def __init__(self, handlers: Handlers, loop: asyncio.AbstractEventLoop) -> None:
        self._handlers = handlers
        self._loop = loop

    def serves(self, api_key: int) -> bool:
        """Whether the table has the API."""
        return self._handlers.find(api_key) is not None

    async def ask(self, message: Message, context: RequestContext) -> Response:
        """The handler's answer. Error codes inside it are the caller's business; what a handler raises is one.

        Raises KafkaError UNSUPPORTED_VERSION for an API that is not in the table, NETWORK_EXCEPTION where a client's
        connection would have been closed.
        """
        api_key = message.__api_key__
        handler = self._handlers.find(api_key)
        if isinstance(handler, MessageHandler | ReplyingHandler):
            version = APIS[api_key].max_version
            assert message.__version__ == version, "handlers take the class of the latest version"
            return await self._ask_by_values(handler, message, context)
        if handler is not None:
            return await self._ask_by_bytes(handler, message, context)
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{APIS[api_key].name} is not served by this node")

    async def _ask_by_values(
        self, handler: MessageHandler | ReplyingHandler, message: Message, context: RequestContext
    ) -> Response:
        answer: Any
        try:
            if isinstance(handler, MessageHandler):
                answer = handler.handle(message, context)
                if isinstance(answer, Awaitable):
                    answer = await answer
            else:
                replied: asyncio.Future[Any] = self._loop.create_future()
                api_key = message.__api_key__
                request = Request(
                    _NoConnection(replied), api_key, message.__version__, _NO_CORRELATION, context, memoryview(b""), 0
                )
                handler.begin(message, request, lambda reply: None if replied.done() else replied.set_result(reply))
                answer = await replied
            if isinstance(answer, LargeResponse):
                answer = await self._loop.run_in_executor(None, answer.make)
        except KafkaError as error:
            answer = handler.answer_error(message, error)
        except Exception:
            logger.exception("Request of this node to itself failed: api=%s", APIS[message.__api_key__].name)
            answer = handler.answer_error(message, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
        return cast(Response, answer)

    async def _ask_by_bytes(self, begin: Begin, message: Message, context: RequestContext) -> Response:
        """For what is served without being decoded: the bytes that a client would have sent."""
        api_key, version = message.__api_key__, message.__version__
        frame = memoryview(encode_request(api_key, version, _NO_CORRELATION, context.client_id, message))[_SIZE_BYTES:]
        answered: asyncio.Future[Answer] = self._loop.create_future()
        request = Request(
            _NoConnection(answered), api_key, version, _NO_CORRELATION, context, frame, decode_header(frame).body_offset
        )
        whole = await self._whole(request, answered, begin(request))
        _, response = decode_response(api_key, version, memoryview(whole)[_SIZE_BYTES:])
        return response

    async def ask_frame(self, begin: Callable[[Request], None], frame: memoryview, context: RequestContext) -> bytes:
        """What a client would have been sent for that frame, both without their sizes. `begin` is a dispatcher's.

        Raises KafkaError NETWORK_EXCEPTION where a client's connection would have been closed, CorruptData.
        """
        header = decode_header(frame)
        answered: asyncio.Future[Answer] = self._loop.create_future()
        request = Request(
            _NoConnection(answered),
            header.api_key,
            header.api_version,
            header.correlation_id,
            context,
            frame,
            header.body_offset,
        )
        begin(request)
        return (await self._whole(request, answered, None))[_SIZE_BYTES:]

    async def _whole(
        self, request: Request, answered: asyncio.Future[Answer], waiting: Awaitable[None] | None
    ) -> bytes:
        """The frame of the answer, with its size. Raises KafkaError."""
        try:
            if waiting is not None:
                await waiting
            answer = await answered
        finally:
            if not answered.done() or answered.cancelled():
                request.is_connected = False
                if request.on_disconnect is not None:
                    request.on_disconnect()
        if isinstance(answer, CloseConnection):
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, answer.reason)
        parts = (answer,) if isinstance(answer, bytes) else answer
        return b"".join([await self._bytes_of(part) for part in parts])

    async def _bytes_of(self, part: AnswerPart) -> bytes:
        if isinstance(part, bytes):
            return part
        now = part.read_nowait(0, part.size)
        if now is not None and len(now) == part.size:
            return bytes(now)
        return await self._loop.run_in_executor(None, part.read, 0, part.size)


class _NoConnection:
    """The `RequestOwner` of requests without a connection."""

    __slots__ = ("_answered",)

    def __init__(self, answered: asyncio.Future[Any]) -> None:
        self._answered = answered

    def on_answer(self, _request: Request, answer: Answer) -> None:
        if not self._answered.done():
            self._answered.set_result(answer)

    def hold_later_requests(self, _request: Request) -> None:
        """Nothing is behind it."""

    def release_later_requests(self, _request: Request) -> None:
        """Nothing is behind it."""

    def mute(self, _throttle_time_ms: int) -> None:
        """There is no connection to mute."""

    def set_context(self, _context: RequestContext) -> None:
        raise AssertionError("a node does not authenticate at itself")
