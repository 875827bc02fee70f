"""Requests that wait for a condition or a deadline, in lists by the key that may satisfy them.

Kafka: `DelayedOperationPurgatory`.

An operation is in one of three states. *New* leads to *completed* (`try_complete` held at once) or *parked*. *Parked*
leads to *completed* by `check_and_complete`, by expiration, by failure or by `cancel`. *Completed* leads nowhere.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from itertools import islice
from typing import Final

from msgspec import Struct

from .loop_timer_wheel import LoopTimerWheel

logger = logging.getLogger(__name__)

TICK_MS: Final = 5
"""Operations expire at most this much late. One timer of the loop per tick with operations, whatever their number."""

TURN_OPERATIONS: Final = 20
"""Looked at in one turn of the event loop by `complete_in_turns`: some milliseconds when all of them complete."""


class DelayedOperation(ABC):
    """What waits. Every call comes from the loop's thread."""

    __slots__ = ("_keys", "_tick", "is_completed")

    def __init__(self) -> None:
        self.is_completed = False
        self._keys: tuple[Hashable, ...] = ()
        self._tick: int | None = None

    @abstractmethod
    def try_complete(self) -> bool:
        """Looks at the condition; when it holds, does the work (answers) and returns True."""

    @abstractmethod
    def on_expiration(self) -> None:
        """The deadline has passed, or the node stops: answers with what there is."""

    @abstractmethod
    def on_failure(self, error: Exception) -> None:
        """`try_complete` or `on_expiration` raised `error`, which is logged: answers with an error."""


class PurgatoryStatistics(Struct, frozen=True, kw_only=True):
    parked_count: int
    """Operations that wait now (Kafka: PurgatorySize)."""
    expired_count: int
    """Operations that ended by their deadline since start (Kafka: ExpiresPerSec)."""


class Purgatory:
    """Parked operations by key, with one timer for all of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self.name = name
        self._watchers: dict[Hashable, dict[DelayedOperation, None]] = {}
        # Those that `complete_in_turns` has still to look at.
        self._due: dict[Hashable, dict[DelayedOperation, None]] = {}
        self._loop = loop
        self._timer: LoopTimerWheel[DelayedOperation] = LoopTimerWheel(loop, TICK_MS, self._on_expired)
        self._parked_count = 0
        self._expired_count = 0

    def statistics(self) -> PurgatoryStatistics:
        return PurgatoryStatistics(parked_count=self._parked_count, expired_count=self._expired_count)

    def watch(self, operation: DelayedOperation, keys: Iterable[Hashable], timeout_ms: int) -> bool:
        """Completes the operation if its condition holds, and parks it under the keys otherwise.

        True when it completed at once. An exception of `try_complete` is the caller's here, because nothing was parked.
        """
        if operation.try_complete():
            operation.is_completed = True
            return True
        operation._keys = tuple(keys)
        for key in operation._keys:
            watchers = self._watchers.get(key)
            if watchers is None:
                watchers = self._watchers[key] = {}
            watchers[operation] = None
        self._parked_count += 1
        operation._tick = self._timer.add(operation, timeout_ms)
        return False

    def check_and_complete(self, key: Hashable) -> int:
        """Looks again at what is parked under `key`, oldest first; returns how many completed."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return 0
        completed_count = 0
        # A completion may begin further requests that park or complete under the same key: walk over a copy.
        for operation in tuple(watchers):
            completed_count += self._check(operation)
        return completed_count

    def complete_in_turns(self, key: Hashable) -> None:
        """As `check_and_complete`, but when many are parked under `key` the caller goes on first, and so does whatever
        else has its turn. An operation is looked at once for all calls since it was looked at last."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return
        due = self._due.get(key)
        if due is not None:
            due.update(watchers)
        elif len(watchers) <= TURN_OPERATIONS:
            self.check_and_complete(key)
        else:
            if not self._due:
                self._loop.call_soon(self._take_turn)
            self._due[key] = dict(watchers)

    def _take_turn(self) -> None:
        key, due = next(iter(self._due.items()))
        del self._due[key]
        turn = tuple(islice(due, TURN_OPERATIONS))
        for operation in turn:
            del due[operation]
        if due:
            # Behind the others.
            self._due[key] = due
        if self._due:
            self._loop.call_soon(self._take_turn)
        for operation in turn:
            self._check(operation)

    def _check(self, operation: DelayedOperation) -> bool:
        """Whether it has completed now."""
        if operation.is_completed:
            return False
        try:
            is_completed = operation.try_complete()
        except Exception as error:
            self._fail(operation, error)
            is_completed = True
        if is_completed:
            self._forget(operation)
        return is_completed

    def cancel(self, operation: DelayedOperation) -> None:
        """Takes the operation out without a word to it; a completed one is no error."""
        self._forget(operation)

    def expire_all(self) -> None:
        """Ends every operation as if its deadline had passed; what parks meanwhile stays."""
        self._timer.expire_all()

    def _forget(self, operation: DelayedOperation) -> None:
        if operation.is_completed:
            return
        operation.is_completed = True
        for key in operation._keys:
            watchers = self._watchers.get(key)
            if watchers is not None:
                watchers.pop(operation, None)
                if not watchers:
                    del self._watchers[key]
        if operation._tick is not None:
            self._parked_count -= 1
            self._timer.remove(operation, operation._tick)

    def _on_expired(self, operation: DelayedOperation) -> None:
        if operation.is_completed:
            return
        self._forget(operation)
        self._expired_count += 1
        try:
            operation.on_expiration()
        except Exception as error:
            self._fail(operation, error)

    def _fail(self, operation: DelayedOperation, error: Exception) -> None:
        logger.exception("Delayed operation failed: purgatory=%s operation=%s", self.name, type(operation).__name__)
        try:
            operation.on_failure(error)
        except Exception:
            logger.exception("Delayed operation failed to respond: purgatory=%s", self.name)
