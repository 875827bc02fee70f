"""The HTTP administration as an application of aiohttp: from requests to operations, and back.

Loaded when the first connection comes. What is refused, and what goes wrong, is answered as `application/problem+json`,
or as Confluent's error where its client reads nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec
from aiohttp import HttpVersion11, web

from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.rest.problem import MEDIA_TYPE, Problem, http_problem, problem_of
from ..configuration.admin_listeners import ADMIN
from ..configuration.node_config import NodeConfig
from ..configuration.tls_config import PRINCIPAL_MAPPING_RULES
from ..network.request import ANONYMOUS, RequestContext
from ..network.rules.distinguished_name import subject_of
from ..security.http_identities import Unauthenticated
from ..security.password_hashing import TooManyLogins
from .fair_pace import FairPace
from .node_ports import NodePorts
from .operation import JSON, Answered, Call, Content, HttpError, Operation, Stream
from .path_parameters import PATH_PARAMETERS
from .rules import confluent_clients
from .rules.guards import refusal_of
from .rules.kafka_answers import QuotaExceededError
from .rules.operation_permissions import Needed, needed
from .rules.pace import Pace

logger = logging.getLogger(__name__)

REQUESTS_MAX: Final = 32
"""That run at once; those that are urgent come on top."""
STREAMS_MAX: Final = 32
"""Answers without an end; each is bounded in memory by itself."""
STREAM_WRITE_TIMEOUT_S: Final = 30.0
"""A client that reads nothing for so long has its stream ended: it holds one of STREAMS_MAX places."""
REQUEST_TIMEOUT_S: Final = 60.0
BODY_BYTES_MAX: Final = 1024 * 1024
"""A plan for 10,000 partitions; decoding so much takes 5 ms of the loop."""
REQUESTS_PER_S: Final = 100.0
"""What comes faster waits, address by address in turn: requests cost the loop, in which records are served, half a
millisecond each."""
URGENT_PER_S: Final = 50.0
"""For operations that are urgent, whatever the others do."""
LARGE_BODY_BYTES_PER_S: Final = 512 * 1024
"""Of bodies that are not small: decoding one holds up the loop for milliseconds, so it is to be seldom."""
SMALL_BODY_BYTES: Final = 16 * 1024
LARGE_BODIES_MAX: Final = 4
"""Bodies above SMALL_BODY_BYTES, or of unknown size, that are read at once."""
BODY_TIMEOUT_S: Final = 20.0
"""For a body to come: a client that trickles it holds a connection no longer."""
PATH_NUMBER_MAX: Final = 2**31 - 1

_NODE: Final = web.AppKey("node", NodePorts)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_SAFE_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def make_application(node: NodePorts, operations: Sequence[Operation], known_hosts: frozenset[str]) -> web.Application:
    """`known_hosts`: see `guards.refusal_of`."""
    gate = _Gate(known_hosts, frozenset(operation.path for operation in operations if operation.is_urgent))
    application = web.Application(client_max_size=BODY_BYTES_MAX, middlewares=[gate.admit])
    application[_NODE] = node
    for operation in operations:
        handler = _handler(operation, gate)
        for method, path in _routes(operation):
            application.router.add_route(method, path, handler, expect_handler=_expect)
    return application


def _routes(operation: Operation) -> Iterator[tuple[str, str]]:
    """Methods and paths by which it is asked. HEAD is what load balancers ask for; aiohttp leaves out the body."""
    methods = ("GET", "HEAD") if operation.method == "GET" and not operation.is_stream else (operation.method,)
    prefixes = ("", confluent_clients.PREFIX) if operation.path.startswith(confluent_clients.ROOT) else ("",)
    yield from ((method, prefix + operation.path) for prefix in prefixes for method in methods)


async def _expect(request: web.Request) -> None:
    """Raises HttpError 417. A body is asked for by `_Gate.read`, once it is known who sends it."""
    if request.headers["Expect"].lower() != "100-continue":
        raise web.HTTPExpectationFailed


async def _continue(request: web.Request) -> None:
    """Asks for the body, where the client waits for that (RFC 9110 §10.1.1)."""
    if request.version >= HttpVersion11 and request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # The answer itself has not begun.
        request.writer.output_size = 0


class _Gate:
    """Who comes in, and how many at once."""

    def __init__(self, known_hosts: frozenset[str], urgent_paths: frozenset[str]) -> None:
        self._known_hosts = known_hosts
        self._urgent_paths = urgent_paths
        self._pace = FairPace(Pace(units_per_s=REQUESTS_PER_S, burst=REQUESTS_PER_S))
        self._urgent_pace = FairPace(Pace(units_per_s=URGENT_PER_S, burst=URGENT_PER_S))
        self._body_pace = Pace(units_per_s=LARGE_BODY_BYTES_PER_S, burst=BODY_BYTES_MAX)
        self._running = asyncio.Semaphore(REQUESTS_MAX)
        self._streams = 0
        self._large_bodies = asyncio.Semaphore(LARGE_BODIES_MAX)

    @web.middleware
    async def admit(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        pace = self._urgent_pace if request.path in self._urgent_paths else self._pace
        try:
            await pace.wait(request.remote or "")
            refusal = refusal_of(
                request.method,
                host=_single(request, "Host"),
                origin=_single(request, "Origin"),
                content_type=_single(request, "Content-Type"),
                known_hosts=self._known_hosts,
                fetch_site=_single(request, "Sec-Fetch-Site"),
                fetch_mode=_single(request, "Sec-Fetch-Mode"),
            )
            if refusal is not None:
                raise HttpError(refusal.status, refusal.title, refusal.sentence)
            response = await handler(request)
        except Exception as error:
            response = _problem_response(_problem_of(request, error), request)
            if isinstance(error, HttpError):
                response.headers.update(error.headers)
            elif isinstance(error, QuotaExceededError):
                response.headers["Retry-After"] = str(error.retry_after_s)
        if not response.prepared:
            response.headers.update(_SAFE_HEADERS)
        return response

    async def run(self, operation: Operation, call: Call) -> object:
        """Raises what the operation does, and HttpError when it must wait for others too long, or takes too long."""
        if operation.is_stream:
            return await operation.run(call)
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                if operation.is_urgent:
                    return await operation.run(call)
                async with self._running:
                    return await operation.run(call)
        except TimeoutError:
            raise HttpError(
                504, "Gateway Timeout", f"It was not done within {REQUEST_TIMEOUT_S:g} s; it may still be done."
            ) from None

    async def send(
        self, request: web.Request, operation: Operation, stream: Stream, is_permitted: Callable[[], bool]
    ) -> web.StreamResponse:
        """Sends a stream as it comes, as fast as the client reads. Raises HttpError when too many are open.

        It ends when the client may not have it any more.
        """
        if self._streams >= STREAMS_MAX:
            await _close(stream)
            raise HttpError(503, "Service Unavailable", f"{STREAMS_MAX} streams are open at this node.")
        response = web.StreamResponse(
            status=operation.status, headers={**_SAFE_HEADERS, **stream.headers, "Content-Type": stream.media_type}
        )
        self._streams += 1
        try:
            await response.prepare(request)
            async for chunk in stream.chunks:
                if not is_permitted():
                    break
                async with asyncio.timeout(STREAM_WRITE_TIMEOUT_S):
                    await response.write(chunk)
            await response.write_eof()
        except ConnectionError:
            # The client is gone.
            pass
        except TimeoutError:
            # It does not read: its place is for others.
            if request.transport is not None:
                request.transport.abort()
        except Exception:
            # Its status is sent already; that the answer is cut off tells the client.
            logger.exception("HTTP stream failed: method=%s path=%s", request.method, request.path)
            if request.transport is not None:
                request.transport.abort()
        finally:
            self._streams -= 1
            await _close(stream)
        return response

    async def read(self, request: web.Request) -> bytes:
        """The body. Raises HttpError when it does not come in time."""
        size_bytes = request.content_length
        if size_bytes is not None and size_bytes > BODY_BYTES_MAX:
            raise web.HTTPRequestEntityTooLarge(BODY_BYTES_MAX, size_bytes)
        await _continue(request)
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                if size_bytes is not None and size_bytes <= SMALL_BODY_BYTES:
                    return await request.read()
                async with self._large_bodies:
                    body = await request.read()
                    await asyncio.sleep(self._body_pace.delay_s(asyncio.get_running_loop().time(), len(body)))
                    return body
        except TimeoutError:
            raise HttpError(408, "Request Timeout", f"The body did not come within {BODY_TIMEOUT_S:g} s.") from None


async def _close(stream: Stream) -> None:
    close = getattr(stream.chunks, "aclose", None)
    if close is not None:
        await close()


def _single(request: web.Request, name: str) -> str | None:
    """Raises HttpError for a header that stands twice: which one counts is then anyone's choice."""
    values = request.headers.getall(name, [])
    if len(values) > 1:
        raise HttpError(400, "Bad Request", f"The header {name} stands {len(values)} times.")
    return values[0] if values else None


