"""Small files of a folder are rewritten when there are enough of them, and large ones are left alone."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.pipeline.tables.compaction import CompactionRule
from penstock.pipeline.tables.manifest import DataFile

RULE = CompactionRule(after_files=3, target_bytes=100)


def files(folder: str, *sizes: int) -> list[DataFile]:
    return [DataFile(path=f"{folder}/{index}", size_bytes=size, row_count=size * 2) for index, size in enumerate(sizes)]


def test_enough_small_files_of_a_folder_become_one() -> None:
    (rewrite,) = RULE.plan([*files("d=1", 10, 20, 30), *files("d=2", 10, 20)])
    assert rewrite.paths == ("d=1/0", "d=1/1", "d=1/2")
    assert (rewrite.file_count, rewrite.row_count) == (1, 120)


def test_files_of_half_the_target_are_not_small() -> None:
    assert RULE.plan(files("d=1", 50, 50, 49, 49)) == ()


def test_many_small_files_become_several_of_the_target_size() -> None:
    (rewrite,) = RULE.plan(files("d=1", *[40] * 6))
    assert rewrite.file_count == 3


def test_folders_with_most_files_come_first() -> None:
    plan = RULE.plan([*files("d=1", 1, 1, 1), *files("d=2", 1, 1, 1, 1)])
    assert [len(one.paths) for one in plan] == [4, 3]


def test_0_switches_it_off() -> None:
    assert CompactionRule(after_files=0, target_bytes=100).plan(files("d=1", *[1] * 50)) == ()


@given(st.lists(st.integers(1, 200), max_size=300))
def test_compaction_comes_to_an_end_and_leaves_few_small_files(sizes: list[int]) -> None:
    held = files("d=1", *sizes)
    for _ in range(100):
        plan = RULE.plan(held)
        if not plan:
            break
        rewritten = {path for one in plan for path in one.paths}
        total = sum(one.size_bytes for one in held if one.path in rewritten)
        made = [total // plan[0].file_count] * plan[0].file_count
        held = [*(one for one in held if one.path not in rewritten), *files("d=1", *made)]
        held = files("d=1", *(one.size_bytes for one in held))
    assert RULE.plan(held) == ()
    assert sum(1 for one in held if one.size_bytes * 2 < RULE.target_bytes) < RULE.after_files
