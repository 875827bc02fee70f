"""The table of APIs that this node answers. It advertises those that are built."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Set
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from msgspec import Struct

from ...protocol.apis import APIS, Api, ApiKey
from ...protocol.errors import KafkaError
from ...protocol.own_apis import OwnApiKey
from .request import Request, RequestContext
from .rules.large_response import LargeResponse

Message: TypeAlias = Any
"""A request or response of kio, of the latest version; handlers name the class they take."""

Q = TypeVar("Q")
A = TypeVar("A")
Begin: TypeAlias = Callable[[Request], Awaitable[None] | None]
HeaderTags: TypeAlias = Callable[[RequestContext, KafkaError | None], bytes]
Register: TypeAlias = "Callable[[Handlers], None]"
"""Adds handlers to the table."""
Load: TypeAlias = Callable[[], Register]
"""Loads the code of handlers, from any thread."""


class MessageHandler(Struct, frozen=True, kw_only=True):
    """Handles one API by values: the node decodes and encodes around it."""

    handle: Callable[[Message, RequestContext], Message | Awaitable[Message]]
    answer_error: Callable[[Message, KafkaError], Message]
    header_tags: HeaderTags | None = None
    is_forwarded: bool = False
    has_version: bool = False
    """Whether the context has the version of the request."""


class ReplyingHandler(Struct, frozen=True, kw_only=True):
    """Handles one API by values, and answers when it can, without a task that waits."""

    begin: Callable[[Message, Request, Callable[[Message], None]], Awaitable[None] | None]
    answer_error: Callable[[Message, KafkaError], Message]


class _Later(Struct, frozen=True):
    api_keys: frozenset[int]
    load: Load


class Intercept(Protocol):
    """Makes what begins requests of clients and brokers in place of the dispatcher, which is given as `begin`.

    For tools that make requests fail; a node without one has nothing on the path of a request.
    """

    def __call__(self, handlers: Handlers, begin: Callable[[Request], None], /) -> Callable[[Request], None]: ...


class Handlers:
    """Filled while the node is wired, read-only afterwards but for what is loaded later."""

    def __init__(self) -> None:
        self._begin: dict[int, Begin] = {}
        self._messages: dict[int, MessageHandler] = {}
        self._replying: dict[int, ReplyingHandler] = {}
        self._overlapping: set[int] = set()
        self._not_built: set[int] = set()
        self._later: dict[int, _Later] = {}

    def add(self, api_key: ApiKey | OwnApiKey, begin: Begin, *, overlaps: bool = False, is_built: bool = True) -> None:
        """Serves an API by its bytes.

        `begin` is called in request order, decodes `request.body`, does what has to be done in order, and answers at
        once or later. With `overlaps` the next requests of the connection may begin before the answer. It answers
        KafkaErrors itself, but for a PostponedError: before what it returns raises one it has put a copy into
        `request.body`. CorruptData closes the connection, and so does, with a traceback in the log, whatever else it
        raises. An API that is not built only has errors to answer, and is not advertised.
        """
        self._check_new(api_key)
        self._begin[api_key] = begin
        if not is_built:
            self._not_built.add(api_key)
        if overlaps:
            self._overlapping.add(api_key)

    def add_message(
        self,
        api_key: ApiKey,
        handle: Callable[[Q, RequestContext], A | Awaitable[A | LargeResponse[A]]],
        *,
        answer_error: Callable[[Q, KafkaError], A],
        header_tags: HeaderTags | None = None,
        overlaps: bool = False,
        is_forwarded: bool = False,
        has_version: bool = False,
    ) -> None:
        """Serves an API by values of the latest version's classes; `overlaps` as for `add`. With `has_version` the
        context has the version of the request.

        `answer_error` builds the response for a KafkaError that `handle` raised, in the shape that this API has for an
        error of the whole request: at the top, or repeated for every item asked for. Any other exception is logged and
        reaches it as UNKNOWN_SERVER_ERROR. `header_tags` encodes the tagged fields of the response's header, when the
        response is sent, from the error of the whole request, if any.
        `is_forwarded`: nodes send it in the name of clients, who are then in the context.
        """
        self._check_new(api_key)
        self._messages[api_key] = MessageHandler(
            handle=cast(Any, handle),
            answer_error=cast(Any, answer_error),
            header_tags=header_tags,
            is_forwarded=is_forwarded,
            has_version=has_version,
        )
        if overlaps:
            self._overlapping.add(api_key)

    def add_replying(
        self,
        api_key: ApiKey,
        begin: Callable[[Q, Request, Callable[[A | LargeResponse[A]], None]], Awaitable[None] | None],
        *,
        answer_error: Callable[[Q, KafkaError], A],
    ) -> None:
        """As `add_message`, for what is answered by a call, at once or later: exactly one, unless `begin` raises, or
        what it returns."""
        self._check_new(api_key)
        self._replying[api_key] = ReplyingHandler(begin=cast(Any, begin), answer_error=cast(Any, answer_error))

    def add_later(self, api_keys: Collection[ApiKey | OwnApiKey], load: Load) -> None:
        """Serves APIs by what `load` loads, once the first of them is asked for, or `load_all` is called: most of the
        time that a node takes to start goes into code that no client may ever ask for.

        All of them are built, and none of them overlaps.
        """
        later = _Later(frozenset(api_keys), load)
        for api_key in api_keys:
            self._check_new(api_key)
            self._later[api_key] = later

    def find(self, api_key: int) -> Begin | MessageHandler | ReplyingHandler | None:
        """What serves the API; loads it where it has to be."""
        later = self._later.get(api_key)
        if later is not None:
            self._register(later, later.load())
        return self._begin.get(api_key) or self._messages.get(api_key) or self._replying.get(api_key)

    async def load_all(self, in_thread: Callable[[Load], Awaitable[Register]]) -> None:
        """Loads what was not asked for yet, one after the other, `in_thread`: the event loop goes on meanwhile."""
        while self._later:
            later = next(iter(self._later.values()))
            register = await in_thread(later.load)
            # Or a request came first.
            if not later.api_keys.isdisjoint(self._later):
                self._register(later, register)

    def _register(self, later: _Later, register: Register) -> None:
        for api_key in later.api_keys:
            del self._later[api_key]
        before = {*self._answered}
        register(self)
        assert self._answered - before == later.api_keys, "what was loaded serves what was said"

    def _check_new(self, api_key: ApiKey | OwnApiKey) -> None:
        assert api_key not in self._later, f"{api_key.name} has two handlers"
        assert api_key not in self._begin, f"{api_key.name} has two handlers"
        assert api_key not in self._messages, f"{api_key.name} has two handlers"
        assert api_key not in self._replying, f"{api_key.name} has two handlers"

    @property
    def by_bytes(self) -> Mapping[int, Begin]:
        return self._begin

    @property
    def by_message(self) -> Mapping[int, MessageHandler]:
        return self._messages

    @property
    def by_reply(self) -> Mapping[int, ReplyingHandler]:
        return self._replying

    @property
    def overlapping(self) -> frozenset[int]:
        return frozenset(self._overlapping)

    @property
    def built(self) -> tuple[Api, ...]:
        """Kafka's APIs that are advertised, by key."""
        answered = self._answered | self._later.keys()
        return tuple(APIS[key] for key in sorted(answered - self._not_built) if key in APIS)

    @property
    def _answered(self) -> Set[int]:
        return self._begin.keys() | self._messages.keys() | self._replying.keys()