def _handler(operation: Operation, gate: _Gate) -> _Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        context, expiry_ms = await _identified(operation, request)
        _check_permission(operation, request, context)
        if operation.takes_stream:
            await _continue(request)
        call = await _call(operation, request, context, gate)
        result = await gate.run(operation, call)

        def is_permitted() -> bool:
            is_over = expiry_ms is not None and call.node.wall_clock_ms() >= expiry_ms
            return not is_over and _is_permitted(operation, request, context)

        if isinstance(result, Stream):
            return await gate.send(request, operation, result, is_permitted)
        return _response(operation, result)

    return handle


async def _identified(operation: Operation, request: web.Request) -> tuple[RequestContext, int | None]:
    """Who asks, and until when that is proved, in wall-clock time; None: always.

    Raises HttpError 401, 403 or 503; nothing of an operation begins before.
    """
    node = request.app[_NODE]
    context = RequestContext(
        listener_name=node.config.inter_broker_listener_name,
        peer_host=request.remote or "",
        client_id="http",
        client_software=request.headers.get("User-Agent", "unknown")[:200],
        authorizer=node.authorizer,
    )
    if operation.is_open:
        return context, None
    identities = node.identities()
    if identities is None:
        if ADMIN in node.config.sasl:
            raise HttpError(503, "Service Unavailable", f"The node cannot tell yet who asks. {node.phase()}")
        return replace(context, principal=_certificate_principal(request, node.config) or ANONYMOUS), None
    try:
        identity = await identities.identify(
            _single(request, "Authorization"), _certificate_principal(request, node.config), context
        )
    except TooManyLogins:
        raise HttpError(503, "Service Unavailable", "Too many logins wait at this node.") from None
    except Unauthenticated as refusal:
        challenges = identities.challenges
        if not challenges:
            # 401 has to say how a client may prove itself (RFC 9110 §15.5.2), and here no header would.
            raise HttpError(403, "Forbidden", str(refusal)) from None
        raise HttpError(401, "Unauthorized", str(refusal), {"WWW-Authenticate": ", ".join(challenges)}) from None
    proved = replace(context, principal=identity.principal, is_token_authenticated=identity.is_by_token)
    return proved, identity.expiry_ms


