"""How much may still be appended to the logs of one directory: all of the disk but a reserve.

Room that logs leave is for what must go on when they cannot: the metadata journal, checkpoints, indexes, snapshots.
"""

import logging
from typing import Final

from .files import Files

logger = logging.getLogger(__name__)

DEFAULT_RESERVE_BYTES: Final = 64 * 1024 * 1024
"""Three times what the metadata journal grows by between snapshots, as configured by default."""
DEFAULT_RESERVE_SHARE: Final = 10
"""But no more than this part of a disk: a small one is to be of use, too."""
_LOOKS_PER_RESERVE: Final = 4
_LOOK_BYTES_MIN: Final = 64 * 1024


class DiskRoom:
    """Appends ask before they write. The disk is looked at after every quarter of the reserve, not each time."""

    __slots__ = ("_files", "_has_room", "_left", "_look_bytes", "_path", "_reserve_bytes")

    def __init__(self, files: Files, path: str, reserve_bytes: int) -> None:
        """`reserve_bytes` below 0 is the default for the size of the disk."""
        self._files = files
        self._path = path
        if reserve_bytes < 0:
            reserve_bytes = min(DEFAULT_RESERVE_BYTES, files.total_bytes(path) // DEFAULT_RESERVE_SHARE)
        self._reserve_bytes = reserve_bytes
        self._look_bytes = max(reserve_bytes // _LOOKS_PER_RESERVE, _LOOK_BYTES_MIN)
        self._left = 0
        self._has_room = True

    def take(self, size_bytes: int) -> bool:
        """Whether so much may be appended; it counts as used then."""
        left = self._left - size_bytes
        if left >= 0:
            self._left = left
            return True
        return self._reserve_bytes == 0 or self._look(size_bytes)

    def has_free_bytes(self) -> bool:
        """Whether the disk has more than the reserve, looked at now. Raises OSError."""
        return self._reserve_bytes == 0 or self._files.free_bytes(self._path) > self._reserve_bytes

    def _look(self, size_bytes: int) -> bool:
        free_bytes = self._files.free_bytes(self._path)
        free = free_bytes - self._reserve_bytes
        has_room = free >= size_bytes
        if has_room:
            self._left = min(free, max(self._look_bytes, size_bytes)) - size_bytes
        if has_room is not self._has_room:
            self._has_room = has_room
            if has_room:
                logger.warning("Disk space is available again: path=%s free_bytes=%d", self._path, free_bytes)
            else:
                logger.error(
                    "No disk space left for records: path=%s free_bytes=%d log.dir.reserve.bytes=%d",
                    self._path,
                    free_bytes,
                    self._reserve_bytes,
                )
        return has_room
