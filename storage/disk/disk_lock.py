"""Holding a file of `DiskFiles` so that no other node, Apache Kafka's included, uses what it stands for."""

import fcntl
import os
from errno import EACCES, EAGAIN, EDEADLK, EWOULDBLOCK
from typing import Final

from .rules.held_folders import HeldFolders


class DiskLock:
    """A POSIX lock, the kind that the Java virtual machine takes: Apache Kafka and Penstock shut each other out."""

    # A POSIX lock does not stop its own process, and closing any descriptor of the file would drop it.
    _held: Final[set[tuple[int, int]]] = set()

    def __init__(self, path: str, folders: HeldFolders) -> None:
        """`folders` learns when it is released."""
        busy = BlockingIOError(EWOULDBLOCK, f"{path} is held by another process, or twice by this one")
        if os.path.exists(path) and _identity(os.stat(path)) in self._held:
            raise busy
        self._path = path
        self._folders = folders
        self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            if error.errno in (EAGAIN, EWOULDBLOCK, EDEADLK, EACCES):
                raise busy from error
            raise
        self._identity = _identity(os.fstat(self._descriptor))
        self._held.add(self._identity)

    def release(self) -> None:
        if self._descriptor is not None:
            self._folders.give_up(self._path)
            os.close(self._descriptor)
            self._descriptor = None
            self._held.discard(self._identity)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
