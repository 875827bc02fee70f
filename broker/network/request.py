"""One request and its answer, as handlers see them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct

from ...protocol.acls import CLUSTER_NAME, SUPPORTED_OPERATIONS, AclOperation, ResourceType, operation_bits
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import NodeId
from ...protocol.throttle_time import with_throttle_time
from ...quorum.permissions.requester import Requester
from .rules.client_quota import ClientQuota
from .rules.request_statistics import RequestTimer
from .rules.sasl_session import SaslSession

_ALL_OPERATIONS: Final = {kind: operation_bits(operations) for kind, operations in SUPPORTED_OPERATIONS.items()}
ANONYMOUS: Final = "User:ANONYMOUS"
"""The principal of a client that has proved nothing."""

LATEST_VERSION: Final = 2**15 - 1
"""Of a request that this node asks itself."""
NOT_THROTTLED_HERE: Final = frozenset(
    {int(ApiKey.PRODUCE), int(ApiKey.FETCH), int(ApiKey.SASL_HANDSHAKE), int(ApiKey.SASL_AUTHENTICATE)}
)
"""APIs whose throttle time is not asked for when they are answered. Of Produce and Fetch it depends on bytes, and
their handlers decide by it what they answer. A peer that proves its identity has no quota yet: what other clients
without an identity have used must not keep clients and nodes out."""


class FileSlice(Protocol):
    """Bytes that stay in their file until their turn to be sent has come."""

    @property
    def size(self) -> int: ...

    def read_nowait(self, offset: int, size: int) -> bytes | bytearray | None:
        """What can be had without waiting, perhaps less than asked for; None when that is nothing."""

    def read(self, offset: int, size: int) -> bytes:
        """Waits for the disk; shorter than asked for only at the end of the file. Raises OSError."""

    def send_nowait(self, descriptor: int, offset: int, size: int) -> int | None:
        """How many bytes the socket took, from the page cache; 0 when it is full. None when they must be read instead.

        Raises ConnectionError when the peer is gone, and EOFError when they are no longer there.
        """


AnswerPart: TypeAlias = bytes | FileSlice


class CloseConnection(Struct, frozen=True):
    """In place of a response: when its turn comes, the connection is closed."""

    reason: str


Answer: TypeAlias = bytes | Sequence[AnswerPart] | CloseConnection
"""A whole response frame, or its parts in order; the empty sequence for a request that has no response (acks=0)."""


class Permit:
    """What a client is known to be allowed: the topics that it may read, and those it may write.

    What is not in them is not known yet, or denied.
    """

    __slots__ = ("readable", "writable")

    def __init__(self) -> None:
        self.readable: set[str] = set()
        self.writable: set[str] = set()


class Authorizer(Protocol):
    """Knows what each principal may do. Kafka: `Authorizer`."""

    def allows(
        self,
        context: RequestContext,
        api_key: ApiKey | str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        count: int = 1,
        is_logged: bool = True,
    ) -> bool:
        """Whether the client may do it; `count` is how often the request names the resource. `api_key` is for the log:
        another request than Kafka's has a name.

        Not logged are questions whose denial refuses nothing: what is only left out of an answer.
        """

    def permit(self, context: RequestContext) -> Permit:
        """For this request; the object is the same for as long as the client may do the same."""

    def allows_some(self, context: RequestContext, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Whether the client may do it with at least one resource of the type, whether there is such a one or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """Who asks, through which door, and what he may do."""

    listener_name: str
    peer_host: str
    client_id: str | None
    client_software: str = "unknown"
    """Name and version as told in ApiVersions (KIP-511)."""
    principal: str = ANONYMOUS
    """As "type:name"."""
    is_token_authenticated: bool = False
    """Whether that was proved by a delegation token."""
    peer_certificate: Mapping[str, Any] | None = None
    """What the peer has shown and TLS has verified, as Python's `ssl` tells it."""
    node_id: NodeId | None = None
    """The node of this cluster that the peer has proved to be."""
    exchange: object = None
    """What an authentication that takes several requests has come to."""
    sasl: SaslSession | None = None
    """How far the connection is, on a listener with SASL."""
    peer_port: int = 0
    connection_number: int = 0
    """Of all connections of its listener, no two have the same."""
    authorizer: Authorizer | None = None
    """None where everyone may do everything."""
    api_version: int = LATEST_VERSION
    """Of the request, for handlers that were registered `has_version`."""
    quota: ClientQuota | None = field(default=None, repr=False, compare=False)
    """The quotas of the client; None for one without, and for nodes."""
    requester: Requester | None = None
    """The client in whose name a node asks."""

    @property
    def connection(self) -> Hashable:
        """Equal for all requests of one connection, and for no others."""
        return self.listener_name, self.connection_number

    def may(
        self,
        api_key: ApiKey | str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        count: int = 1,
        is_logged: bool = True,
    ) -> bool:
        """As `Authorizer.allows`."""
        authorizer = self.authorizer
        return authorizer is None or authorizer.allows(
            self, api_key, operation, resource_type, name, count=count, is_logged=is_logged
        )

    def may_some(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        """As `Authorizer.allows_some`."""
        return self.authorizer is None or self.authorizer.allows_some(self, operation, resource_type)

    def may_in_cluster(self, api_key: ApiKey, operation: AclOperation, *, is_logged: bool = True) -> bool:
        return self.may(api_key, operation, ResourceType.CLUSTER, CLUSTER_NAME, is_logged=is_logged)

    def require_in_cluster(self, api_key: ApiKey, operation: AclOperation) -> None:
        """Raises KafkaError(CLUSTER_AUTHORIZATION_FAILED), with a sentence, unless the client may do it."""
        if not self.may_in_cluster(api_key, operation):
            sentence = f"The request needs {operation.name} permission."
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, sentence)

    def operations_on(self, api_key: ApiKey, resource_type: ResourceType, name: str) -> int:
        """What the client may do with a resource, as the bits of `AclOperation` (KIP-430)."""
        if self.authorizer is None:
            return _ALL_OPERATIONS[resource_type]
        return operation_bits(
            operation
            for operation in SUPPORTED_OPERATIONS[resource_type]
            if self.may(api_key, operation, resource_type, name, is_logged=False)
        )

    def operations_in_cluster(self, api_key: ApiKey) -> int:
        """As `operations_on`; none for a client that may not describe the cluster."""
        if not self.may_in_cluster(api_key, AclOperation.DESCRIBE):
            return 0
        return self.operations_on(api_key, ResourceType.CLUSTER, CLUSTER_NAME)


