"""The disk in memory behaves like the real one until it fails, and fails as disks do."""

import errno
from collections.abc import Callable
from copy import deepcopy
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.storage.disk.files import DiskFiles, Files
from penstock.storage.disk.memory_files import MemoryFiles


def in_memory() -> MemoryFiles:
    files = MemoryFiles()
    files.make_directories("/data")
    return files


def outcomes(make: Callable[[], MemoryFiles], path: str = "/data/a", tries: int = 300) -> set[bytes | None]:
    """What crashes with different seeds leave of one file."""
    found: set[bytes | None] = set()
    for seed in range(tries):
        files = make()
        files.crash(Random(seed))
        found.add(files.read(path) if files.exists(path) else None)
    return found


Step = tuple[str, int, int]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["append", "write_at", "truncate", "remove", "rename", "atomically", "mkdir", "move", "rmtree", "close"]
            ),
            st.integers(0, 3),
            st.integers(0, 40),
        ),
        max_size=30,
    )
)
def test_without_faults_both_forms_of_a_disk_answer_alike(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step]
) -> None:
    disks: list[tuple[Files, str]] = [
        (DiskFiles(max_open_files=2), str(tmp_path_factory.mktemp("disk"))),
        (in_memory(), "/data"),
    ]
    answers: list[list[object]] = []
    for files, root in disks:
        held = [files.open(f"{root}/held{number}", create=True) for number in range(4)]
        answers.append([run_step(files, root, step) for step in steps])
        answers[-1] += [contents(files, root), [file.read_at(0, 99) for file in held]]
        answers[-1] += [file.path.removeprefix(root) for file in held if files.exists(file.path)]
    assert answers[0] == answers[1]


def run_step(files: Files, root: str, step: Step) -> object:
    kind, number, size = step
    path = f"{root}/held{number}"
    try:
        match kind:
            case "append":
                files.open(path).append((bytes([number]) * size, b"!"))
            case "write_at":
                files.open(path, create=True).write_at(size, b"@@")
            case "truncate":
                files.open(path).truncate(size)
            case "remove":
                files.remove(path)
            case "rename":
                files.rename(path, f"{root}/held{size % 4}")
            case "atomically":
                files.write_atomically(path, b"#" * size)
            case "mkdir":
                files.make_directories(f"{root}/folder{number}/in")
                files.open(f"{root}/folder{number}/in/f", create=True).append((b"in",))
            case "move":
                files.rename(f"{root}/folder{number}", f"{root}/folder{size % 4}")
            case "rmtree":
                files.remove_tree(f"{root}/folder{number}")
            case "close":
                files.open(path).close()
        file = files.open(path)
        return file.size, file.read_at(1, 30), file.read_at_nowait(0, 5), files.size(path)
    except OSError as error:
        return type(error)


def contents(files: Files, path: str) -> object:
    if not files.is_directory(path):
        return files.read(path)
    return {name: contents(files, f"{path}/{name}") for name in files.list_directory(path)}


def test_synced_bytes_of_a_synced_name_survive_every_crash() -> None:
    def make() -> MemoryFiles:
        files = in_memory()
        file = files.open("/data/a", create=True)
        file.append((b"synced",))
        file.sync()
        files.sync_directory("/data")
        file.append((b"+more",))
        return files

    found = outcomes(make)
    assert all(data is not None and data.startswith(b"synced") for data in found)
    assert {b"synced", b"synced+", b"synced+mor", b"synced+more"} <= found


def test_file_whose_name_is_not_synced_can_vanish_though_it_is_synced() -> None:
    def make() -> MemoryFiles:
        files = in_memory()
        file = files.open("/data/a", create=True)
        file.append((b"synced",))
        file.sync()
        return files

    assert outcomes(make) == {None, b"synced"}


