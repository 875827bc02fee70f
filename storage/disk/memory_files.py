"""A disk in memory that fails the way disks do: the second form of `files.Files`, for tests and simulation.

What the running process sees is kept beside what would be left after a loss of power, and a seeded random generator
decides in `crash` about the difference. Where POSIX promises nothing, nothing is promised here:

- bytes written after the last `sync` of their file may be there, be missing, be torn at any byte, or be there in some
  sectors and zero in others; a `truncate` that was not synced may not have happened;
- of what changed in a folder since its last `sync_directory` (files made, renamed, removed) some first part survives:
  a synced file whose name was not synced is gone;
- what a failed `sync` should have written is never made safe by a later one (the kernel has marked the pages clean).

The same calls and the same random generator give the same disk, byte for byte.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from errno import EEXIST, EIO, ENOENT, ENOSPC, ENOTDIR, ENOTEMPTY, EWOULDBLOCK, EXDEV
from random import Random
from typing import Final

from .files import File, Lock
from .memory_nodes import PROCESS_GONE, Directory, MemoryFile, Node, Operation, disk_error
from .rules.disk_errors import failed_read, failed_sync
from .rules.held_folders import HeldFolders

_UNLIMITED_BYTES: Final = 2**50
_CHANGES: Final[frozenset[Operation]] = frozenset({"create", "truncate", "remove", "rename", "make_directory"})


@dataclass(slots=True, kw_only=True)
class _Fault:
    operation: Operation | None
    under: str
    error: int
    skip: int
    count: int | None


class MemoryFiles:
    """A disk of `capacity_bytes`. `now_ms` stamps what is written.

    With `refuses_late_writes` nothing changes in a folder whose lock was released, as on `files.DiskFiles`; without it
    a test may change what a node has left there.
    """

    def __init__(
        self,
        *,
        capacity_bytes: int | None = None,
        now_ms: Callable[[], int] = lambda: 0,
        refuses_late_writes: bool = False,
    ) -> None:
        self.capacity_bytes = capacity_bytes
        # How often each operation was called, failed calls included.
        self.operation_counts: Counter[Operation] = Counter()
        self._now_ms = now_ms
        self._faults: list[_Fault] = []
        self._root = Directory(None, "")
        self._held_locks: set[_Lock] = set()
        self._folders = HeldFolders()
        self._refuses_late_writes = refuses_late_writes

    # What goes wrong.

    def fail(
        self,
        operation: Operation | None = None,
        *,
        under: str = "",
        error: int = EIO,
        skip: int = 0,
        count: int | None = 1,
    ) -> None:
        """Let `count` calls fail (None: all from then on), after `skip` that do not, on paths that start with `under`.

        Without `operation` every kind of call counts and fails. A write that fails has written a part first.
        """
        self._faults.append(_Fault(operation=operation, under=under, error=error, skip=skip, count=count))

    def end_process(self, *, skip: int) -> None:
        """The process ends in the midst of what it does: it makes `skip` more calls, and the next one up to a part.

        No call is made after that, so unlike one that fails, a `sync` leaves the bytes to later ones. `heal` and `kill`
        or `crash` before another process begins.
        """
        self.fail(error=PROCESS_GONE, skip=skip, count=None)

    def heal(self) -> None:
        """No more failures."""
        self._faults.clear()

    @property
    def is_to_fail(self) -> bool:
        """Whether calls are still to fail."""
        return any(fault.count != 0 for fault in self._faults)

    def kill(self) -> None:
        """The process is gone, not the power: everything written is there, files and locks of the process are dead."""
        self._renew(None)

    def crash(self, random: Random) -> None:
        """The power fails and comes back. What a process did not sync is there or not as `random` decides."""
        self._renew(random)

    def flip_bit(self, path: str, position: int, bit: int) -> None:
        """The disk returns something else than was written."""
        self._file(path).data[position] ^= 1 << bit

    def damage(self, path: str, data: bytes | None) -> None:
        """The disk has `data` in the place of what was written; None: it has lost the file."""
        file = self._file(path)
        if data is not None:
            file.damage(data)
        elif file.parent is not None:
            file.parent.change(file.name, None)

    def look(self, path: str) -> bytearray | None:
        """The file's bytes as a process would read them now, for judges: not counted as a call, and it cannot fail."""
        node = self._find(path)
        return None if node is None or isinstance(node, Directory) else node.data

    def look_into(self, path: str) -> list[str]:
        """The names in a folder, likewise; none when it is not there."""
        node = self._find(path)
        return sorted(node.entries) if isinstance(node, Directory) else []

    def is_safe(self, path: str, size: int, *, is_folder_renamed: bool = False) -> bool:
        """Whether a loss of power would leave a file and its first `size` bytes as they are, likewise. What a failed
        sync should have written counts as safe: its state is unknown. With `is_folder_renamed` the file's folder may
        get back a name that it had before."""
        node = self._find(path)
        return (
            isinstance(node, MemoryFile)
            and node.is_safe(size)
            and node.parent is not None
            and node.parent.keeps(node, is_renamed=is_folder_renamed)
        )

    # A disk.

    def open(self, path: str, *, create: bool = False) -> File:
        directory, name = self._parent(path)
        node = directory.entries.get(name)
        if node is None and create:
            self.note("create", path)
            if not self.room_for(1):
                raise disk_error(ENOSPC, path)
            node = MemoryFile(self, directory, name)
            directory.change(name, node)
        self.note("open", path)
        return self._file(path)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_directory(self, path: str) -> bool:
        return isinstance(self._find(path), Directory)

    def list_directory(self, path: str) -> list[str]:
        self.note("list", path)
        return sorted(self._directory(path).entries)

    def make_directories(self, path: str) -> None:
        if self.is_directory(path):
            return
        parent_path = path.rpartition("/")[0]
        if parent_path:
            self.make_directories(parent_path)
        self.make_directory(path)
        self.sync_directory(parent_path)

    def make_directory(self, path: str) -> None:
        self.note("make_directory", path)
        parent, name = self._parent(path)
        if name in parent.entries:
            raise disk_error(EEXIST, path)
        parent.change(name, Directory(parent, name))

    def remove(self, path: str) -> None:
        self.note("remove", path)
        file = self._file(path)
        assert file.parent is not None, "found by its name"
        file.parent.change(file.name, None)

    def remove_tree(self, path: str) -> None:
        directory = self._directory(path)
        for name in sorted(directory.entries):
            child = f"{path}/{name}"
            if self.is_directory(child):
                self.remove_tree(child)
            else:
                self.remove(child)
        self.note("remove", path)
        assert directory.parent is not None, "the root cannot be removed"
        directory.parent.change(directory.name, None)

    def rename(self, source: str, target: str) -> None:
        self.note("rename", source)
        node = self._find(source)
        if node is None:
            raise disk_error(ENOENT, source)
        directory, name = self._parent(target)
        if node.parent is not directory:
            raise disk_error(EXDEV, target)
        replaced = directory.entries.get(name)
        if replaced is node:
            return
        if isinstance(replaced, Directory) and replaced.entries:
            raise disk_error(ENOTEMPTY, target)
        directory.rename(node, name)

    def sync_directory(self, path: str) -> None:
        try:
            self.note("sync_directory", path)
        except OSError as error:
            raise failed_sync(path, error) from error
        self._directory(path).unsynced.clear()

    def size(self, path: str) -> int:
        return len(self._file(path).data)

    def read(self, path: str) -> bytes:
        try:
            self.note("read", path)
        except OSError as error:
            raise failed_read(path, error) from error
        return bytes(self._file(path).data)

    def write(self, path: str, data: bytes) -> None:
        file = self.open(path, create=True)
        file.truncate(0)
        file.append((data,))

    def allocate(self, path: str, size: int) -> None:
        try:
            self.write(path, bytes(size))
        except OSError:
            if self.exists(path):
                self.remove(path)
            raise

    def write_atomically(self, path: str, data: bytes) -> None:
        self.write(path + ".tmp", data)
        self.open(path + ".tmp").sync()
        self.rename(path + ".tmp", path)
        self.sync_directory(path.rpartition("/")[0])

    def lock(self, path: str) -> Lock:
        self.note("lock", path)
        self.open(path, create=True)
        if any(held.path == path for held in self._held_locks):
            raise disk_error(EWOULDBLOCK, path)
        lock = _Lock(self._held_locks, self._folders, path)
        self._held_locks.add(lock)
        self._folders.hold(path)
        return lock

    def free_bytes(self, path: str) -> int:
        return max(0, self.total_bytes(path) - self._root.used_bytes())

    def total_bytes(self, path: str) -> int:
        self._directory(path)
        return _UNLIMITED_BYTES if self.capacity_bytes is None else self.capacity_bytes

    def modified_ms(self, path: str) -> int:
        return self._file(path).modified_ms

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._file(path).modified_ms = modified_ms

    # For the files.

    def note(self, operation: Operation, path: str) -> None:
        """Count the call, and raise OSError when it is to fail."""
        self.operation_counts[operation] += 1
        if operation in _CHANGES:
            self.check_held(path)
        for fault in self._faults:
            if fault.operation in (None, operation) and path.startswith(fault.under):
                if fault.skip:
                    fault.skip -= 1
                elif fault.count != 0:
                    if fault.count is not None:
                        fault.count -= 1
                    raise disk_error(fault.error, path)

    def check_held(self, path: str) -> None:
        """Raises ClosedError when nothing changes at `path` any more."""
        if self._refuses_late_writes:
            self._folders.check(path)

    def room_for(self, size: int) -> int:
        """How many of `size` more bytes fit."""
        if self.capacity_bytes is None:
            return size
        return min(size, max(0, self.capacity_bytes - self._root.used_bytes()))

    def now_ms(self) -> int:
        return self._now_ms()

    def _renew(self, random: Random | None) -> None:
        self._held_locks.clear()
        self._folders = HeldFolders()
        self._root = self._root.renewed(random, None)

    def _find(self, path: str) -> "Node | None":
        node: Node = self._root
        for name in path.split("/"):
            if not name:
                continue
            if not isinstance(node, Directory):
                return None
            child = node.entries.get(name)
            if child is None:
                return None
            node = child
        return node

    def _file(self, path: str) -> "MemoryFile":
        node = self._find(path)
        if node is None:
            raise disk_error(ENOENT, path)
        if isinstance(node, Directory):
            raise IsADirectoryError(f"{path} is a folder")
        return node

    def _directory(self, path: str) -> "Directory":
        node = self._find(path)
        if node is None:
            raise disk_error(ENOENT, path)
        if not isinstance(node, Directory):
            raise disk_error(ENOTDIR, path)
        return node

    def _parent(self, path: str) -> "tuple[Directory, str]":
        parent, _, name = path.rpartition("/")
        return self._directory(parent), name


class _Lock:
    __slots__ = ("_folders", "_held", "path")

    def __init__(self, held: "set[_Lock]", folders: HeldFolders, path: str) -> None:
        self._held = held
        self._folders = folders
        self.path = path

    def release(self) -> None:
        if self in self._held:
            self._held.remove(self)
            self._folders.give_up(self.path)
