"""How many partitions a client may have created and deleted (KIP-599).

Kafka: `ControllerMutationQuota`.

The active controller counts, for clients of all brokers together: the partitions of topics that are created or
deleted, and those that are added, also where a request only validates. Each topic is granted as long as the client has
no debt, and may make one. Then it is refused with THROTTLING_QUOTA_EXCEEDED; a version of an API that does not know
that code is granted it, and its client waits. What else is wrong with a topic is
found before and costs nothing, but for the places of added partitions.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast

from kio.static.primitive import i32Timedelta

from ...protocol.errors import ErrorCode, KafkaError, error_info

ResponseT = TypeVar("ResponseT")
_SENTENCE: Final = error_info(ErrorCode.THROTTLING_QUOTA_EXCEEDED).sentence


class MutationAllowance(NamedTuple):
    """What a client has left as a decision begins, in partitions: negative for a debt."""

    tokens: float
    is_strict: bool
    """Whether what exceeds it is refused."""


class Mutations(NamedTuple):
    """What one decision took of the allowance."""

    partition_count: int = 0
    is_exceeded: bool = False
    """Whether the client has to wait: something was refused, or granted though there was a debt afterwards."""


NO_MUTATIONS: Final = Mutations()


class MutationQuota(Protocol):
    """Of one request of a client."""

    def allowance(self) -> MutationAllowance: ...

    def settle(self, mutations: Mutations) -> None:
        """Counts what was decided, in the turn of the loop that decided it."""

    def throttle_time_ms(self) -> int:
        """How long the client has to wait from now on; 0 if nothing exceeded its quota."""


class MutationBudget:
    """Of one decision, which takes from it topic by topic."""

    def __init__(self, allowance: MutationAllowance | None) -> None:
        """None for a client without a quota."""
        self._allowance = allowance
        self._taken = 0
        self._is_exceeded = False

    def take(self, partition_count: int) -> None:
        """Raises KafkaError(THROTTLING_QUOTA_EXCEEDED)."""
        if self._allowance is None:
            return
        tokens, is_strict = self._allowance
        if is_strict and tokens < self._taken:
            self._is_exceeded = True
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, _SENTENCE)
        self._taken += partition_count
        self._is_exceeded |= not is_strict and tokens < self._taken

    @property
    def mutations(self) -> Mutations:
        return Mutations(self._taken, self._is_exceeded)


def throttled(response: ResponseT, throttle_time_ms: int) -> ResponseT:
    """Return a decision's response with that time, which clients wait before they ask again."""
    if not throttle_time_ms:
        return response
    throttle_time = i32Timedelta.parse(timedelta(milliseconds=throttle_time_ms))
    return cast(ResponseT, replace(cast(Any, response), throttle_time=throttle_time))
