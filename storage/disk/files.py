"""Files and folders, as the rest of the node sees them. The only module that touches the operating system's.

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
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from errno import EAGAIN, EIO, EOPNOTSUPP
from threading import RLock as Mutex
from typing import Final, Protocol, TypeVar
from weakref import WeakValueDictionary

from ...protocol.batches import Buffer
from .disk_calls import allocate_file, sync_data, sync_directory, write_all, write_file
from .disk_lock import DiskLock
from .rules.disk_errors import DESCRIPTORS_SHORT, failed_read, failed_sync
from .rules.held_folders import HeldFolders

T = TypeVar("T")

# More descriptors than this gain nothing: opening a file again costs microseconds. The soft limit of a process is often
# 1,024, and connections need descriptors too.
DEFAULT_MAX_OPEN_FILES: Final = 512

# What was written this recently is still in the page cache, so a read of it does not wait for the disk.
_RECENT_BYTES: Final = 64 * 1024 * 1024
# Bounds the book-keeping for that when appends to many files take turns.
_RECENT_RANGES: Final = 4096

_READ_NOWAIT: Final[int | None] = getattr(os, "RWF_NOWAIT", None)


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


class DiskFiles:
    """The disks of this machine. At most about `max_open_files` descriptors stay open, the least recently used ones go.

    Where descriptors are short, of this process or of the system, those of idle files are given back first: no call
    fails for want of what this holds in reserve.

    One lock guards the table of descriptors, because reads and syncs come from the executor's threads: a descriptor is
    closed only while no call uses it, or its number could already mean another file.
    """

    def __init__(self, *, max_open_files: int = DEFAULT_MAX_OPEN_FILES) -> None:
        self._max_open_files = max_open_files
        self._mutex = Mutex()
        self._known: WeakValueDictionary[str, DiskFile] = WeakValueDictionary()
        self._open: OrderedDict[DiskFile, None] = OrderedDict()
        # Disks whose file system cannot say that a read would wait (overlay, tmpfs).
        self._recent_by_device: dict[int, _RecentAppends] = {}
        self.folders = HeldFolders()

    @property
    def open_file_count(self) -> int:
        return len(self._open)

    def open(self, path: str, *, create: bool = False) -> File:
        if create:
            self.folders.check(path)
        with self._mutex:
            file = self._known.get(path)
            if file is None:
                descriptor = self._acquire(path, os.O_CREAT) if create else None
                status = os.stat(path) if descriptor is None else os.fstat(descriptor)
                if stat.S_ISDIR(status.st_mode):
                    raise IsADirectoryError(f"{path} is a folder")
                file = self._known[path] = DiskFile(self, path, status.st_size, status.st_dev)
                if descriptor is not None:
                    file.descriptor = descriptor
                    self._open[file] = None
            return file

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def list_directory(self, path: str) -> list[str]:
        return sorted(self._spared(lambda: os.listdir(path)))

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
        self._spared(lambda: allocate_file(path, size))

    def remove(self, path: str) -> None:
        self.folders.check(path)
        with self._mutex:
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
        with self._mutex:
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
        self._spared(lambda: sync_directory(path))

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def read(self, path: str) -> bytes:
        with self._spared(lambda: open(path, "rb")) as file:
            try:
                return file.read()
            except OSError as error:
                raise failed_read(path, error) from error

    def write(self, path: str, data: bytes) -> None:
        self.folders.check(path)
        self._spared(lambda: write_file(path, data, is_synced=False))

    def write_atomically(self, path: str, data: bytes) -> None:
        self.folders.check(path)
        temporary = path + ".tmp"
        self._spared(lambda: write_file(temporary, data, is_synced=True))
        self.rename(temporary, path)
        self.sync_directory(os.path.dirname(path) or ".")

    def lock(self, path: str) -> Lock:
        lock = self._spared(lambda: DiskLock(path, self.folders))
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

    def enter(self, file: "DiskFile") -> int:
        """A descriptor that stays valid until `leave`."""
        with self._mutex:
            descriptor = file.descriptor
            if descriptor is None:
                descriptor = file.descriptor = self._acquire(file.path)
                self._open[file] = None
            elif not file.is_removed:
                self._open.move_to_end(file)
            file.user_count += 1
        return descriptor

    def leave(self, file: "DiskFile") -> None:
        with self._mutex:
            file.user_count -= 1

    def close_file(self, file: "DiskFile") -> None:
        with self._mutex:
            # One that is in use, or that only its descriptor still leads to, closes when its last holder drops it.
            if file.descriptor is not None and not file.is_removed:
                if file.user_count == 0:
                    os.close(file.descriptor)
                    file.descriptor = None
                    del self._open[file]
                else:
                    self._open.move_to_end(file, last=False)

    def recent_appends(self, device: int) -> "_RecentAppends | None":
        """Set for a disk where reads cannot be tried without waiting."""
        return self._recent_by_device.get(device)

    def remember_nowait_unsupported(self, device: int) -> None:
        self._recent_by_device.setdefault(device, _RecentAppends())

    def _acquire(self, path: str, flags: int = 0) -> int:
        """Opens it. The mutex is held."""
        if len(self._open) >= self._max_open_files:
            self._close_least_recent()
        while True:
            try:
                return os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o644)
            except OSError as error:
                if error.errno not in DESCRIPTORS_SHORT or not self._close_least_recent():
                    raise

    def _spared(self, call: Callable[[], T]) -> T:
        """What `call` returns, which takes a descriptor of its own before it does anything else."""
        while True:
            try:
                return call()
            except OSError as error:
                if error.errno not in DESCRIPTORS_SHORT:
                    raise
                with self._mutex:
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

    def _keep_readable(self, path: str) -> None:
        """The name goes away: from now on only the descriptor leads to the file, for as long as anyone holds it."""
        file = self._known.get(path)
        if file is None:
            return
        if file.descriptor is None:
            file.descriptor = self._acquire(path)
        # Not before: an error leaves one file one object.
        del self._known[path]
        self._open.pop(file, None)
        file.is_removed = True

    def _follow(self, source: str, target: str) -> None:
        file = self._known.pop(source, None)
        if file is not None:
            file.path = target
            self._known[target] = file

    def _names_under(self, path: str) -> Iterator[str]:
        """Of all files below the folder, seen from there."""
        for entry in self._spared(lambda: list(os.scandir(path))):
            if entry.is_dir(follow_symlinks=False):
                yield from (f"{entry.name}/{below}" for below in self._names_under(entry.path))
            else:
                yield entry.name


class DiskFile:
    """A file of `DiskFiles`, which opens and closes its descriptor."""

    __slots__ = (
        "__weakref__",
        "_device",
        "_files",
        "descriptor",
        "is_removed",
        "is_suspect",
        "path",
        "recent_position",
        "size",
        "user_count",
    )

    def __init__(self, files: DiskFiles, path: str, size: int, device: int) -> None:
        self._files = files
        self._device = device
        self.path = path
        self.size = size
        self.descriptor: int | None = None
        self.user_count = 0
        self.is_removed = False
        self.is_suspect = False
        # What is written from here on was appended a short while ago.
        self.recent_position = size

    def append(self, parts: Sequence[Buffer]) -> None:
        files = self._files
        files.folders.check(self.path)
        descriptor = files.enter(self)
        try:
            position = self.size
            try:
                self.size = write_all(descriptor, parts, position)
            except OSError:
                try:
                    os.ftruncate(descriptor, position)
                except OSError as error:
                    raise OSError(EIO, f"{self.path}: a failed append could not be undone: {error}") from error
                raise
        finally:
            files.leave(self)
        recent = files.recent_appends(self._device)
        if recent is not None:
            recent.note(self, self.size - position)

    def read_at(self, position: int, size: int) -> bytes:
        files = self._files
        descriptor = files.enter(self)
        try:
            data = os.pread(descriptor, size, position)
            while len(data) < size:
                more = os.pread(descriptor, size - len(data), position + len(data))
                if not more:
                    break
                data += more
            return data
        except OSError as error:
            raise failed_read(self.path, error) from error
        finally:
            files.leave(self)

    def read_at_nowait(self, position: int, size: int) -> bytes | bytearray | None:
        files = self._files
        if _READ_NOWAIT is None:
            files.remember_nowait_unsupported(self._device)
        if files.recent_appends(self._device) is not None:
            return self.read_at(position, size) if position >= self.recent_position else None
        assert _READ_NOWAIT is not None, "remembered as unsupported above"
        descriptor = files.enter(self)
        try:
            buffer = bytearray(size)
            count = os.preadv(descriptor, (buffer,), position, _READ_NOWAIT)
        except OSError as error:
            if error.errno == EOPNOTSUPP:
                files.remember_nowait_unsupported(self._device)
                return None
            if error.errno == EAGAIN:
                return None
            raise failed_read(self.path, error) from error
        finally:
            files.leave(self)
        if count < size:
            del buffer[count:]
        return buffer

    def send_nowait(self, descriptor: int, position: int, size: int) -> int | None:
        # There is no asking sendfile not to wait for the disk. Where both ends of a range are in the page cache, so is
        # what lies between, or nearly always: it came in by the same append or the same read.
        try:
            if not self._is_cached(position) or not self._is_cached(position + size - 1):
                return None
            count = self._sendfile(descriptor, position, size)
        except BlockingIOError:
            return 0
        except ConnectionError:
            raise
        except OSError:
            # A file system without it, a disk that fails, or a network that lost the peer: reading tells which.
            return None
        if count == 0:
            raise EOFError(f"{self.path} ends before {position}")
        return count

    def _sendfile(self, descriptor: int, position: int, size: int) -> int:
        source = self._files.enter(self)
        try:
            return os.sendfile(descriptor, source, position, size)
        finally:
            self._files.leave(self)

    def _is_cached(self, position: int) -> bool:
        return bool(self.read_at_nowait(position, 1))

    def write_at(self, position: int, data: Buffer) -> None:
        self._files.folders.check(self.path)
        descriptor = self._files.enter(self)
        try:
            self.size = max(self.size, write_all(descriptor, (data,), position))
        finally:
            self._files.leave(self)

    def truncate(self, size: int) -> None:
        self._files.folders.check(self.path)
        descriptor = self._files.enter(self)
        try:
            os.ftruncate(descriptor, size)
            self.size = size
            self.recent_position = min(self.recent_position, size)
        finally:
            self._files.leave(self)

    def sync(self) -> None:
        descriptor = self._files.enter(self)
        try:
            sync_data(descriptor)
        except OSError as error:
            raise failed_sync(self.path, error) from error
        finally:
            self._files.leave(self)

    def close(self) -> None:
        self._files.close_file(self)

    def __del__(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)


class _RecentAppends:
    """Which ends of which files make up the last bytes written to a disk."""

    __slots__ = ("_ranges", "_total_bytes")

    def __init__(self) -> None:
        # (file, end, size), oldest first. A file held here a little longer costs nothing but its name.
        self._ranges: deque[tuple[DiskFile, int, int]] = deque()
        self._total_bytes = 0

    def note(self, file: DiskFile, size: int) -> None:
        ranges = self._ranges
        self._total_bytes += size
        if ranges and ranges[-1][0] is file and ranges[-1][1] + size == file.size:
            size += ranges.pop()[2]
        ranges.append((file, file.size, size))
        while self._total_bytes > _RECENT_BYTES or len(ranges) > _RECENT_RANGES:
            oldest, end, oldest_size = ranges.popleft()
            self._total_bytes -= oldest_size
            oldest.recent_position = max(oldest.recent_position, min(end, oldest.size))
