"""Errors of a disk, and what they do to its log directory: it goes offline with its logs, or refuses what met them.

The process goes on. Errors that say nothing about the disk as a whole, a full disk above all, only refuse what met them
(`disk_errors.py`).

Kafka: `LogDirFailureChannel`, `LogManager.handleLogDirFailure`.
"""

import logging
from collections.abc import Callable
from typing import Final

from ..disk.rules.disk_errors import leaves_directory_usable
from .future_logs import FutureLogs
from .log_directories import LogDirectories
from .log_directory import LogDirectory
from .offline_logs import OfflineLogs
from .online_logs import OnlineLogs

logger = logging.getLogger(__name__)

# A full disk refuses every append; the log says so this often.
_COMPLAINT_INTERVAL_MS: Final = 10_000


class DirectoryFailures:
    def __init__(
        self,
        directories: LogDirectories,
        online: OnlineLogs,
        offline: OfflineLogs,
        futures: FutureLogs,
        *,
        steady_clock_ms: Callable[[], int],
        on_directory_failure: Callable[[str, OSError], None] | None,
    ) -> None:
        """`on_directory_failure` is told the path of a log directory right after its logs have left `online`."""
        self._directories = directories
        self._online = online
        self._offline = offline
        self._futures = futures
        self._steady_clock_ms = steady_clock_ms
        self._on_directory_failure = on_directory_failure
        self._last_complaint_ms: dict[str, int] = {}

    def on_error(self, path: str, error: OSError) -> None:
        """`error` came from the disk that has `path`: the log directory goes offline if that says so much."""
        directory = self._directories.directory_of(path)
        if directory is None or not directory.is_online:
            return
        if leaves_directory_usable(error):
            self._complain(directory, error)
        else:
            self.fail(directory, error)

    def fail(self, directory: LogDirectory, error: OSError) -> None:
        """The logs in it are offline; nothing when they are already."""
        if not directory.is_online:
            return
        directory.fail(error)
        logger.error("Stopping serving logs in dir: path=%s error=%s", directory.path, error)
        for log in self._online.in_directory(directory):
            self._online.remove(log.topic, log.partition)
            self._offline.fail((log.topic, log.partition), error)
            log.close_files()
        self._futures.end_in(directory)
        if self._on_directory_failure is not None:
            self._on_directory_failure(directory.path, error)

    def _complain(self, directory: LogDirectory, error: OSError) -> None:
        now_ms = self._steady_clock_ms()
        last_ms = self._last_complaint_ms.get(directory.path)
        if last_ms is None or abs(now_ms - last_ms) >= _COMPLAINT_INTERVAL_MS:
            self._last_complaint_ms[directory.path] = now_ms
            logger.error("Error while accessing log directory: path=%s error=%s", directory.path, error)
