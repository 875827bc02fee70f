"""An operation of the HTTP administration: a row of the table from which routes and the OpenAPI document are made."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.errors import ErrorCode, KafkaError
from ..network.request import RequestContext

if TYPE_CHECKING:
    from .node_ports import NodePorts

JSON: Final = "application/json"


class Call(Struct, frozen=True, kw_only=True):
    """One request of an operation, read and checked.

    `path` has the path's parameters: text, or a number where `PATH_PARAMETERS` says so. `query` and `body` are of the
    operation's classes, None where it has none. `chunks` is the body of an operation that takes a stream. `base_url` is
    how the client names this node.
    """

    node: NodePorts
    context: RequestContext
    base_url: str
    path: Mapping[str, Any]
    query: Any = None
    body: Any = None
    headers: Mapping[str, str] = {}
    chunks: AsyncIterator[bytes] | None = None

    def may(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        """Whether the client may have what is only left out of an answer otherwise; a denial is not logged."""
        return self.context.may("HTTP", operation, resource_type, name, is_logged=False)

    def require_topic(self, operation: AclOperation, name: str) -> None:
        """Raises KafkaError TOPIC_AUTHORIZATION_FAILED, whether there is such a topic or not."""
        if not self.context.may("HTTP", operation, ResourceType.TOPIC, name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


class Stream(Struct, frozen=True, kw_only=True):
    """An answer that comes piece by piece, without a known end."""

    media_type: str
    chunks: AsyncIterator[bytes]
    headers: Mapping[str, str] = {}


class Content(Struct, frozen=True, kw_only=True):
    """An answer that is no JSON of a typed value: a page, the text of the metrics."""

    media_type: str
    body: bytes
    headers: Mapping[str, str] = {}
    status: int = 200


class Answered(Struct, frozen=True, kw_only=True):
    """A typed value with another status than the operation's usual one, or with headers."""

    value: Any
    status: int | None = None
    headers: Mapping[str, str] = {}


Run = Callable[[Call], Awaitable[object]]


class Operation(Struct, frozen=True, kw_only=True):
    """`run` returns a value of `answer`, or None where that is None; or a Stream, Content or Answered.

    It raises KafkaError for what Kafka has an error for, `HttpError` for what HTTP has a status for. `query`, `body`
    and `answer` are msgspec Structs. `media_type` is that of the answer. `is_urgent`: it is answered however many
    others run (health, metrics). `is_open`: every client may ask, also where there is an authorizer.
    `is_stream`: the answer has no known end, and is bounded by itself. `takes_stream`: the body is read as it comes.
    """

    name: str
    method: str
    path: str
    tag: str
    summary: str
    run: Run
    description: str = ""
    query: type | None = None
    body: type | None = None
    is_body_optional: bool = False
    answer: Any = None
    status: int = 200
    other_statuses: Mapping[int, Any] = {}
    """Of answers that are no problem; by status, the class."""
    media_type: str = JSON
    is_urgent: bool = False
    is_open: bool = False
    is_stream: bool = False
    takes_stream: bool = False


class HttpError(Exception):
    """A refusal by an HTTP status of its own."""

    def __init__(self, status: int, title: str, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, title, sentence)
        self.headers: Mapping[str, str] = {} if headers is None else headers
        self.status = status
        self.title = title
        self.sentence = sentence
