"""The rules of `storage.files` that others build on, held by the real disk."""

import errno
import gc
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from penstock.storage.disk.disk_file import DiskFile
from penstock.storage.disk.files import DiskFiles


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path)


def test_append_writes_all_parts_in_order(folder: str) -> None:
    file = DiskFiles().open(f"{folder}/a", create=True)
    file.append((b"ab", memoryview(b"cd"), bytearray(b"e")))
    file.append([b"x"] * 3000)
    assert file.size == 3005
    assert file.read_at(0, 6) == b"abcdex"
    assert file.read_at(3000, 100) == b"xxxxx", "short only at the end"
    assert (Path(folder) / "a").read_bytes() == b"abcde" + b"x" * 3000


def test_opening_a_missing_file_is_an_error_unless_it_is_to_be_created(folder: str) -> None:
    with pytest.raises(FileNotFoundError):
        DiskFiles().open(f"{folder}/a")


def test_failed_append_leaves_the_file_as_it_was(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = DiskFiles().open(f"{folder}/a", create=True)
    file.append((b"kept",))
    write = os.pwrite

    def write_some(descriptor: int, parts: list[bytes], position: int) -> int:
        return write(descriptor, parts[0][:2], position)

    def refuse(descriptor: int, data: bytes, position: int) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "pwritev", write_some)
    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(OSError, match="no space"):
        file.append((b"lost",))
    assert (Path(folder) / "a").read_bytes() == b"kept"
    monkeypatch.undo()
    file.append((b"!",))
    assert file.read_at(0, 10) == b"kept!"


def test_files_beyond_the_cap_close_and_come_back_unseen(folder: str) -> None:
    files = DiskFiles(max_open_files=3)
    opened = [files.open(f"{folder}/{number}", create=True) for number in range(10)]
    for _ in range(2):
        for number, file in enumerate(opened):
            file.append((b"%d" % number,))
            assert files.open_file_count <= 3
    assert [file.read_at(0, 9) for file in opened] == [b"%d%d" % (number, number) for number in range(10)]


def test_descriptor_in_use_is_never_closed_by_the_cap(folder: str) -> None:
    files = DiskFiles(max_open_files=1)
    opened = [files.open(f"{folder}/{number}", create=True) for number in range(8)]
    for number, file in enumerate(opened):
        file.append((b"%d" % number * 50_000,))
    with ThreadPoolExecutor(4) as executor:
        for number, data in executor.map(lambda n: (n, opened[n].read_at(0, 50_000)), [*range(8)] * 100):
            assert data == b"%d" % number * 50_000
    assert files.open_file_count <= 4


def test_one_file_is_one_object(folder: str) -> None:
    files = DiskFiles()
    file = files.open(f"{folder}/a", create=True)
    assert files.open(f"{folder}/a") is file
    file.close()
    file.append((b"after close",))
    assert files.open(f"{folder}/a").size == 11


@pytest.mark.parametrize("is_closed", [False, True])
def test_removed_file_stays_readable_for_its_holders(folder: str, is_closed: bool) -> None:
    files = DiskFiles()
    file = files.open(f"{folder}/a", create=True)
    file.append((b"old",))
    if is_closed:
        file.close()
    files.remove(f"{folder}/a")
    file.close()
    assert not files.exists(f"{folder}/a")
    assert file.read_at(0, 3) == b"old"
    newer = files.open(f"{folder}/a", create=True)
    assert (newer.size, file.read_at_nowait(0, 3)) == (0, b"old")
    descriptors = len(os.listdir("/proc/self/fd"))
    del file
    assert len(os.listdir("/proc/self/fd")) == descriptors - 1


def test_file_follows_renames_of_itself_and_its_folder(folder: str) -> None:
    files = DiskFiles()
    files.make_directories(f"{folder}/topic-0/deeper")
    file = files.open(f"{folder}/topic-0/deeper/a", create=True)
    file.append((b"1",))
    file.close()
    files.rename(f"{folder}/topic-0/deeper/a", f"{folder}/topic-0/deeper/b")
    assert file.path == f"{folder}/topic-0/deeper/b"
    files.rename(f"{folder}/topic-0", f"{folder}/topic-0-delete")
    file.append((b"2",))
    assert file.path == f"{folder}/topic-0-delete/deeper/b"
    assert files.read(file.path) == b"12"
    files.remove_tree(f"{folder}/topic-0-delete")
    assert files.list_directory(folder) == []
    assert file.read_at(0, 2) == b"12"


def test_file_that_another_is_renamed_over_stays_readable(folder: str) -> None:
    files = DiskFiles()
    old = files.open(f"{folder}/a", create=True)
    old.append((b"old",))
    files.write_atomically(f"{folder}/a", b"new")
    assert old.read_at(0, 3) == b"old"
    assert files.read(f"{folder}/a") == b"new"
    assert files.list_directory(folder) == ["a"]


