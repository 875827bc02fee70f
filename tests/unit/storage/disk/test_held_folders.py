"""A folder whose lock was released changes no more by this process, on the real disk and on the simulated one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.storage.disk.files import DiskFiles, Files
from penstock.storage.disk.memory_files import MemoryFiles


@pytest.fixture(params=["disk", "memory"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Files, str]:
    if request.param == "disk":
        return DiskFiles(), str(tmp_path)
    files = MemoryFiles(refuses_late_writes=True)
    files.make_directories("/data")
    return files, "/data"


def content(files: Files, folder: str) -> dict[str, bytes]:
    names = [name for name in files.list_directory(folder) if not files.is_directory(f"{folder}/{name}")]
    return {name: files.read(f"{folder}/{name}") for name in names}


def test_whatever_would_change_a_folder_that_was_given_up_is_refused(disk: tuple[Files, str]) -> None:
    files, folder = disk
    lock = files.lock(f"{folder}/.lock")
    files.make_directory(f"{folder}/inner")
    file = files.open(f"{folder}/inner/a", create=True)
    file.append([b"kept"])
    files.write(f"{folder}/b", b"kept")
    before = content(files, folder)
    lock.release()
    changes: list[Callable[[], object]] = [
        lambda: file.append([b"late"]),
        lambda: file.write_at(0, b"late"),
        lambda: file.truncate(0),
        lambda: files.open(f"{folder}/c", create=True),
        lambda: files.write(f"{folder}/c", b"late"),
        lambda: files.write_atomically(f"{folder}/b", b"late"),
        lambda: files.allocate(f"{folder}/c", 10),
        lambda: files.make_directory(f"{folder}/other"),
        lambda: files.make_directories(f"{folder}/other/one"),
        lambda: files.rename(f"{folder}/b", f"{folder}/c"),
        lambda: files.remove(f"{folder}/b"),
        lambda: files.remove_tree(f"{folder}/inner"),
    ]
    for change in changes:
        with pytest.raises(OSError, match="not written any more: this process has given up"):
            change()
    assert content(files, folder) == before
    assert content(files, f"{folder}/inner") == {"a": b"kept"}
    file.sync()
    assert file.read_at(0, 10) == b"kept"


def test_a_folder_that_is_locked_again_changes_again(disk: tuple[Files, str]) -> None:
    files, folder = disk
    files.write(f"{folder}/a", b"never locked")
    lock = files.lock(f"{folder}/.lock")
    lock.release()
    lock.release()
    again = files.lock(f"{folder}/.lock")
    lock.release()
    files.write(f"{folder}/a", b"held")
    assert files.read(f"{folder}/a") == b"held"
    again.release()


def test_the_nearest_lock_above_a_file_counts(disk: tuple[Files, str]) -> None:
    files, folder = disk
    outer = files.lock(f"{folder}/.lock")
    files.make_directory(f"{folder}/inner")
    inner = files.lock(f"{folder}/inner/.lock")
    outer.release()
    files.write(f"{folder}/inner/a", b"held by its own lock")
    with pytest.raises(OSError, match="given up"):
        files.write(f"{folder}/a", b"late")
    inner.release()
    with pytest.raises(OSError, match="given up"):
        files.write(f"{folder}/inner/a", b"late")


def test_a_process_that_was_killed_gives_nothing_up_for_the_next_one() -> None:
    files = MemoryFiles(refuses_late_writes=True)
    files.make_directories("/data")
    lock = files.lock("/data/.lock")
    lock.release()
    files.kill()
    files.write("/data/a", b"next")
    lock = files.lock("/data/.lock")
    files.kill()
    files.lock("/data/.lock")
    lock.release()
    files.write("/data/a", b"the lock is another's by now")
