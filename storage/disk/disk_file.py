"""One file of this machine's disks: it appends, reads, sends, cuts and syncs (see `files.File`)."""

import os
from collections import deque
from collections.abc import Sequence
from errno import EAGAIN, EIO, EOPNOTSUPP
from typing import Final

from ...protocol.batches import Buffer
from .descriptors import DescribedFile, Descriptors
from .disk_calls import sync_data, write_all
from .rules.disk_errors import failed_read, failed_sync
from .rules.held_folders import HeldFolders

# What was written this recently is still in the page cache, so a read of it does not wait for the disk.
_RECENT_BYTES: Final = 64 * 1024 * 1024
# Bounds the book-keeping for that when appends to many files take turns.
_RECENT_RANGES: Final = 4096

_READ_NOWAIT: Final[int | None] = getattr(os, "RWF_NOWAIT", None)


class DiskFile(DescribedFile):
    """A file of `DiskFiles`. Each call takes the file's descriptor from those that are open, or opens it."""

    __slots__ = (
        "__weakref__",
        "_descriptors",
        "_device",
        "_folders",
        "_recent_appends",
        "is_suspect",
        "recent_position",
        "size",
    )

    def __init__(
        self,
        path: str,
        size: int,
        device: int,
        *,
        descriptors: Descriptors,
        folders: HeldFolders,
        recent_appends: "dict[int, RecentAppends]",
    ) -> None:
        """`recent_appends` are by device: of disks whose file system cannot say that a read would wait."""
        super().__init__(path)
        self._descriptors = descriptors
        self._folders = folders
        self._device = device
        self._recent_appends = recent_appends
        self.size = size
        self.is_suspect = False
        # What is written from here on was appended a short while ago.
        self.recent_position = size

    def append(self, parts: Sequence[Buffer]) -> None:
        self._folders.check(self.path)
        descriptor = self._descriptors.enter(self)
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
            self._descriptors.leave(self)
        recent = self._recent_appends.get(self._device)
        if recent is not None:
            recent.note(self, self.size - position)

    def read_at(self, position: int, size: int) -> bytes:
        descriptor = self._descriptors.enter(self)
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
            self._descriptors.leave(self)

    def read_at_nowait(self, position: int, size: int) -> bytes | bytearray | None:
        if _READ_NOWAIT is None:
            self._note_nowait_unsupported()
        if self._recent_appends.get(self._device) is not None:
            return self.read_at(position, size) if position >= self.recent_position else None
        assert _READ_NOWAIT is not None, "remembered as unsupported above"
        descriptor = self._descriptors.enter(self)
        try:
            buffer = bytearray(size)
            count = os.preadv(descriptor, (buffer,), position, _READ_NOWAIT)
        except OSError as error:
            if error.errno == EOPNOTSUPP:
                self._note_nowait_unsupported()
                return None
            if error.errno == EAGAIN:
                return None
            raise failed_read(self.path, error) from error
        finally:
            self._descriptors.leave(self)
        if count < size:
            del buffer[count:]
        return buffer

    def _note_nowait_unsupported(self) -> None:
        self._recent_appends.setdefault(self._device, RecentAppends())

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
        source = self._descriptors.enter(self)
        try:
            return os.sendfile(descriptor, source, position, size)
        finally:
            self._descriptors.leave(self)

    def _is_cached(self, position: int) -> bool:
        return bool(self.read_at_nowait(position, 1))

    def write_at(self, position: int, data: Buffer) -> None:
        self._folders.check(self.path)
        descriptor = self._descriptors.enter(self)
        try:
            self.size = max(self.size, write_all(descriptor, (data,), position))
        finally:
            self._descriptors.leave(self)

    def truncate(self, size: int) -> None:
        self._folders.check(self.path)
        descriptor = self._descriptors.enter(self)
        try:
            os.ftruncate(descriptor, size)
            self.size = size
            self.recent_position = min(self.recent_position, size)
        finally:
            self._descriptors.leave(self)

    def sync(self) -> None:
        descriptor = self._descriptors.enter(self)
        try:
            sync_data(descriptor)
        except OSError as error:
            raise failed_sync(self.path, error) from error
        finally:
            self._descriptors.leave(self)

    def close(self) -> None:
        self._descriptors.close(self)

    def __del__(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)


class RecentAppends:
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
