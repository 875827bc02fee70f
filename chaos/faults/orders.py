"""What a node is ordered to suffer, as a value, as JSON, and how each call of its disk fares under it.

    {"seed": 7, "number": 3, "clock_offset_ms": 0,
     "disk": [{"operation": "write", "path": "*.log", "error": "ENOSPC",
               "delay_ms": 0, "probability": 1.0, "skip": 0, "count": null}],
     "requests": [{"number": 1, "api": "Produce", "at": "before-ack", "error": "DISCONNECT", ...}],
     "logs_requests": false}

`number` rises with each order, so that a node draws anew, and its lines name the order they belong to.
"""

import json
from errno import errorcode
from fnmatch import fnmatchcase
from random import Random
from typing import Final, Literal, Self, TypeAlias, get_args

import msgspec
from msgspec import Struct

from ...local.errors import ClusterError
from ...protocol.structs import replace
from .request_faults import RequestFault

DiskOperation: TypeAlias = Literal["create", "read", "remove", "rename", "sync", "truncate", "write"]
OPERATIONS: Final[tuple[DiskOperation, ...]] = get_args(DiskOperation)
# What a full disk has no room for. Cutting, removing and reading go on, and so does a sync of what was written before.
NEED_ROOM: Final[tuple[DiskOperation, ...]] = ("create", "write")

_NUMBERS: Final = {name: number for number, name in errorcode.items()}


class DiskFault(Struct, frozen=True, kw_only=True):
    """Calls of `operation` on paths that match `path` (as a shell matches them, `*` over folders too) fail or wait."""

    operation: DiskOperation
    path: str = "*"
    # The name of the error, as `ENOSPC`; None when the call is only slow.
    error: str | None = None
    delay_ms: int = 0
    # Of each matching call, from 0 to 1.
    probability: float = 1.0
    # So many matching calls are spared first.
    skip: int = 0
    # So many are hit at most; None means all.
    count: int | None = None

    def __post_init__(self) -> None:
        if self.operation not in OPERATIONS:
            raise ClusterError(f"{self.operation!r} is no operation of a disk: it is one of {', '.join(OPERATIONS)}")
        if self.error is not None and self.error not in _NUMBERS:
            raise ClusterError(f"{self.error!r} is no name of an error number, as ENOSPC and EIO are")

    @property
    def error_number(self) -> int | None:
        return None if self.error is None else _NUMBERS[self.error]


class Orders(Struct, frozen=True, kw_only=True):
    """All that is wrong with a node's disk, clock and requests at one time; nothing by default."""

    seed: int = 0
    number: int = 0
    # How far the node's wall clock is from that of the machine.
    clock_offset_ms: int = 0
    disk: tuple[DiskFault, ...] = ()
    requests: tuple[RequestFault, ...] = ()
    # Whether the node writes down what clients ask it (`request_log.py`).
    logs_requests: bool = False

    def encode(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def decode(cls, text: str) -> Self:
        """Raises ClusterError when it is not what `encode` makes."""
        try:
            values = json.loads(text)
            return replace(
                cls(**values),
                disk=tuple(DiskFault(**fault) for fault in values.get("disk", ())),
                requests=tuple(RequestFault(**fault) for fault in values.get("requests", ())),
            )
        except (ValueError, TypeError, AttributeError) as error:
            raise ClusterError(f"these are no orders for a node: {error}") from error


class Verdict(Struct, frozen=True, kw_only=True):
    """What becomes of one call: it waits, and then fails or is let through."""

    delay_ms: int = 0
    error_number: int | None = None
    # The fault, by its place in the orders, that decided the error, or else the delay; None when nothing fired.
    fault: int | None = None


UNHARMED: Final = Verdict()


class Judge:
    """Decides call by call. The same orders and the same calls give the same verdicts."""

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self._random = Random(f"{orders.seed} {orders.number}")
        self._skip = [fault.skip for fault in orders.disk]
        self._left = [fault.count for fault in orders.disk]

    def judge(self, operation: DiskOperation, path: str) -> Verdict:
        verdict = UNHARMED
        for place, fault in enumerate(self.orders.disk):
            if fault.operation != operation or not fnmatchcase(path, fault.path) or not self._is_hit(place, fault):
                continue
            delay_ms = verdict.delay_ms + fault.delay_ms
            if fault.error_number is not None:
                return Verdict(delay_ms=delay_ms, error_number=fault.error_number, fault=place)
            verdict = Verdict(delay_ms=delay_ms, fault=place)
        return verdict

    def _is_hit(self, place: int, fault: DiskFault) -> bool:
        if self._skip[place]:
            self._skip[place] -= 1
            return False
        left = self._left[place]
        if left == 0 or self._random.random() >= fault.probability:
            return False
        if left is not None:
            self._left[place] = left - 1
        return True


def full_disk(path: str = "*", *, probability: float = 1.0) -> tuple[DiskFault, ...]:
    """No room for anything more in files that match `path`."""
    return tuple(
        DiskFault(operation=operation, path=path, error="ENOSPC", probability=probability) for operation in NEED_ROOM
    )
