"""Effects that the rules of a coordinator collect during one event, and that its shell applies in this order after it.

An event is a request, an expired timer, a change of the metadata, or a commit that a follow-up waits for. Rules append
records at once (`ports.StateLog`), because an append that is refused decides what they do next; everything else that an
event brings about is an effect.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

ResponseT = TypeVar("ResponseT")


class Waiter(Generic[ResponseT]):
    """One request that waits for its response: made by the shell, opaque to rules, answered once by a `Reply`."""

    __slots__ = ()


class Effect:
    """One of the classes below, or one that a kind of coordinator adds for a shell of its own."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Reply(Effect, Generic[ResponseT]):
    """The response leaves when all records are committed that the coordinator has appended by then."""

    waiter: Waiter[ResponseT]
    response: ResponseT


@dataclass(frozen=True, slots=True)
class ScheduleTimer(Effect):
    """After `delay_ms` the shard's `on_timer` receives `key`. Replaces the timer of an equal key."""

    key: Hashable
    delay_ms: int


@dataclass(frozen=True, slots=True)
class CancelTimer(Effect):
    """No effect for an unknown key."""

    key: Hashable


class Effects:
    """What one shard has collected since its shell last took it."""

    def __init__(self) -> None:
        self._collected: list[Effect] = []

    def add(self, effect: Effect) -> None:
        self._collected.append(effect)

    def reply(self, waiter: Waiter[ResponseT], response: ResponseT) -> None:
        self._collected.append(Reply(waiter, response))

    def schedule_timer(self, key: Hashable, delay_ms: int) -> None:
        self._collected.append(ScheduleTimer(key, delay_ms))

    def cancel_timer(self, key: Hashable) -> None:
        self._collected.append(CancelTimer(key))

    def take(self) -> Sequence[Effect]:
        if not self._collected:
            return ()
        collected, self._collected = self._collected, []
        return collected
