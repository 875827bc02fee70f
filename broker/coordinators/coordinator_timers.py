"""The timers of one coordinator's partition, one for each key. Timers survive no unloading."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from typing import Final

from ...protocol.errors import KafkaError
from ..timing.loop_timer_wheel import LoopTimerWheel

logger = logging.getLogger(__name__)

TIMER_TICK_MS: Final = 1
"""As in Apache Kafka: clients count on a member being gone when its session timeout is over."""


class CoordinatorTimers:
    """`on_timer` receives the key of a timer whose delay has passed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_timer: Callable[[Hashable], None]) -> None:
        self._on_timer = on_timer
        self._wheel: LoopTimerWheel[_Timer] = LoopTimerWheel(loop, TIMER_TICK_MS, self._on_expired)
        self._scheduled: dict[Hashable, tuple[_Timer, int]] = {}

    def schedule(self, key: Hashable, delay_ms: int) -> None:
        self.cancel(key)
        timer = _Timer(key)
        self._scheduled[key] = (timer, self._wheel.add(timer, delay_ms))

    def cancel(self, key: Hashable) -> None:
        scheduled = self._scheduled.pop(key, None)
        if scheduled is not None:
            self._wheel.remove(*scheduled)

    def cancel_all(self) -> None:
        for key in list(self._scheduled):
            self.cancel(key)

    def _on_expired(self, timer: _Timer) -> None:
        scheduled = self._scheduled.get(timer.key)
        if scheduled is None or scheduled[0] is not timer:
            # Another timer of the same turn has put it off.
            return
        del self._scheduled[timer.key]
        try:
            self._on_timer(timer.key)
        except KafkaError as error:
            # What it wanted to write down is tried again by whatever comes next.
            logger.warning("Execution of coordinator timer failed: key=%s error=%s", timer.key, error)
        except Exception:
            logger.exception("Execution of coordinator timer failed: key=%s", timer.key)


class _Timer:
    """Equal only to itself: a key may be scheduled again."""

    __slots__ = ("key",)

    def __init__(self, key: Hashable) -> None:
        self.key = key
