"""One program at a time writes in the folder of a cluster: `penstock up` and `penstock node` may run side by side."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class FolderLock:
    """The lock is on the folder itself, and goes with the process. Not safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        """It need not exist yet."""
        self._folder = folder
        self._depth = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Waits until no other program has it; may be entered again within itself. Raises OSError without a folder."""
        if self._depth:
            yield
            return
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            # Some file systems of networks have no locks: there all is as without one.
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._depth = 1
            yield
        finally:
            self._depth = 0
            os.close(descriptor)
