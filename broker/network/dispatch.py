"""From a request to its handler and back: the one place that decides between an answer, and closing the connection.

Kafka: `RequestChannel`, `KafkaRequestHandler`.

| what happened                                       | what follows                                                  |
|-----------------------------------------------------|---------------------------------------------------------------|
| the API is of another listener                      | close                                                         |
| ApiVersions in a version that does not exist        | its handler answers UNSUPPORTED_VERSION in version 0 (KIP-511) |
| CorruptData while the body is read                  | close                                                         |
| PostponedError from a handler that answers by calls | it begins again a moment later                                |
| the same from a handler of bytes                    | the same, by a copy of its bytes                              |
| KafkaError from a message handler                   | the API's own response with that code                         |
| anything else from a message handler                | logged with its traceback; the same with UNKNOWN_SERVER_ERROR |
| anything else from a handler of bytes               | logged with its traceback; close                              |

A thread reads large requests, and writes responses that handlers call large (`rules/large_response.py`).

Unknown APIs and other versions that do not exist never get here: their header is not read (`protocol/messages.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from datetime import timedelta
from functools import partial

from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.messages import NO_HEADER_TAGS, decode_request, encode_response, read_request_tags
from ...protocol.own_apis import api_name, requester_of
from ...quorum.permissions.requester import Requester, decode_requester
from .handlers import Handlers, Message, MessageHandler, ReplyingHandler
from .large_messages import LARGE_BODY_BYTES
from .peer_log import PeerLog
from .request import Request, RequestContext
from .rules.large_response import LargeResponse
from .rules.postponed import PostponedError
from .rules.request_statistics import RequestStatistics


class Dispatcher:
    """Begins requests. One for the node."""

    def __init__(
        self,
        handlers: Handlers,
        loop: asyncio.AbstractEventLoop,
        peer_log: PeerLog,
        requests: RequestStatistics | None = None,
    ) -> None:
        """`requests` has the counts of errors."""
        self._handlers = handlers
        self._by_bytes = handlers.by_bytes
        self._by_message = handlers.by_message
        self._by_reply = handlers.by_reply
        self._loop = loop
        self._peer_log = peer_log
        self._requests = RequestStatistics() if requests is None else requests
        self._tasks: set[asyncio.Task[None]] = set()
        self.unexpected_errors = 0
        """Exceptions logged as bugs, since start."""

    def begin(self, request: Request) -> None:
        """Hands the request to its handler. Never raises: a connection must not fall with a handler."""
        begin = self._by_bytes.get(request.api_key)
        try:
            if begin is not None:
                waiting = begin(request)
                if waiting is not None:
                    self._start(self._finish_begin(request, waiting))
            else:
                self._begin_message(request)
        except PostponedError as error:
            # The buffer of the connection is used again when this returns.
            request.body = memoryview(bytes(request.body))
            error.wait(partial(self._begin_again, request, self.begin))
        except CorruptData as error:
            self._close(request, str(error))
        except Exception as error:
            self._log(request, error)
            self._close(request, "an unexpected error, see the log")

    def _begin_again(self, request: Request, begin: Callable[[Request], None]) -> None:
        """Never raises, as `begin` of the dispatcher."""
        if not request.is_connected:
            return
        try:
            begin(request)
        except Exception as error:
            self._log(request, error)
            self._close(request, "an unexpected error, see the log")

    async def stop(self) -> None:
        """Waits for handlers that have not answered yet."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _begin_message(self, request: Request) -> None:
        replying = self._by_reply.get(request.api_key)
        if replying is not None:
            self._begin_replying(request, replying)
            return
        handler = self._by_message.get(request.api_key)
        if handler is None:
            if self._handlers.find(request.api_key) is not None:
                # It has been loaded just now.
                self.begin(request)
                return
            request.close_connection(f"{api_name(request.api_key)} is not served on this listener")
            return
        context = request.context
        if handler.is_forwarded and context.node_id is not None:
            context = replace(context, requester=read_requester(request))
        if handler.has_version:
            context = replace(context, api_version=request.api_version)
        if len(request.body) - request.body_offset > LARGE_BODY_BYTES:
            self._read_large(request, lambda message: self._handle(request, handler, message, context))
            return
        message = decode_request(request.api_key, request.api_version, request.body, request.body_offset)
        self._handle(request, handler, message, context)

    def _handle(self, request: Request, handler: MessageHandler, message: Message, context: RequestContext) -> None:
        error = None
        try:
            response = handler.handle(message, context)
        except Exception as raised:
            error = self.to_kafka_error(request, raised)
            response = handler.answer_error(message, error)
        if isinstance(response, Awaitable):
            self._start(self._finish_message(request, handler, message, response))
        else:
            _respond(request, response, handler, error)

    def _begin_replying(self, request: Request, handler: ReplyingHandler) -> None:
        if len(request.body) - request.body_offset > LARGE_BODY_BYTES:
            self._read_large(request, lambda message: self._handle_replying(request, handler, message))
            return
        message = decode_request(request.api_key, request.api_version, request.body, request.body_offset)
        self._handle_replying(request, handler, message)

    def _handle_replying(self, request: Request, handler: ReplyingHandler, message: Message) -> None:
        reply = partial(self._reply, request)
        try:
            waiting = handler.begin(message, request, reply)
        except PostponedError as error:
            self._postpone_replying(request, handler, message, error)
        except Exception as error:
            reply(handler.answer_error(message, self.to_kafka_error(request, error)))
        else:
            if waiting is not None:
                self._start(self._finish_replying(request, handler, message, waiting))

    def _postpone_replying(
        self, request: Request, handler: ReplyingHandler, message: Message, error: PostponedError
    ) -> None:
        error.wait(partial(self._begin_again, request, lambda one: self._handle_replying(one, handler, message)))

    async def _finish_replying(
        self, request: Request, handler: ReplyingHandler, message: Message, waiting: Awaitable[None]
    ) -> None:
        try:
            await waiting
        except PostponedError as error:
            self._postpone_replying(request, handler, message, error)
        except Exception as error:
            self._reply(request, handler.answer_error(message, self.to_kafka_error(request, error)))

    def _reply(self, request: Request, response: Message) -> None:
        # Called from anywhere: what goes wrong here is this connection's business alone.
        try:
            if isinstance(response, LargeResponse):
                self._start(self._finish_begin(request, self._respond_large(request, response)))
            else:
                _respond(request, response)
        except Exception as error:
            self._log(request, error)
            self._close(request, "an unexpected error, see the log")

    def _read_large(self, request: Request, handle: Callable[[Message], None]) -> None:
        """Goes on with the message once a thread has read it. No later request of the connection begins before."""
        # The buffer of the connection is used again when this returns.
        body = bytes(request.body[request.body_offset :])

        async def read() -> None:
            try:
                message = await self._loop.run_in_executor(
                    None, decode_request, request.api_key, request.api_version, body, 0
                )
                handle(message)
            except CorruptData as error:
                self._close(request, str(error))
            except Exception as error:
                self._log(request, error)
                self._close(request, "an unexpected error, see the log")

        self._start(read())

    def _start(self, waiting: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(waiting)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish_begin(self, request: Request, waiting: Awaitable[None]) -> None:
        try:
            await waiting
        except PostponedError as error:
            error.wait(partial(self._begin_again, request, self.begin))
        except Exception as error:
            self._log(request, error)
            self._close(request, "an unexpected error, see the log")

    async def _finish_message(
        self, request: Request, handler: MessageHandler, message: Message, waiting: Awaitable[Message]
    ) -> None:
        try:
            failure = None
            try:
                response = await waiting
            except Exception as raised:
                failure = self.to_kafka_error(request, raised)
                response = handler.answer_error(message, failure)
            if isinstance(response, LargeResponse):
                await self._respond_large(request, response, handler)
            else:
                _respond(request, response, handler, failure)
        except Exception as error:
            self._log(request, error)
            self._close(request, "an unexpected error, see the log")

    async def _respond_large(
        self, request: Request, large: LargeResponse[Message], handler: MessageHandler | None = None
    ) -> None:
        def make() -> tuple[Message, bytes]:
            response = large.make()
            return response, _encode(request, response, handler, None)

        response, answer = await self._loop.run_in_executor(None, make)
        _send(request, response, answer)

    def to_kafka_error(self, request: Request, error: Exception) -> KafkaError:
        """The error that the client gets for an exception; one that is no KafkaError is logged with its traceback."""
        if isinstance(error, KafkaError):
            self._requests.note_error(request.api_key, error.code)
            return error
        self._log(request, error)
        self._requests.note_error(request.api_key, ErrorCode.UNKNOWN_SERVER_ERROR)
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def _log(self, request: Request, error: Exception) -> None:
        self.unexpected_errors += 1
        self._peer_log.write(
            logging.ERROR,
            request.context.peer_host,
            "request failed: api=%s version=%d correlation_id=%d client=%s peer=%s",
            api_name(request.api_key),
            request.api_version,
            request.correlation_id,
            request.client_id,
            request.context.peer_host,
            error=error,
        )

    def _close(self, request: Request, reason: str) -> None:
        if request.answer is None:
            request.close_connection(reason)


def read_requester(request: Request) -> Requester | None:
    """Returns the client in whose name a node has sent the request, if any. Raises CorruptData."""
    told = requester_of(read_request_tags(request.body))
    return None if told is None else decode_requester(told)


def _respond(
    request: Request, response: Message, handler: MessageHandler | None = None, error: KafkaError | None = None
) -> None:
    _send(request, response, _encode(request, response, handler, error))


def _encode(request: Request, response: Message, handler: MessageHandler | None, error: KafkaError | None) -> bytes:
    tags = NO_HEADER_TAGS
    if handler is not None and handler.header_tags is not None:
        tags = handler.header_tags(request.context, error)
    return encode_response(request.api_key, request.api_version, request.correlation_id, response, tags)


def _send(request: Request, response: Message, answer: bytes) -> None:
    # The controller tells it of a client's changes, also of one that had no quota yet when its request began. What a
    # node is told in a client's name is for that client alone. Kafka: RequestHandlerHelper.sendForwardedResponse.
    throttle_time: timedelta | None = getattr(response, "throttle_time", None)
    if throttle_time and request.context.node_id is None:
        request.respond(answer, throttle_time // timedelta(milliseconds=1))
    else:
        request.respond(answer)
