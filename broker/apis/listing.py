"""One list of what all partitions of a coordinator have: groups, or transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from ...protocol.errors import ErrorCode, KafkaError
from ..coordination.state_machine import StateMachine
from ..coordinators.coordinator_partition import CoordinatorPartition
from .gathered import Gathered

MachineT = TypeVar("MachineT", bound=StateMachine)
T = TypeVar("T")

_LEFT_OUT: Final = (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR)


class _Listing(NamedTuple, Generic[T]):
    """Of one partition."""

    error: ErrorCode
    entries: Sequence[T]


def list_partitions(
    partitions: Iterable[CoordinatorPartition[MachineT]],
    entries_of: Callable[[CoordinatorPartition[MachineT]], Sequence[T]],
    respond: Callable[[ErrorCode, list[T]], None],
) -> None:
    """Calls `respond` when all that is listed is committed: with the entries of the partitions in their order, and the
    first error. A partition that is not coordinated here after all, or cannot be, is left out without one."""

    def join(found: tuple[_Listing[T], ...]) -> None:
        error = next((one.error for one in found if one.error not in _LEFT_OUT), ErrorCode.NONE)
        respond(error, [entry for one in found for entry in one.entries])

    def of_error(error: ErrorCode) -> _Listing[T]:
        return _Listing(error, ())

    present = list(partitions)
    answers: Gathered[_Listing[T]] = Gathered(len(present), join)
    for number, partition in enumerate(present):
        answer = answers.place(number)
        try:
            entries = entries_of(partition)
        except KafkaError as error:
            answer(of_error(error.code))
        else:
            partition.hold(answer, of_error)(_Listing(ErrorCode.NONE, entries))