def test_what_a_loss_of_power_leaves_is_known_before() -> None:
    files = in_memory()
    file = files.open("/data/a", create=True)
    file.append((b"synced",))
    file.sync()
    assert not files.is_safe("/data/a", 6)
    files.sync_directory("/data")
    assert files.is_safe("/data/a", 6)
    file.append((b"+more",))
    assert files.is_safe("/data/a", 6)
    assert not files.is_safe("/data/a", 7)
    file.truncate(3)
    assert not files.is_safe("/data/a", 4)
    files.rename("/data/a", "/data/c")
    assert not files.is_safe("/data/c", 1)
    files.make_directory("/data/folder")
    files.open("/data/folder/a", create=True)
    files.sync_directory("/data/folder")
    assert not files.is_safe("/data/folder/a", 0)
    files.sync_directory("/data")
    assert files.is_safe("/data/folder/a", 0)
    assert not files.is_safe("/data/b", 0)


def test_unsynced_sectors_survive_in_any_order() -> None:
    def make() -> MemoryFiles:
        files = in_memory()
        file = files.open("/data/a", create=True)
        file.sync()
        files.sync_directory("/data")
        file.append((b"a" * 512, b"b" * 512))
        return files

    assert bytes(512) + b"b" * 512 in outcomes(make)


def test_unsynced_rename_leaves_the_old_or_the_new_and_never_both_or_none() -> None:
    def make() -> MemoryFiles:
        files = in_memory()
        for name, data in (("a", b"old"), ("b", b"new")):
            file = files.open(f"/data/{name}", create=True)
            file.append((data,))
            file.sync()
        files.sync_directory("/data")
        files.rename("/data/b", "/data/a")
        return files

    assert outcomes(make) == {b"old", b"new"}


def test_unsynced_truncation_can_be_undone_by_a_crash() -> None:
    def make(is_synced: bool) -> MemoryFiles:
        files = in_memory()
        file = files.open("/data/a", create=True)
        file.append((b"12345678",))
        file.sync()
        files.sync_directory("/data")
        file.truncate(4)
        if is_synced:
            file.sync()
        return files

    assert outcomes(lambda: make(False)) == {b"1234", b"12345678"}
    assert outcomes(lambda: make(True)) == {b"1234"}


def test_what_a_failed_sync_did_not_write_stays_uncertain_after_a_later_sync() -> None:
    def make() -> MemoryFiles:
        files = in_memory()
        file = files.open("/data/a", create=True)
        files.sync_directory("/data")
        file.append((b"lost?",))
        files.fail("sync")
        with pytest.raises(OSError):
            file.sync()
        file.append((b"safe",))
        file.sync()
        return files

    found = outcomes(make)
    assert all(data is not None and data[5:] == b"safe" for data in found)
    assert {b"lost?safe", b"\0\0\0\0\0safe"} <= found


def test_removed_folder_comes_back_whole_or_in_part_until_its_removal_is_synced() -> None:
    files = in_memory()
    files.make_directories("/data/topic-0")
    file = files.open("/data/topic-0/a", create=True)
    file.append((b"1",))
    file.sync()
    files.sync_directory("/data/topic-0")
    files.remove_tree("/data/topic-0")
    files.kill()
    assert not files.exists("/data/topic-0")
    found = set()
    for seed in range(200):
        copy = deepcopy(files)
        copy.crash(Random(seed))
        found.add(copy.read("/data/topic-0/a") if copy.exists("/data/topic-0/a") else None)
    assert found == {None, b"1"}


def test_killed_process_loses_nothing_that_it_wrote_but_its_handles_and_locks() -> None:
    files = in_memory()
    lock = files.lock("/data/.lock")
    with pytest.raises(BlockingIOError):
        files.lock("/data/.lock")
    file = files.open("/data/a", create=True)
    file.append((b"written",))
    files.kill()
    assert files.read("/data/a") == b"written"
    for use in (lambda: file.append((b"late",)), lambda: file.read_at(0, 1), file.sync):
        with pytest.raises(OSError, match="gone"):
            use()
    files.lock("/data/.lock")
    lock.release()


def test_sync_that_a_dead_process_tries_says_nothing_about_the_disk() -> None:
    for seed in range(20):
        files = in_memory()
        file = files.open("/data/a", create=True)
        files.sync_directory("/data")
        file.append((b"written",))
        files.kill()
        with pytest.raises(OSError, match="gone"):
            file.sync()
        files.open("/data/a").sync()
        files.crash(Random(seed))
        assert files.read("/data/a") == b"written"