def _certificate_principal(request: web.Request, config: NodeConfig) -> str | None:
    """The principal of the certificate that the client has shown and TLS has verified. Raises HttpError(403)."""
    tls_object = None if request.transport is None else request.transport.get_extra_info("ssl_object")
    if tls_object is None or not tls_object.getpeercert():
        return None
    try:
        subject = subject_of(tls_object.getpeercert(binary_form=True))
    except CorruptData:
        raise HttpError(403, "Forbidden", "The certificate has no name that can be read.") from None
    name = config.tls[ADMIN].principal_mapping.name_of(subject)
    if name is None:
        raise HttpError(403, "Forbidden", f"No rule of {PRINCIPAL_MAPPING_RULES} applies to the certificate.")
    return f"User:{name}"


def _check_permission(operation: Operation, request: web.Request, context: RequestContext) -> None:
    """Raises HttpError(403) unless the client may ask for the operation at all."""
    wanted = _needed(operation)
    if wanted is not None and not _is_permitted(operation, request, context):
        name = wanted.name(request.match_info)
        sentence = f"{context.principal} may not {wanted.operation.name} {wanted.resource_type.title} {name}."
        raise HttpError(403, "Forbidden", sentence)


def _is_permitted(operation: Operation, request: web.Request, context: RequestContext) -> bool:
    wanted = _needed(operation)
    if wanted is None or context.authorizer is None:
        return True
    name = wanted.name(request.match_info)
    return context.may(f"HTTP {operation.name}", wanted.operation, wanted.resource_type, name)


def _needed(operation: Operation) -> Needed | None:
    return None if operation.is_open else needed(operation.name, operation.method, operation.path)


async def _call(operation: Operation, request: web.Request, context: RequestContext, gate: _Gate) -> Call:
    return Call(
        node=request.app[_NODE],
        context=context,
        base_url=f"{request.scheme}://{request.host}{confluent_clients.prefix_of(request.path)}",
        path={name: _path_value(name, text) for name, text in request.match_info.items()},
        query=_query(operation, request),
        body=None if operation.takes_stream else await _body(operation, request, gate),
        headers=request.headers,
        chunks=_chunks(request) if operation.takes_stream else None,
    )


async def _chunks(request: web.Request) -> AsyncIterator[bytes]:
    try:
        async for chunk in request.content.iter_any():
            yield chunk
    except web.RequestPayloadError as error:
        raise ConnectionError("the body ended before its end") from error


