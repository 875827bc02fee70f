"""Files and folders, as the rest of the node sees them. Only modules of this package touch the operating system's.

`Files` and `File` say what storage needs of a disk; `DiskFiles` is the real one, `memory_files.MemoryFiles` the one
that loses power. Everything here is synchronous: what may take long runs by `loop.run_in_executor`. Paths are strings
with `/`; one file must always be named by the same string. Failures are `OSError` with the system's `errno`, those of
reads and syncs of kinds of their own: `disk_errors.py` says what each means.

What survives a loss of power: the content of a file up to its last `sync`, and the names in a folder up to the last
`sync_directory` of it. `remove`, `rename` and the creation of a file change a folder.

Nothing changes in a folder whose lock was released, until it is locked again: see `held_folders.py`.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from typing import Protocol
from weakref import WeakValueDictionary

from ...protocol.batches import Buffer
from .descriptors import DEFAULT_MAX_OPEN_FILES, Descriptors
from .disk_calls import allocate_file, read_file, sync_directory, write_file
from .disk_file import DiskFile, RecentAppends
from .disk_lock import DiskLock
from .rules.held_folders import HeldFolders


class File(Protocol):
    """One file. It can be read while anyone holds it, even when it has been renamed or removed since."""

    @property
    def path(self) -> str:
        """Where the file is now: a rename of it or of its folder changes this."""

    @property
    def size(self) -> int: ...

    is_suspect: bool
    """Set by a reader after a read error: the bytes of such a file are read before a response announces them."""

    def append(self, parts: Sequence[Buffer]) -> None:
        """Write all parts at the end, or raise OSError and leave the file as it was.

        When not even that can be had, the error is EIO: the disk cannot be trusted.
        """

    def read_at(self, position: int, size: int) -> bytes:
        """`size` bytes from `position`; fewer only where the file ends."""

    def read_at_nowait(self, position: int, size: int) -> bytes | bytearray | None:
        """The same without waiting for the disk, perhaps fewer bytes; None for no bytes. Only from the loop."""

    def send_nowait(self, descriptor: int, position: int, size: int) -> int | None:
        """How many of those bytes that socket took, without waiting for it or the disk; 0 when it is full. Only from
        the loop.

        None when this file cannot, or not now: then they have to be read, and that tells what is wrong with the disk
        or the peer. ConnectionError when the peer is gone, EOFError when the file ends before `position`.
        """

    def write_at(self, position: int, data: Buffer) -> None: ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """All that was written before this began is on disk when it ends. SyncError: no unsynced byte is safe."""

    def close(self) -> None:
        """Give the descriptor back. The next use of the file opens it again."""


class Lock(Protocol):
    def release(self) -> None:
        """Give up the folder of the file: whatever would change something in it from now on raises ClosedError."""


class Files(Protocol):
    """A disk."""

    def open(self, path: str, *, create: bool = False) -> File:
        """The file at `path`: the same object for everyone who holds it. Raises FileNotFoundError."""

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def list_directory(self, path: str) -> list[str]:
        """Names, sorted."""

    def make_directories(self, path: str) -> None:
        """The folder and those above it; the folders they are made in are synced. No error when it is there."""

    def make_directory(self, path: str) -> None:
        """One folder, in one that exists. Lasts once that is synced."""

    def allocate(self, path: str, size: int) -> None:
        """Make the file `path` of `size` zeros whose room is taken from the disk. After an error no file remains."""

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None: ...

    def rename(self, source: str, target: str) -> None:
        """Also over an existing file. Lasts once the folders it changed are synced."""

    def sync_directory(self, path: str) -> None: ...

    def size(self, path: str) -> int: ...

    def read(self, path: str) -> bytes: ...

    def write(self, path: str, data: bytes) -> None:
        """Make the file `path` with `data`. Until it and its folder are synced, power loss leaves any part of that."""

    def write_atomically(self, path: str, data: bytes) -> None:
        """When this returns, `path` has `data` and keeps it; whatever happens before, it has that or what it had."""

    def lock(self, path: str) -> Lock:
        """Hold the file `path`, made when missing. BlockingIOError when this or another process holds it."""

    def free_bytes(self, path: str) -> int:
        """What may still be written to the disk that has `path`."""

    def total_bytes(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """What `modified_ms` says until the file is next written."""


class DiskFiles:
    """The disks of this machine. At most about `max_open_files` descriptors stay open, the least recently used ones go.

    Where descriptors are short, of this process or of the system, those of idle files are given back first: no call
    fails for want of what this holds in reserve.
    """

    def __init__(self, *, max_open_files: int = DEFAULT_MAX_OPEN_FILES, is_read_only: bool = False) -> None:
        """`is_read_only` opens files of others and of disks that are mounted so: then no write may be asked for."""
        self.descriptors = Descriptors(max_open_files, is_read_only=is_read_only)
        # By path. The mutex of the descriptors guards it too.
        self._known: WeakValueDictionary[str, DiskFile] = WeakValueDictionary()
        self._recent_appends: dict[int, RecentAppends] = {}
        self.folders = HeldFolders()

    @property
    def open_file_count(self) -> int:
        return self.descriptors.open_count

    def open(self, path: str, *, create: bool = False) -> File:
        if create:
            self.folders.check(path)
        with self.descriptors.mutex:
            file = self._known.get(path)
            if file is None:
                descriptor = self.descriptors.acquire(path, os.O_CREAT) if create else None
                status = os.stat(path) if descriptor is None else os.fstat(descriptor)
                if stat.S_ISDIR(status.st_mode):
                    raise IsADirectoryError(f"{path} is a folder")
                file = self._known[path] = DiskFile(
                    path,
                    status.st_size,
                    status.st_dev,
                    descriptors=self.descriptors,
                    folders=self.folders,
                    recent_appends=self._recent_appends,
                )
                if descriptor is not None:
                    self.descriptors.give(file, descriptor)
            return file

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def list_directory(self, path: str) -> list[str]:
        return sorted(self.descriptors.spare(lambda: os.listdir(path)))

    def make_directories(self, path: str) -> None:
        if os.path.isdir(path):
            return
        parent = os.path.dirname(path) or "."
        self.make_directories(parent)
        self.make_directory(path)
        self.sync_directory(parent)

    def make_directory(self, path: str) -> None:
        self.folders.check(path)
        os.mkdir(path, 0o755)

    def allocate(self, path: str, size: int) -> None:
        self.folders.check(path)
        self.descriptors.spare(lambda: allocate_file(path, size))

    def remove(self, path: str) -> None:
        self.folders.check(path)
        with self.descriptors.mutex:
            self._keep_readable(path)
            os.unlink(path)

    def remove_tree(self, path: str) -> None:
        for name in self.list_directory(path):
            child = f"{path}/{name}"
            if os.path.isdir(child) and not os.path.islink(child):
                self.remove_tree(child)
            else:
                self.remove(child)
        self.folders.check(path)
        os.rmdir(path)

    def rename(self, source: str, target: str) -> None:
        self.folders.check(source)
        self.folders.check(target)
        with self.descriptors.mutex:
            # Raises before anything is done about the target.
            if stat.S_ISDIR(os.stat(source).st_mode):
                # Listed before: nothing may fail between the rename and what follows it.
                names = list(self._names_under(source)) if self._known else ()
                os.rename(source, target)
                for name in names:
                    self._follow(f"{source}/{name}", f"{target}/{name}")
            else:
                if target != source:
                    self._keep_readable(target)
                os.rename(source, target)
                self._follow(source, target)

    def sync_directory(self, path: str) -> None:
        self.descriptors.spare(lambda: sync_directory(path))

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def read(self, path: str) -> bytes:
        return self.descriptors.spare(lambda: read_file(path))

    def write(self, path: str, data: bytes) -> None:
        self.folders.check(path)
        self.descriptors.spare(lambda: write_file(path, data, is_synced=False))

    def write_atomically(self, path: str, data: bytes) -> None:
        self.folders.check(path)
        temporary = path + ".tmp"
        self.descriptors.spare(lambda: write_file(temporary, data, is_synced=True))
        self.rename(temporary, path)
        self.sync_directory(os.path.dirname(path) or ".")

    def lock(self, path: str) -> Lock:
        lock = self.descriptors.spare(lambda: DiskLock(path, self.folders))
        self.folders.hold(path)
        return lock

    def free_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def total_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_blocks * status.f_frsize

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self.folders.check(path)
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def _keep_readable(self, path: str) -> None:
        """The name goes away: from now on only the descriptor leads to the file, for as long as anyone holds it."""
        file = self._known.get(path)
        if file is None:
            return
        self.descriptors.keep(file)
        # Not before: an error leaves one file one object.
        del self._known[path]

    def _follow(self, source: str, target: str) -> None:
        file = self._known.pop(source, None)
        if file is not None:
            file.path = target
            self._known[target] = file

    def _names_under(self, path: str) -> Iterator[str]:
        """Of all files below the folder, seen from there."""
        for entry in self.descriptors.spare(lambda: list(os.scandir(path))):
            if entry.is_dir(follow_symlinks=False):
                yield from (f"{entry.name}/{below}" for below in self._names_under(entry.path))
            else:
                yield entry.name
