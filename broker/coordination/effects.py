"""Effects that the rules of a coordinator collect during one event, and that its shell applies in this order after it.

An event is a request, an expired timer, a change of the metadata, the result of an effect, or a commit that a follow-up
waits for. Rules append records at once (`ports.StateLog`), because an append that is refused decides what they do next;
everything else that an event brings about is an effect. Effects collected before an error are applied, too.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, Generic, TypeVar

from msgspec import Struct

ResponseT = TypeVar("ResponseT")


class Waiter(Generic[ResponseT]):
    """One request that waits for its response: made by the shell, opaque to rules, answered once by a `Reply`."""

    __slots__ = ()


class Effect(Struct, frozen=True):
    """One of the classes below, or one that a kind of coordinator adds for a shell of its own."""

    is_applied_when_unloaded: ClassVar[bool] = False
    """Whether it still matters when the coordinator was unloaded in the event, or before the effect's turn."""


class Reply(Effect, Generic[ResponseT], frozen=True):
    """The response leaves when all records are committed that the coordinator has appended by then."""

    waiter: Waiter[ResponseT]
    response: ResponseT


class ScheduleTimer(Effect, frozen=True):
    """After `delay_ms` the shard's `on_timer` receives `key`. Replaces the timer of an equal key."""

    key: Hashable
    delay_ms: int


class CancelTimer(Effect, frozen=True):
    """No effect for an unknown key."""

    key: Hashable


class Effects:
    """What one shard has collected since its shell last took it."""

    def __init__(self) -> None:
        self.collected: list[Effect] = []

    def add(self, effect: Effect) -> None:
        self.collected.append(effect)

    def reply(self, waiter: Waiter[ResponseT], response: ResponseT) -> None:
        self.collected.append(Reply(waiter, response))

    def schedule_timer(self, key: Hashable, delay_ms: int) -> None:
        self.collected.append(ScheduleTimer(key, delay_ms))

    def cancel_timer(self, key: Hashable) -> None:
        self.collected.append(CancelTimer(key))

    def take(self) -> list[Effect]:
        collected, self.collected = self.collected, []
        return collected
