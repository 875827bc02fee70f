"""Tar archives through `Files`: written under another name until they are whole, and read from the front."""

import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import IO, Final, cast

from ...protocol.errors import CorruptData
from ..disk.files import File, Files

PARTIAL: Final = ".partial"


class _Sink:
    def __init__(self, file: File) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        self._file.append((data,))
        return len(data)


class HashedRange:
    """The first `size` bytes of a file, to be read once; `sha256` is of what was read."""

    def __init__(self, file: File, size: int) -> None:
        self._file = file
        self._size = size
        self._position = 0
        self.sha256 = sha256()

    def read(self, count: int = -1) -> bytes:
        left = self._size - self._position
        data = self._file.read_at(self._position, left if count < 0 else min(count, left))
        self._position += len(data)
        self.sha256.update(data)
        return data


class ArchiveWriter:
    def __init__(self, tar: tarfile.TarFile, created_ms: int) -> None:
        self._tar = tar
        self._created_s = created_ms // 1000

    def add(self, name: str, size: int, content: HashedRange) -> None:
        """OSError, also when there are fewer bytes."""
        member = tarfile.TarInfo(name)
        member.size, member.mtime, member.mode = size, self._created_s, 0o644
        self._tar.addfile(member, cast("IO[bytes]", content))

    def add_bytes(self, name: str, data: bytes) -> None:
        self.add(name, len(data), cast("HashedRange", _Bytes(data)))


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, count: int) -> bytes:
        data, self._data = self._data[:count], self._data[count:]
        return data


@contextmanager
def new_archive(files: Files, path: str, *, created_ms: int, is_compressed: bool) -> Iterator[ArchiveWriter]:
    """The archive is at `path` when this ends, synced; after an error nothing is. OSError."""
    partial = path + PARTIAL
    if files.exists(partial):
        files.remove(partial)
    file = files.open(partial, create=True)
    try:
        with tarfile.open(fileobj=cast("IO[bytes]", _Sink(file)), mode="w|gz" if is_compressed else "w|") as tar:
            yield ArchiveWriter(tar, created_ms)
        file.sync()
        file.close()
        files.rename(partial, path)
        files.sync_directory(path.rpartition("/")[0] or "/")
    except BaseException:
        file.close()
        if files.exists(partial):
            files.remove(partial)
        raise


class ArchiveMember:
    """A file in an archive, read from its beginning to its end."""

    def __init__(self, name: str, size: int, content: IO[bytes]) -> None:
        self.name = name
        self.size = size
        self._content = content
        self.sha256 = sha256()

    def read(self, size: int) -> bytes:
        """Exactly so many bytes. CorruptData where the archive is cut off or damaged."""
        parts = []
        while size:
            try:
                data = self._content.read(size)
            except (tarfile.TarError, EOFError, OSError, ValueError) as error:
                raise CorruptData(f"{self.name} in the archive cannot be read: {error}") from error
            if not data:
                raise CorruptData(f"{self.name} in the archive is cut off")
            parts.append(data)
            size -= len(data)
        whole = b"".join(parts)
        self.sha256.update(whole)
        return whole


def archive_members(files: Files, path: str) -> Iterator[ArchiveMember]:
    """Each has to be read before the next. CorruptData, OSError."""
    file = files.open(path)
    source = HashedRange(file, file.size)
    try:
        with tarfile.open(fileobj=cast("IO[bytes]", source), mode="r|*") as tar:
            for member in tar:
                content = tar.extractfile(member) if member.isfile() else None
                if content is None:
                    raise CorruptData(f"{member.name} in {path} is no file")
                yield ArchiveMember(member.name, member.size, content)
    except (tarfile.TarError, EOFError) as error:
        raise CorruptData(f"{path} is no archive, or damaged: {error}") from error
    finally:
        file.close()
