"""A file system of its own that is small enough to be really full. Needs root: it is mounted.

A full disk as ordered (`orders.full_disk`) refuses each call as a whole; a real one takes a part of a write first, runs
out of room for the names in a folder, and allocates late.
"""

import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

from ...client import clock
from ...local.errors import ClusterError

Kind = Literal["ext4", "tmpfs"]
_CHUNK: Final = b"\1" * (256 * 1024)
_UNMOUNT_TIMEOUT_S: Final = 20.0


class SmallDiskUnavailableError(ClusterError):
    """A sentence that says why there can be no such disk here."""


class SmallDisk:
    """Mounted at `path` while the context lasts."""

    def __init__(self, folder: Path, *, size_bytes: int, kind: Kind) -> None:
        self.path = folder / kind
        self._image = folder / f"{kind}.img"
        self._ballast = self.path / "ballast"
        self._size_bytes = size_bytes
        self._kind = kind

    def __enter__(self) -> Self:
        """Raises SmallDiskUnavailableError."""
        if os.geteuid() != 0:
            raise SmallDiskUnavailableError("a small disk of its own can only be mounted by root")
        self.path.mkdir(parents=True)
        if self._kind == "tmpfs":
            self._run("mount", "-t", "tmpfs", "-o", f"size={self._size_bytes}", "penstock", str(self.path))
        else:
            with self._image.open("wb") as image:
                image.truncate(self._size_bytes)
            # No blocks kept for root, who this is.
            self._run("mkfs.ext4", "-q", "-m", "0", str(self._image))
            self._run("mount", "-o", "loop", str(self._image), str(self.path))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A process that was killed lets go of its files a moment later.
        if not clock.wait_until(self._is_unmounted, timeout_s=_UNMOUNT_TIMEOUT_S, interval_s=0.1):
            raise ClusterError(f"{self.path} is still in use and stays mounted")
        self._image.unlink(missing_ok=True)

    @property
    def free_bytes(self) -> int:
        status = os.statvfs(self.path)
        return status.f_bavail * status.f_frsize

    def fill(self) -> None:
        """Take all the room there is, to the last block."""
        size = len(_CHUNK)
        with self._ballast.open("ab", buffering=0) as ballast:
            while size:
                try:
                    ballast.write(_CHUNK[:size])
                except OSError:
                    size //= 2

    def empty(self) -> None:
        """Give back what `fill` took."""
        self._ballast.unlink(missing_ok=True)

    def make_read_only(self) -> None:
        """As ext4 makes itself read-only when it finds an error, under files that are open for writing.

        What was not written back is lost, as by a loss of power. Raises SmallDiskUnavailableError.
        """
        assert self._kind == "ext4", "other file systems refuse while files are open"
        self._run("mount", "-o", "remount,abort", str(self.path))

    def repair(self) -> None:
        """Check a disk that is read-only, and make it writable again, once no process uses it. Raises ClusterError."""
        if not clock.wait_until(self._is_unmounted, timeout_s=_UNMOUNT_TIMEOUT_S, interval_s=0.1):
            raise ClusterError(f"{self.path} is still in use and stays mounted")
        # Another mount namespace (`ip netns exec` makes one) may have it mounted as well, and mounting the same file
        # again would find the file system that failed.
        copy = self._image.with_suffix(".copy")
        shutil.copyfile(self._image, copy)
        copy.replace(self._image)
        # 1 of e2fsck is "errors corrected".
        checked = subprocess.run(("e2fsck", "-p", str(self._image)), capture_output=True, text=True, check=False)
        if checked.returncode > 1:
            raise ClusterError(
                f"{self._image} could not be repaired: {checked.stdout.strip()} {checked.stderr.strip()}"
            )
        self._run("mount", "-o", "loop", str(self._image), str(self.path))

    def _is_unmounted(self) -> bool:
        return subprocess.run(["umount", str(self.path)], capture_output=True, check=False).returncode == 0

    def _run(self, *command: str) -> None:
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise SmallDiskUnavailableError(f"{command[0]} is not installed (Debian: e2fsprogs, mount)") from None
        if done.returncode != 0:
            raise SmallDiskUnavailableError(f"no {self._kind} can be mounted here: {done.stderr.strip()}")
