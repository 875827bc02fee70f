"""Who decides which partition a record goes to."""

import importlib
from typing import Final, Protocol

# Left to librdkafka, in C: keys by murmur2 as in Java, records without a key in batches to one partition after another.
MURMUR2: Final = "murmur2"
ROUND_ROBIN: Final = "round-robin"


class Partitioner(Protocol):
    """What a custom partitioner is: a function of these three; its answer is from 0 to partition_count - 1."""

    def __call__(self, key: bytes | None, value: bytes | None, partition_count: int, /) -> int: ...


class UnknownPartitionerError(ValueError):
    """There is no such partitioner; the message says what was looked for."""


class RoundRobin:
    """One record to each partition in turn, whatever its key."""

    def __init__(self) -> None:
        self._next = 0

    def __call__(self, _key: bytes | None, _value: bytes | None, partition_count: int, /) -> int:
        partition = self._next % partition_count
        self._next = partition + 1
        return partition


def partitioner_of(name: str) -> Partitioner | None:
    """By name, or as `module:function`; None: the client's own murmur2. Raises UnknownPartitionerError."""
    if name == MURMUR2:
        return None
    if name == ROUND_ROBIN:
        return RoundRobin()
    module_name, colon, function_name = name.partition(":")
    if not (module_name and colon and function_name):
        raise UnknownPartitionerError(
            f"{name!r} is not a partitioner: choose {MURMUR2}, {ROUND_ROBIN} or a function as module:function"
        )
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise UnknownPartitionerError(
            f"module {module_name!r} of the partitioner cannot be imported: {error}"
        ) from error
    function: Partitioner | None = getattr(module, function_name, None)
    if not callable(function):
        raise UnknownPartitionerError(f"module {module_name!r} has no function {function_name!r}")
    return function
