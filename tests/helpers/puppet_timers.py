"""The timers of one coordinator without a loop: turned by hand."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import count


class PuppetTimers:
    """One timer for each key, which `on_timer` receives when a test has waited for so long."""

    def __init__(self, now_ms: int, on_timer: Callable[[Hashable], None]) -> None:
        self.now_ms = now_ms
        self._on_timer = on_timer
        self._due: dict[Hashable, tuple[int, int]] = {}
        self._numbers = count()

    @property
    def keys(self) -> list[Hashable]:
        """Of those that wait, the earliest first."""
        return sorted(self._due, key=lambda key: self._due[key])

    def schedule(self, key: Hashable, delay_ms: int) -> None:
        self._due[key] = (self.now_ms + delay_ms, next(self._numbers))

    def cancel(self, key: Hashable) -> None:
        self._due.pop(key, None)

    def wait(self, milliseconds: int) -> None:
        """Everything that is due by then happens in its order, at its time."""
        end_ms = self.now_ms + milliseconds
        while (keys := self.keys) and self._due[keys[0]][0] <= end_ms:
            at_ms, _ = self._due.pop(keys[0])
            self.now_ms = max(self.now_ms, at_ms)
            self._on_timer(keys[0])
        self.now_ms = end_ms
