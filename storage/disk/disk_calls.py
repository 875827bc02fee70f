"""The system calls of `files.DiskFiles` and of sockets, each as one step: a system call may do half of it only."""

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from errno import ENOSYS
from typing import Any, Final

from ...protocol.batches import Buffer
from .rules.disk_errors import failed_read, failed_sync

# The most buffers that one `writev` takes.
_IOV_MAX: Final = 1024
# Of a file that grows while it is read.
_READ_BYTES: Final = 64 * 1024


def read_file(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(descriptor, os.fstat(descriptor).st_size)
        while more := os.read(descriptor, _READ_BYTES):
            data += more
        return data
    except OSError as error:
        raise failed_read(path, error) from error
    finally:
        os.close(descriptor)


def write_file(path: str, data: bytes, *, is_synced: bool) -> None:
    """Make the file `path` with `data`, or leave any part of it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        write_all(descriptor, (data,), 0)
        if is_synced:
            _sync(descriptor, path)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, parts: Sequence[Buffer], position: int) -> int:
    """Write the parts one after the other from `position`; the position after them."""
    written = os.pwritev(descriptor, parts[:_IOV_MAX], position)
    end = position + sum(map(len, parts))
    if position + written == end:
        return end
    # A disk that fills up takes a part of it first and says why at the next try.
    rest = memoryview(b"".join(parts))[written:]
    while rest:
        count = os.pwrite(descriptor, rest, end - len(rest))
        rest = rest[count:]
    return end


def send_nowait(descriptor: int, data: Buffer) -> int:
    """How much of `data` the socket took; 0 when that would wait. OSError of the connection."""
    try:
        return os.write(descriptor, data)
    except BlockingIOError:
        return 0


def allocate_file(path: str, size: int) -> None:
    """Make the file `path` of `size` zeros, whose room on the disk is allocated; without room no file remains."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        allocate: Callable[[int, int, int], None] | None = getattr(os, "posix_fallocate", None)
        if allocate is None:
            write_all(descriptor, (bytes(size),), 0)
        else:
            allocate(descriptor, 0, size)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(descriptor)


def sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _sync(descriptor, path)
    finally:
        os.close(descriptor)


def _sync(descriptor: int, path: str) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise failed_sync(path, error) from error


def _full_sync_of_platform() -> Callable[[int], Any]:
    full_sync: int | None = getattr(fcntl, "F_FULLFSYNC", None)
    if full_sync is not None:
        # macOS: fsync leaves the data in the drive's own cache.
        command = full_sync
        return lambda descriptor: fcntl.fcntl(descriptor, command)
    data_sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)
    return data_sync


sync_data: Final = _full_sync_of_platform()


@contextmanager
def nameless_file(data: bytes) -> Iterator[str]:
    """A path that reads `data` and was never on a disk: for libraries that take secrets only as files.

    Raises OSError where the system has no such files: only Linux has.
    """
    create: Callable[[str], int] | None = getattr(os, "memfd_create", None)
    if create is None:
        raise OSError(ENOSYS, "this system can only read it from a file")
    descriptor = create("nameless")
    try:
        os.write(descriptor, data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
