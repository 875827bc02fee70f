"""The descriptors of open files: a bounded number of them stays open, and the least recently used ones go."""

import os
from collections import OrderedDict
from collections.abc import Callable
from threading import RLock as Mutex
from typing import Final, TypeVar

from .rules.disk_errors import DESCRIPTORS_SHORT

T = TypeVar("T")

# More descriptors than this gain nothing: opening a file again costs microseconds. The soft limit of a process is often
# 1,024, and connections need descriptors too.
DEFAULT_MAX_OPEN_FILES: Final = 512


class DescribedFile:
    """A file, as far as its descriptor goes."""

    __slots__ = ("descriptor", "is_removed", "path", "user_count")

    def __init__(self, path: str) -> None:
        self.path = path
        self.descriptor: int | None = None
        self.user_count = 0
        self.is_removed = False
        """Only the descriptor leads to the file any more."""


class Descriptors:
    """One lock guards the table, because reads and syncs come from the executor's threads: a descriptor is closed only
    while no call uses it, or its number could already mean another file."""

    def __init__(self, max_open_files: int, *, is_read_only: bool = False) -> None:
        self._access = os.O_RDONLY if is_read_only else os.O_RDWR
        self._max_open_files = max_open_files
        self.mutex = Mutex()
        self._open: OrderedDict[DescribedFile, None] = OrderedDict()

    @property
    def open_count(self) -> int:
        return len(self._open)

    def enter(self, file: DescribedFile) -> int:
        """A descriptor that stays valid until `leave`."""
        with self.mutex:
            descriptor = file.descriptor
            if descriptor is None:
                descriptor = file.descriptor = self.acquire(file.path)
                self._open[file] = None
            elif not file.is_removed:
                self._open.move_to_end(file)
            file.user_count += 1
        return descriptor

    def leave(self, file: DescribedFile) -> None:
        with self.mutex:
            file.user_count -= 1

    def close(self, file: DescribedFile) -> None:
        with self.mutex:
            # One that is in use, or that only its descriptor still leads to, closes when its last holder drops it.
            if file.descriptor is not None and not file.is_removed:
                if file.user_count == 0:
                    os.close(file.descriptor)
                    file.descriptor = None
                    del self._open[file]
                else:
                    self._open.move_to_end(file, last=False)

    def acquire(self, path: str, flags: int = 0) -> int:
        """Opens it. The mutex is held."""
        if len(self._open) >= self._max_open_files:
            self._close_least_recent()
        while True:
            try:
                return os.open(path, self._access | os.O_CLOEXEC | flags, 0o644)
            except OSError as error:
                if error.errno not in DESCRIPTORS_SHORT or not self._close_least_recent():
                    raise

    def give(self, file: DescribedFile, descriptor: int) -> None:
        """The descriptor that was acquired is the file's. The mutex is held."""
        file.descriptor = descriptor
        self._open[file] = None

    def keep(self, file: DescribedFile) -> None:
        """The name of the file goes away: its descriptor stays open as long as anyone holds the file. The mutex is
        held."""
        if file.descriptor is None:
            file.descriptor = self.acquire(file.path)
        self._open.pop(file, None)
        file.is_removed = True

    def spare(self, call: Callable[[], T]) -> T:
        """What `call` returns, which takes a descriptor of its own before it does anything else."""
        while True:
            try:
                return call()
            except OSError as error:
                if error.errno not in DESCRIPTORS_SHORT:
                    raise
                with self.mutex:
                    if not self._close_least_recent():
                        raise

    def _close_least_recent(self) -> bool:
        """False when all are in use."""
        for file in self._open:
            if file.user_count == 0:
                assert file.descriptor is not None, "the table has open files only"
                os.close(file.descriptor)
                file.descriptor = None
                del self._open[file]
                return True
        return False
