"""One list of the entries of all partitions of a coordinator: groups or transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from ...protocol.errors import ErrorCode, KafkaError
from ..coordination.coordinator_shard import CoordinatorShard
from ..coordinators.coordinator_context import CoordinatorContext
from .response_collector import ResponseCollector

ShardT = TypeVar("ShardT", bound=CoordinatorShard)
T = TypeVar("T")

_LEFT_OUT: Final = (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR)


class _Listing(NamedTuple, Generic[T]):
    """The listing of one partition."""

    error: ErrorCode
    entries: Sequence[T]


def list_partitions(
    partitions: Iterable[CoordinatorContext[ShardT]],
    entries_of: Callable[[CoordinatorContext[ShardT]], Sequence[T]],
    respond: Callable[[ErrorCode, list[T]], None],
) -> None:
    """Calls `respond` when all listed entries are committed: with the entries in the order of the partitions, and the
    first error. A partition that this node does not coordinate any more, or cannot, is omitted without an error."""

    def join(found: tuple[_Listing[T], ...]) -> None:
        error = next((one.error for one in found if one.error not in _LEFT_OUT), ErrorCode.NONE)
        respond(error, [entry for one in found for entry in one.entries])

    def of_error(error: ErrorCode) -> _Listing[T]:
        return _Listing(error, ())

    present = list(partitions)
    answers: ResponseCollector[_Listing[T]] = ResponseCollector(len(present), join)
    for number, partition in enumerate(present):
        answer = answers.slot(number)
        try:
            entries = entries_of(partition)
        except KafkaError as error:
            answer(of_error(error.code))
        else:
            partition.reply_when_committed(answer, of_error)(_Listing(ErrorCode.NONE, entries))
