"""Which folders a process holds by their lock files, and which it has given up: there it writes nothing any more.

Another process may have such a folder by now. Whatever writes late (a call that the executor still has, a task that
was forgotten) is refused, whatever its owner.
"""

from .disk_errors import ClosedError


class HeldFolders:
    """A path belongs to the nearest folder above it that has a lock; those that never had one belong to all."""

    __slots__ = ("_held", "given_up")

    def __init__(self) -> None:
        self._held: set[str] = set()
        self.given_up: set[str] = set()
        """Empty in a node that runs, so that asking costs nothing."""

    def hold(self, lock_path: str) -> None:
        folder = lock_path.rpartition("/")[0]
        self._held.add(folder)
        self.given_up.discard(folder)

    def give_up(self, lock_path: str) -> None:
        folder = lock_path.rpartition("/")[0]
        self._held.discard(folder)
        self.given_up.add(folder)

    def check(self, path: str) -> None:
        """Raises ClosedError when `path` is in a folder that was given up."""
        if not self.given_up:
            return
        folder = path.rpartition("/")[0]
        while folder not in self._held:
            if folder in self.given_up:
                raise ClosedError(f"{path} is not written any more: this process has given up {folder}")
            if not folder:
                return
            folder = folder.rpartition("/")[0]