def _path_value(name: str, text: str) -> Any:
    if PATH_PARAMETERS[name].type is str:
        return text
    if not (text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= PATH_NUMBER_MAX):
        raise HttpError(404, "Not Found", f"{name} is a number, but it is {text!r}.")
    return int(text)


def _query(operation: Operation, request: web.Request) -> Any:
    texts = {name: request.query.getall(name) for name in request.query}
    if operation.query is None:
        unknown: list[str] = list(texts)
    else:
        fields = msgspec.structs.fields(operation.query)
        unknown = [name for name in texts if name not in {field.encode_name for field in fields}]
    if unknown:
        raise HttpError(400, "Bad Request", f"There is no parameter {unknown[0]!r} here.")
    if operation.query is None:
        return None
    try:
        return msgspec.convert(
            {name: _one(name, values) for name, values in texts.items()}, operation.query, strict=False
        )
    except msgspec.ValidationError as error:
        raise HttpError(400, "Bad Request", f"The query: {error}.") from None


def _one(name: str, values: list[str]) -> str:
    if len(values) > 1:
        raise HttpError(400, "Bad Request", f"{name} stands {len(values)} times in the query.")
    return values[0]


async def _body(operation: Operation, request: web.Request, gate: _Gate) -> Any:
    content = await gate.read(request) if request.can_read_body else b""
    if operation.body is None:
        return None
    if not content and operation.is_body_optional:
        return None
    try:
        return msgspec.json.decode(content, type=operation.body)
    except msgspec.ValidationError as error:
        raise HttpError(400, "Bad Request", f"The body: {error}.") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise HttpError(400, "Bad Request", f"The body is no JSON: {error}.") from None


def _response(operation: Operation, result: object) -> web.Response:
    status, headers = operation.status, {}
    if isinstance(result, Content):
        return web.Response(
            status=result.status, body=result.body, headers={**result.headers, "Content-Type": result.media_type}
        )
    if isinstance(result, Answered):
        status = operation.status if result.status is None else result.status
        headers = dict(result.headers)
        result = result.value
    if result is None:
        return web.Response(status=204 if status == 200 else status, headers=headers)
    return web.Response(
        status=status, body=msgspec.json.encode(result), headers={**headers, "Content-Type": operation.media_type}
    )


def _problem_of(request: web.Request, error: Exception) -> Problem:
    if isinstance(error, HttpError):
        return http_problem(error.status, error.title, error.sentence)
    if isinstance(error, KafkaError):
        return problem_of(error.code, error.message)
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return http_problem(413, "Content Too Large", f"The body is larger than {BODY_BYTES_MAX} bytes.")
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        return http_problem(405, "Method Not Allowed", f"{request.path} takes {allowed}, not {request.method}.")
    if isinstance(error, web.HTTPNotFound):
        return http_problem(404, "Not Found", f"There is nothing at {request.path}; /openapi.json lists all paths.")
    if isinstance(error, web.HTTPException):
        return http_problem(error.status, error.reason, error.text or error.reason)
    if isinstance(error, ConnectionError):
        return http_problem(400, "Bad Request", "The request ended before its end.")
    logger.error("HTTP request failed: method=%s path=%s", request.method, request.path, exc_info=error)
    return problem_of(ErrorCode.UNKNOWN_SERVER_ERROR)


def unreadable_response(*, is_too_long: bool) -> web.Response:
    """To what is no request; the connection is closed behind it."""
    sentence = (
        "A line or the whole of the request's head is too long."
        if is_too_long
        else "What came is no request of HTTP/1.1 (RFC 9112)."
    )
    problem = http_problem(400, "Bad Request", sentence)
    response = web.Response(
        status=400, body=msgspec.json.encode(problem), headers={**_SAFE_HEADERS, "Content-Type": MEDIA_TYPE}
    )
    response.force_close()
    return response


def _problem_response(problem: Problem, request: web.Request) -> web.Response:
    media_type, content = MEDIA_TYPE, msgspec.json.encode(problem)
    if confluent_clients.reads_only_json(request.path, ",".join(request.headers.getall("Accept", []))):
        media_type, content = JSON, msgspec.json.encode(confluent_clients.confluent_error(problem))
    response = web.Response(status=problem.status, body=content, headers={"Content-Type": media_type})
    if problem.status == 405:
        route = request.match_info.http_exception
        if isinstance(route, web.HTTPMethodNotAllowed):
            response.headers["Allow"] = ", ".join(sorted(route.allowed_methods))
    if problem.status in (429, 503):
        response.headers["Retry-After"] = "1"
    return response
