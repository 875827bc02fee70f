"""What the mechanisms of SASL have in common: tokens of the client in, challenges out, and in the end a principal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from ....protocol.ids import NodeId
from ...network.request import RequestContext

USER: Final = "User"
"""The type of principals that are clients."""


class Proved(Struct, frozen=True, kw_only=True):
    """The end of an exchange: who the client is, `type:name`."""

    principal: str
    token: bytes = b""
    """The last one, for the client."""
    node_id: NodeId | None = None
    """Of a node of this cluster."""
    is_by_token: bool = False
    """By a delegation token (KIP-48)."""
    expiry_ms: int | None = None
    """When what it showed ends to be valid, in wall-clock time; None: never."""


class AuthenticationFailed(Exception):  # noqa: N818 - it is an answer, not a fault
    """The client did not prove who it says it is.

    `reason` is for the log, and has no secret. `message` is what the client is told; None for Kafka's sentence that
    tells nothing.
    """

    def __init__(self, reason: str, message: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.message = message


class SaslExchange(Protocol):
    """One client's. After `Proved` or an exception it is over."""

    def step(self, token: bytes) -> bytes | Proved:
        """What the client's token leads to: a challenge, or the end. Raises AuthenticationFailed."""


BeginExchange: TypeAlias = Callable[[RequestContext], SaslExchange]
"""One mechanism of one listener."""


def user(name: str) -> str:
    """The principal of a client."""
    return f"{USER}:{name}"