class RequestOwner(Protocol):
    """What a request needs of its connection."""

    def on_answer(self, request: Request, answer: Answer) -> None: ...

    def hold_later_requests(self, request: Request) -> None: ...

    def release_later_requests(self, request: Request) -> None: ...

    def mute(self, throttle_time_ms: int) -> None: ...

    def set_context(self, context: RequestContext) -> None: ...


class Request:
    """A request that has begun and holds a response slot until it is answered, which happens exactly once.

    `body` is the frame after its size, `body_offset` where the message starts behind the header. It lies in a buffer
    that is used again: a handler reads it before it returns and copies what it keeps.
    `on_disconnect` is called when the connection is lost before the answer; answering afterwards is allowed and does
    nothing.
    """

    __slots__ = (
        "_owner",
        "answer",
        "api_key",
        "api_version",
        "body",
        "body_offset",
        "client_id",
        "context",
        "correlation_id",
        "is_connected",
        "on_disconnect",
    )

    def __init__(
        self,
        owner: RequestOwner,
        api_key: int,
        api_version: int,
        correlation_id: int,
        context: RequestContext,
        body: memoryview,
        body_offset: int,
    ) -> None:
        self._owner = owner
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.context = context
        self.client_id = context.client_id
        self.body = body
        self.body_offset = body_offset
        self.answer: Answer | None = None
        self.is_connected = True
        self.on_disconnect: Callable[[], None] | None = None

    def respond(self, answer: bytes | Sequence[AnswerPart], throttle_time_ms: int = 0) -> None:
        """Fills the slot. With a throttle time the answer goes out at once and nothing begins for that long
        (KIP-219)."""
        assert self.answer is None, "a request is answered once"
        quota = self.context.quota
        if quota is not None and self.api_key not in NOT_THROTTLED_HERE and isinstance(answer, bytes):
            api_key, version = self.api_key, self.api_version
            throttle_time_ms = quota.on_answered(throttle_time_ms)
            if throttle_time_ms > 0:
                answer = with_throttle_time(api_key, version, answer, throttle_time_ms)
        self.answer = answer
        # The closure usually holds what holds this request: cut the cycle here, or the collector has to.
        self.on_disconnect = None
        if throttle_time_ms > 0:
            self._owner.mute(throttle_time_ms)
        self._owner.on_answer(self, answer)

    def respond_nothing(self, throttle_time_ms: int = 0) -> None:
        """Fills the slot of a request that has no response (Produce with acks=0)."""
        self.respond((), throttle_time_ms)

    def close_connection(self, reason: str) -> None:
        """Closes the connection when the answers before this one are sent; nothing begins any more."""
        assert self.answer is None, "a request is answered once"
        self.answer = CloseConnection(reason)
        self.on_disconnect = None
        self._owner.on_answer(self, self.answer)

    def hold_later_requests(self) -> None:
        """Requests behind this one do not begin until `release_later_requests` or its answer."""
        self._owner.hold_later_requests(self)

    def release_later_requests(self) -> None:
        self._owner.release_later_requests(self)

    def set_context(self, context: RequestContext) -> None:
        """For later requests of this connection."""
        self._owner.set_context(context)


class TimedRequest(Request):
    """One of those whose times are measured; the others do nothing for it."""

    __slots__ = ("timer",)

    timer: RequestTimer
    """Set before the request begins."""

    def respond(self, answer: bytes | Sequence[AnswerPart], throttle_time_ms: int = 0) -> None:
        self.timer.on_answered()
        super().respond(answer, throttle_time_ms)

    def close_connection(self, reason: str) -> None:
        self.timer.on_answered()
        super().close_connection(reason)