def test_sync_that_a_process_ended_before_leaves_its_bytes_to_a_later_one() -> None:
    for seed in range(20):
        files = in_memory()
        file = files.open("/data/a", create=True)
        files.sync_directory("/data")
        file.append((b"written",))
        files.end_process(skip=0)
        with pytest.raises(OSError):
            file.sync()
        files.heal()
        files.kill()
        files.open("/data/a").sync()
        files.crash(Random(seed))
        assert files.read("/data/a") == b"written"


def test_full_disk_takes_no_part_of_an_append_and_works_again_with_room() -> None:
    files = in_memory()
    files.capacity_bytes = 10
    file = files.open("/data/a", create=True)
    file.append((b"12345678",))
    assert files.free_bytes("/data") == 2
    with pytest.raises(OSError) as raised:
        file.append((b"abcd",))
    assert raised.value.errno == errno.ENOSPC
    assert (file.size, files.read("/data/a")) == (8, b"12345678")
    files.capacity_bytes = 12
    file.append((b"abcd",))
    assert files.read("/data/a") == b"12345678abcd"
    assert files.free_bytes("/data") == 0
    files.remove("/data/a")
    assert (files.free_bytes("/data"), files.total_bytes("/data")) == (12, 12)


def test_faults_hit_the_calls_they_are_meant_for() -> None:
    files = in_memory()
    files.make_directories("/data/bad")
    good = files.open("/data/good", create=True)
    bad = files.open("/data/bad/file", create=True)
    files.fail("write", under="/data/bad", skip=1, count=2)
    bad.append((b"first",))
    for _ in range(2):
        with pytest.raises(OSError):
            bad.append((b"second",))
        good.append((b"good",))
    bad.append((b"third",))
    assert files.read("/data/bad/file") == b"firstthird"
    files.fail(count=None)
    for use in (lambda: good.read_at(0, 1), lambda: files.open("/data/good"), lambda: files.list_directory("/data")):
        with pytest.raises(OSError):
            use()
    files.heal()
    assert files.read("/data/good") == b"goodgood"
    assert files.operation_counts["write"] == 6


def test_append_that_cannot_be_undone_is_an_input_output_error() -> None:
    files = in_memory()
    files.capacity_bytes = 2
    file = files.open("/data/a", create=True)
    files.fail("truncate")
    with pytest.raises(OSError) as raised:
        file.append((b"1234",))
    assert raised.value.errno == errno.EIO


def test_flipped_bit_is_what_the_disk_reads() -> None:
    files = in_memory()
    files.write_atomically("/data/a", b"aaa")
    files.flip_bit("/data/a", 1, 1)
    assert files.read("/data/a") == b"aca"


def test_same_seed_leaves_the_same_disk() -> None:
    def run(seed: int) -> object:
        random = Random(seed)
        files = in_memory()
        for number in range(20):
            files.make_directories(f"/data/{number % 3}")
            file = files.open(f"/data/{number % 3}/{number % 5}", create=True)
            file.append((random.randbytes(700),))
            if number % 4 == 0:
                file.sync()
                files.sync_directory(f"/data/{number % 3}")
        files.crash(random)
        return contents(files, "/data")

    assert run(7) == run(7)
    assert run(7) != run(8)


def test_change_of_a_file_is_stamped_with_the_clock_given() -> None:
    now = [5]
    files = MemoryFiles(now_ms=lambda: now[0])
    file = files.open("/a", create=True)
    now[0] = 9
    file.append((b"1",))
    assert files.modified_ms("/a") == 9


def test_folder_and_file_that_were_not_synced_may_be_lost_whole_or_in_part() -> None:
    found = set()
    for seed in range(100):
        files = in_memory()
        files.make_directory("/data/topic-0")
        files.write("/data/topic-0/a", b"12")
        files.crash(Random(seed))
        if not files.exists("/data/topic-0"):
            found.add("no folder")
        elif not files.exists("/data/topic-0/a"):
            found.add("no file")
        else:
            found.add(files.read("/data/topic-0/a").decode())
    assert {"no folder", "no file", "", "12"} <= found