def test_without_nowait_reads_only_what_was_written_lately_is_read_at_once(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = DiskFiles()
    files.open(f"{folder}/a", create=True).append((b"from before",))
    files.open(f"{folder}/a").close()

    def unsupported(*_: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "preadv", unsupported)
    monkeypatch.setattr("penstock.storage.disk.disk_file._RECENT_BYTES", 10)
    file = files.open(f"{folder}/a")
    assert file.read_at_nowait(0, 4) is None
    assert file.read_at_nowait(0, 4) is None
    file.append((b"12345678",))
    assert file.read_at_nowait(11, 4) == b"1234"
    assert file.read_at_nowait(10, 4) is None
    other = files.open(f"{folder}/b", create=True)
    other.append((b"abcdefgh",))
    assert file.read_at_nowait(11, 4) is None
    assert other.read_at_nowait(0, 4) == b"abcd"
    other.truncate(2)
    other.append((b"C",))
    assert other.read_at_nowait(0, 4) == b"abC"


def test_lock_is_held_once(folder: str) -> None:
    files = DiskFiles()
    lock = files.lock(f"{folder}/.lock")
    for _ in range(2):
        with pytest.raises(BlockingIOError):
            DiskFiles().lock(f"{folder}/.lock")
    code = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    command = [sys.executable, "-c", code, f"{folder}/.lock"]
    assert b"BlockingIOError" in subprocess.run(command, capture_output=True, check=False).stderr
    lock.release()
    lock.release()
    files.lock(f"{folder}/.lock").release()


def test_sizes_and_times(folder: str) -> None:
    files = DiskFiles()
    file = files.open(f"{folder}/a", create=True)
    file.write_at(3, b"xy")
    file.sync()
    file.truncate(4)
    files.sync_directory(folder)
    assert (file.size, files.size(f"{folder}/a"), files.read(f"{folder}/a")) == (4, 4, b"\0\0\0x")
    assert 0 < files.free_bytes(folder) < files.total_bytes(folder)
    assert files.modified_ms(f"{folder}/a") > 1_600_000_000_000
    assert files.is_directory(folder)
    assert not files.is_directory(f"{folder}/a")


def test_written_file_replaces_what_was_there(folder: str) -> None:
    files = DiskFiles()
    files.make_directory(f"{folder}/topic-0")
    files.write(f"{folder}/topic-0/a", b"longer")
    files.write(f"{folder}/topic-0/a", b"short")
    assert files.read(f"{folder}/topic-0/a") == b"short"
    with pytest.raises(FileExistsError):
        files.make_directory(f"{folder}/topic-0")
    with pytest.raises(FileNotFoundError):
        files.make_directory(f"{folder}/absent/topic-0")


def test_rename_of_what_is_not_there_leaves_the_target_as_it_was(folder: str) -> None:
    files = DiskFiles()
    file = files.open(f"{folder}/a", create=True)
    with pytest.raises(FileNotFoundError):
        files.rename(f"{folder}/absent", f"{folder}/a")
    files.rename(f"{folder}/a", f"{folder}/b")
    assert file.path == f"{folder}/b"


class Descriptors:
    """Lets the system have `left` descriptors more, of which this process takes and gives back some."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, left: int) -> None:
        # What earlier tests left open must not be closed, and counted, meanwhile.
        gc.collect()
        self.left = left
        self._calls = {name: getattr(os, name) for name in ("open", "close", "listdir", "scandir")}
        for name, call in (("open", self._open), ("close", self._close)):
            monkeypatch.setattr(os, name, call)
        for name in ("listdir", "scandir"):
            monkeypatch.setattr(os, name, self._borrowing(name))

    def _open(self, *args: Any, **options: Any) -> int:
        self._take()
        self.left -= 1
        descriptor: int = self._calls["open"](*args, **options)
        return descriptor

    def _close(self, descriptor: int) -> None:
        self.left += 1
        self._calls["close"](descriptor)

    def _borrowing(self, name: str) -> Callable[..., Any]:
        def call(path: str) -> Any:
            self._take()
            return self._calls[name](path)

        return call

    def _take(self) -> None:
        if self.left <= 0:
            raise OSError(errno.EMFILE, "Too many open files")


def test_where_descriptors_are_short_those_of_idle_files_are_given_back(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = DiskFiles()
    held = [files.open(f"{folder}/{number}", create=True) for number in range(8)]
    Descriptors(monkeypatch, 0)
    files.open(f"{folder}/new", create=True).append((b"x",))
    files.write(f"{folder}/written", b"y")
    files.write_atomically(f"{folder}/atomic", b"z")
    files.sync_directory(folder)
    assert files.list_directory(folder) == sorted([*map(str, range(8)), "atomic", "new", "written"])
    files.rename(f"{folder}/0", f"{folder}/renamed")
    files.allocate(f"{folder}/allocated", 10)
    assert files.open_file_count < len(held)
    assert [file.read_at(0, 1) for file in held] == [b""] * 8


def test_shortage_of_descriptors_is_an_error_once_none_is_idle(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files = DiskFiles()
    file = files.open(f"{folder}/a", create=True)
    assert isinstance(file, DiskFile)
    files.descriptors.enter(file)
    Descriptors(monkeypatch, 0)
    for call in (
        lambda: files.open(f"{folder}/b", create=True),
        lambda: files.write(f"{folder}/b", b""),
        lambda: files.list_directory(folder),
    ):
        with pytest.raises(OSError, match="Too many open files"):
            call()
    files.descriptors.leave(file)
    assert files.list_directory(folder) == ["a"]


def test_remove_and_rename_that_lack_a_descriptor_leave_one_file_one_object(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two objects of one file would not know of each other's appends."""
    files = DiskFiles()
    os.mkdir(f"{folder}/log")
    closed, other = (files.open(f"{folder}/{name}", create=True) for name in ("log/closed", "log/other"))
    closed.append((b"x",))
    files.sync_directory(folder)
    closed.close()
    other.close()
    with monkeypatch.context() as patches:
        Descriptors(patches, 0)
        with pytest.raises(OSError, match="Too many open files"):
            files.remove(f"{folder}/log/closed")
        with pytest.raises(OSError, match="Too many open files"):
            files.rename(f"{folder}/log/other", f"{folder}/log/closed")
        with pytest.raises(OSError, match="Too many open files"):
            files.rename(f"{folder}/log", f"{folder}/moved")
    assert files.open(f"{folder}/log/closed") is closed
    files.rename(f"{folder}/log", f"{folder}/moved")
    assert closed.path == f"{folder}/moved/closed"
    assert closed.read_at(0, 1) == b"x"
