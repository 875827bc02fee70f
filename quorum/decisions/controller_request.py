"""A request that a controller decides. Each stands behind its decision: who asks for one loads no other."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from ...protocol.apis import ApiKey
from .context import Decision

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


class ControllerRequest(Struct, Generic[RequestT, ResponseT], frozen=True):
    """One API. `sender` returns the node id that a request speaks for; the request is refused unless the connection has
    proved that id. Without `sender` every client may send it. From `first_strict_version` on what exceeds a client's
    quota of changes is refused with a code of its own (KIP-599)."""

    api_key: ApiKey
    decision: Decision[RequestT, ResponseT]
    sender: Callable[[RequestT], int] | None = None
    first_strict_version: int = 0

    @property
    def is_for_brokers(self) -> bool:
        """Whether it is only for nodes of this cluster."""
        return self.sender is not None


class _OfBroker(Protocol):
    @property
    def broker_id(self) -> int: ...


def broker_of(request: _OfBroker) -> int:
    """The sender of what a broker says of itself."""
    return request.broker_id
