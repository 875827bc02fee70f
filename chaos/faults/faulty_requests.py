"""In the node: requests that fare as ordered, on the way to their handler and on the way back.

A request that is hit, or logged, is carried out as another one in its place, whose answer comes here first. Order is
kept as the product keeps it: while a Produce waits to be handled, what its connection sent behind it waits too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final
from uuid import UUID

from ...broker.network.handlers import Handlers
from ...broker.network.request import Answer, CloseConnection, Request, RequestContext
from ...client import clock
from ...protocol.apis import ApiKey
from ...protocol.errors import CorruptData
from ...protocol.own_apis import api_name
from ...protocol.primitives import string_bytes
from ...protocol.produce import decode_produce
from .error_answers import error_answer
from .node_faults import OrderReader
from .request_faults import HARNESS, Hit, Point, RequestFault, Sender, take_ticket, write_hit
from .request_log import RequestLog

_POLL_S: Final = 0.005
"""How often a request that waits looks whether it still is to."""
_REASON: Final = "the answer is lost, as ordered"

BeginRequest = Callable[[Request], None]


class FaultyRequests:
    """`intercept` is what the node is given. `log` gets every request while the orders say so."""

    def __init__(self, orders: OrderReader, log: RequestLog, node: str) -> None:
        self._orders = orders
        self._log = log
        self._node = node

    def intercept(self, handlers: Handlers, begin: BeginRequest) -> BeginRequest:
        """Returns what begins requests in place of `begin`."""
        return partial(self._begin, handlers, begin)

    def _begin(self, handlers: Handlers, begin: BeginRequest, request: Request) -> None:
        faults, is_logging = self._orders.request_faults()
        sender: Sender = "client" if request.context.node_id is None else "node"
        is_logged = is_logging and sender == "client" and request.client_id != HARNESS
        api = api_name(request.api_key)
        near = [fault for fault in faults if fault.is_about(api, sender, request.client_id)]
        if not near and not is_logged:
            begin(request)
            return
        course = _Course(self, handlers, begin, request, [fault for fault in near if names_topic(request, fault)])
        if is_logged:
            course.entry = self._log.write_request(request)
        course.begin()

    def fires(self, fault: RequestFault, request: Request) -> bool:
        """Whether the fault hits this request; what it hits is written down."""
        # A request that was handled for a while may come to its answer after the end of the fault.
        if not self.is_ordered(fault):
            return False
        if fault.is_counted and not take_ticket(fault.folder):
            return False
        hit = Hit(
            time_ns=clock.monotonic_ns(),
            node=self._node,
            api=api_name(request.api_key),
            client_id=request.client_id,
            correlation_id=request.correlation_id,
        )
        write_hit(fault.folder, hit)
        return True

    def is_ordered(self, fault: RequestFault) -> bool:
        return any(one.number == fault.number for one in self._orders.request_faults()[0])

    def log_answer(self, entry: int, answer: Answer) -> None:
        self._log.write_answer(entry, None if isinstance(answer, CloseConnection) else answer)


class _Course:
    """One request from its arrival to its answer: it is handled as `inner`, whose owner this is."""

    def __init__(
        self,
        node: FaultyRequests,
        handlers: Handlers,
        begin: BeginRequest,
        request: Request,
        faults: Sequence[RequestFault],
    ) -> None:
        self._node = node
        self._handlers = handlers
        self._begin_request = begin
        self._outer = request
        self._faults = faults
        self._inner = request
        self._throttle_time_ms = 0
        self._is_waiting = False
        self.entry: int | None = None

    def begin(self) -> None:
        # What begins later, or is answered with an error, is read then; the connection's buffer is used again.
        body = memoryview(bytes(self._outer.body)) if self._faults else self._outer.body
        outer = self._outer
        self._inner = Request(
            self, outer.api_key, outer.api_version, outer.correlation_id, outer.context, body, outer.body_offset
        )
        outer.on_disconnect = self._on_disconnect
        self._meet("before-handling", self._handle)

    def _handle(self) -> None:
        if self._is_waiting:
            self._is_waiting = False
            if self._outer.api_key in self._handlers.overlapping:
                self._outer.release_later_requests()
        self._begin_request(self._inner)

    def _meet(self, point: Point, go_on: Callable[[], None]) -> None:
        fault = next(
            (one for one in self._faults if one.at == point and self._node.fires(one, self._inner)),
            None,
        )
        if fault is None:
            go_on()
            return
        end = go_on if fault.error is None else partial(self._fail, fault)
        if not fault.holds and not fault.delay_ms:
            end()
            return
        self._is_waiting = point == "before-handling"
        if self._is_waiting and self._outer.api_key in self._handlers.overlapping:
            self._outer.hold_later_requests()
        loop = asyncio.get_running_loop()
        delay_s = fault.delay_ms / 1000
        loop.call_later(min(delay_s, _POLL_S), self._wait, fault, end, loop.time() + delay_s)

    def _wait(self, fault: RequestFault, end: Callable[[], None], until_s: float) -> None:
        """Until then, or as long as the fault holds; in any case no longer than it is ordered."""
        loop = asyncio.get_running_loop()
        left_s = _POLL_S if fault.holds else until_s - loop.time()
        if left_s > 0 and self._node.is_ordered(fault):
            loop.call_later(min(left_s, _POLL_S), self._wait, fault, end, until_s)
        else:
            end()

    def _fail(self, fault: RequestFault) -> None:
        code = fault.code
        try:
            answer = None if code is None else error_answer(self._handlers, self._inner, code)
        except CorruptData as error:
            self._answer(CloseConnection(str(error)))
            return
        self._answer(CloseConnection(_REASON) if answer is None else answer)

    def _answer(self, answer: Answer) -> None:
        if self.entry is not None:
            self._node.log_answer(self.entry, answer)
        if isinstance(answer, CloseConnection):
            self._outer.close_connection(answer.reason)
        else:
            self._outer.respond(answer, self._throttle_time_ms)

    def _on_disconnect(self) -> None:
        inner = self._inner
        inner.is_connected = False
        if inner.on_disconnect is not None:
            on_disconnect, inner.on_disconnect = inner.on_disconnect, None
            on_disconnect()

    # What the inner request calls.

    def on_answer(self, request: Request, answer: Answer) -> None:  # noqa: ARG002 - as every owner
        self._meet("before-ack", partial(self._answer, answer))

    def hold_later_requests(self, request: Request) -> None:  # noqa: ARG002
        self._outer.hold_later_requests()

    def release_later_requests(self, request: Request) -> None:  # noqa: ARG002
        self._outer.release_later_requests()

    def mute(self, throttle_time_ms: int) -> None:
        self._throttle_time_ms = throttle_time_ms

    def set_context(self, context: RequestContext) -> None:
        self._outer.set_context(context)


def names_topic(request: Request, fault: RequestFault) -> bool:
    """Whether the body names the fault's topic; of other APIs than Produce by the bytes of its name or id."""
    if fault.topic is None:
        return True
    topic_id = None if fault.topic_id is None else UUID(hex=fault.topic_id).bytes
    if request.api_key == ApiKey.PRODUCE:
        # Its records may have any bytes.
        try:
            topics = decode_produce(request.api_version, request.body, request.body_offset).topics
        except CorruptData:
            return False
        return any(
            topic.name == fault.topic
            or (topic_id is not None and topic.topic_id is not None and topic.topic_id.bytes == topic_id)
            for topic in topics
        )
    body = bytes(request.body[request.body_offset :])
    return (
        string_bytes(fault.topic, is_flexible=True) in body
        or string_bytes(fault.topic, is_flexible=False) in body
        or (topic_id is not None and topic_id in body)
    )
