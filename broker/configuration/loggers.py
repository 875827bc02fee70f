"""The loggers of this process and their levels, which an administrator may change while it runs (KIP-412).

They are Python's loggers: one for each module that writes lines, and one for each package, whose level holds for the
modules below it that have none of their own. What is changed is written nowhere: the next start begins with
`log.level`. Several nodes in one process, as in tests, share them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from .penstock_keys import LOG_LEVELS

logger = logging.getLogger(__name__)

ROOT_LOGGER: Final = "root"
"""Kafka's name, and Python's, of the logger above all others."""
_OFF: Final = "OFF"
"""Log4j's level above FATAL; it cannot be set here."""


class Loggers:
    """Knows loggers by name, and levels by Kafka's names."""

    def __init__(self, manager: logging.Manager) -> None:
        self._manager = manager

    def levels(self) -> Mapping[str, str]:
        """By logger, sorted, the level from which on it writes: its own, or that of the nearest above that has one."""
        root = self._manager.root.level
        numbers = {ROOT_LOGGER: root}
        # A name sorts behind the names above it, and those are all there.
        for name, item in sorted(dict(self._manager.loggerDict).items()):
            own = item.level if isinstance(item, logging.Logger) else logging.NOTSET
            numbers[name] = own or numbers.get(name.rpartition(".")[0], root)
        return {name: _level_name(number) for name, number in sorted(numbers.items())}

    def __contains__(self, name: str) -> bool:
        return name == ROOT_LOGGER or name in self._manager.loggerDict

    def change(self, wanted: Mapping[str, str | None]) -> None:
        """Levels, of LOG_LEVELS, by logger; None: that of the logger above. KeyError where one does not exist."""
        before = self.levels()
        changes = (f"{name}={level or 'unset'} (before: {before[name]})" for name, level in wanted.items())
        # Before the change, which may silence it. One line: a request can name every logger.
        logger.warning("Log levels changed: %s", ", ".join(changes))
        for name, level in wanted.items():
            self._logger(name).setLevel(logging.NOTSET if level is None else LOG_LEVELS[level])

    def _logger(self, name: str) -> logging.Logger:
        return self._manager.root if name == ROOT_LOGGER else self._manager.getLogger(name)


PROCESS_LOGGERS: Final = Loggers(logging.Logger.manager)


def _level_name(number: int) -> str:
    """The lowest of Kafka's levels of which lines are written."""
    return min((one for one in LOG_LEVELS.items() if one[1] >= number), key=lambda one: one[1], default=(_OFF, 0))[0]
