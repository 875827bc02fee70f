"""A Parquet table has each row once, wherever its writer dies, and whichever reader looks at it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas
import pytest
from pyspark.sql import SparkSession
from soak import soak_only
from table_rows import PARTITIONS, TOPIC, Place, judge, naive_places, numbered, place, spark_places, write_new

from penstock.pipeline.tables.compaction import NO_COMPACTION, CompactionRule
from penstock.pipeline.tables.manifest import ManifestError
from penstock.pipeline.tables.parquet_table import MANIFESTS, ConcurrentWriteError, ParquetTable, load_state, read_table
from penstock.pipeline.tables.schemas import SchemaError
from penstock.pipeline.tables.table_folder import TableFolder

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

# Rewrites two small files as soon as they are there.
EAGER = CompactionRule(after_files=2, target_bytes=1 << 30)
STEPS = ("create", "rename", "delete")


class DiedError(Exception):
    """The process ends here, as far as the table is concerned."""


def opened(spark: SparkSession, folder: Path, compaction: CompactionRule = NO_COMPACTION) -> ParquetTable:
    return ParquetTable(spark, str(folder), partition_by={"event_date": "date"}, compaction=compaction)


@contextmanager
def steps_watched(monkeypatch: pytest.MonkeyPatch, before_step: Callable[[], None]) -> Iterator[None]:
    """Calls before each change that a table makes to its folder; Spark's own writes are not among them."""
    with monkeypatch.context() as patch:
        for name in STEPS:
            original = getattr(TableFolder, name)

            def step(
                self: TableFolder, *args: object, original: Callable[..., object] = original, **named: object
            ) -> object:
                before_step()
                return original(self, *args, **named)

            patch.setattr(TableFolder, name, step)
        yield


def death_after(step_count: int, folder: Path, expected: set[Place]) -> Callable[[], None]:
    """Before every step a reader looks into the folder: it never finds a row twice, or one of no commit."""
    done = 0

    def before_step() -> None:
        nonlocal done
        verdict = judge(naive_places(folder), expected)
        assert not verdict.twice
        assert not verdict.foreign
        if done == step_count:
            raise DiedError
        done += 1

    return before_step


def test_a_table_without_partitions_keeps_its_files_in_its_folder(spark: SparkSession, tmp_path: Path) -> None:
    table = ParquetTable(spark, str(tmp_path / "table"), partition_by={})
    assert write_new(table, numbered(spark, 0, 60).drop("event_date")) == 60
    assert spark.read.parquet(str(tmp_path / "table")).count() == 60
    assert {one.parent for one in tmp_path.rglob("*.parquet")} == {tmp_path / "table"}


def test_rows_are_read_back_by_every_reader(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "table"
    assert write_new(opened(spark, folder), numbered(spark, 0, 60)) == 60
    expected = {place(number) for number in range(60)}
    for found in (
        naive_places(folder),
        spark_places(spark.read.parquet(str(folder))),
        spark_places(read_table(spark, str(folder))),
    ):
        assert judge(found, expected).is_exact
    frame = pandas.read_parquet(folder)
    assert sorted(frame["event_date"].astype(str).unique()) == ["2026-01-01", "2026-01-02"]
    assert read_table(spark, str(folder)).schema["event_date"].dataType.simpleString() == "date"


def test_a_replay_and_a_new_checkpoint_add_no_row_twice(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "table"
    table = opened(spark, folder)
    assert write_new(table, numbered(spark, 0, 30)) == 30
    assert write_new(table, numbered(spark, 0, 30)) == 0
    assert write_new(table, numbered(spark, 20, 50)) == 20
    assert write_new(opened(spark, folder), numbered(spark, 0, 60), "another-query/0") == 10
    assert judge(naive_places(folder), {place(number) for number in range(60)}).is_exact
    state = load_state(TableFolder(spark, str(folder)))
    assert state.positions == {TOPIC: dict.fromkeys(range(PARTITIONS), 20)}
    assert state.row_count == 60


def test_the_judge_finds_a_file_that_is_there_twice_and_a_row_that_is_not(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "table"
    write_new(opened(spark, folder), numbered(spark, 0, 30))
    expected = {place(number) for number in range(30)}
    (file,) = folder.glob("event_date=*/*.parquet")
    shutil.copy(file, file.with_name("copy.parquet"))
    assert judge(naive_places(folder), expected).twice == frozenset(expected)
    # A reader of manifests knows which files are the table's.
    assert judge(spark_places(read_table(spark, str(folder))), expected).is_exact
    file.with_name("copy.parquet").unlink()
    verdict = judge(naive_places(folder), {*expected, place(30)})
    assert verdict.missing == {place(30)}
    assert judge(naive_places(folder), expected - {place(7)}).foreign == {place(7)}


def test_a_writer_may_die_before_every_step_of_a_commit(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second batch, with the rewrite of small files behind it, dies before its first step, its second, …"""
    original = tmp_path / "original"
    write_new(opened(spark, original), numbered(spark, 0, 30))
    first, both = ({place(number) for number in range(end)} for end in (30, 36))
    outcomes = []
    for life in range(100):
        folder = tmp_path / f"table-{life}"
        shutil.copytree(original, folder)
        table = opened(spark, folder, EAGER)
        try:
            with steps_watched(monkeypatch, death_after(life, folder, both)):
                write_new(table, numbered(spark, 30, 36))
            has_died = False
        except DiedError:
            has_died = True
        whole = judge(spark_places(read_table(spark, str(folder))), both)
        outcomes.append("whole" if whole.is_exact else "before")
        if not whole.is_exact:
            assert judge(spark_places(read_table(spark, str(folder))), first).is_exact
        assert write_new(opened(spark, folder), numbered(spark, 30, 36)) == (0 if whole.is_exact else 6)
        assert judge(naive_places(folder), both).is_exact
        assert judge(spark_places(read_table(spark, str(folder))), both).is_exact
        # What a rewrite has staged that was never committed stays until the next commit.
        assert len([*(folder / "_penstock" / "staged").glob("*")]) <= 1
        if not has_died:
            break
    # One file of the batch: manifest, rename, clean up; then the same with two removals. The batch is there from its
    # manifest on.
    assert outcomes == ["before", *["whole"] * (len(outcomes) - 1)]
    assert len(outcomes) == 9


def test_small_files_of_a_day_become_one(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "table"
    for start in range(0, 40, 8):
        write_new(
            opened(spark, folder, CompactionRule(after_files=4, target_bytes=1 << 30)),
            numbered(spark, start, start + 8),
        )
    assert len(list(folder.glob("event_date=*/*.parquet"))) == 2
    assert judge(naive_places(folder), {place(number) for number in range(40)}).is_exact
    state = load_state(TableFolder(spark, str(folder)))
    assert (state.row_count, len(state.files)) == (40, 2)


@soak_only
def test_manifests_stay_few(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = 4
    monkeypatch.setattr("penstock.pipeline.tables.manifest.FULL_EVERY", every)
    folder = tmp_path / "table"
    table = opened(spark, folder, EAGER)
    commits = every + 3
    for number in range(commits):
        write_new(table, numbered(spark, number, number + 1))
    held = list((folder / MANIFESTS).glob("[0-9]*.json"))
    assert len(held) < 2 * every
    assert table.state.version > 2 * every
    assert load_state(TableFolder(spark, str(folder))) == table.state
    assert judge(spark_places(read_table(spark, str(folder))), {place(number) for number in range(commits)}).is_exact


def test_a_second_writer_is_found_out(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "table"
    stale = opened(spark, folder)
    write_new(opened(spark, folder), numbered(spark, 0, 9))
    with pytest.raises(ConcurrentWriteError, match="another writer has made version 1"):
        write_new(stale, numbered(spark, 0, 12))
    assert judge(naive_places(folder), {place(number) for number in range(9)}).is_exact
    assert write_new(opened(spark, folder), numbered(spark, 0, 12)) == 3


def test_a_writer_that_opens_the_table_leaves_a_commit_under_way_whole(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that is taken for dead goes on: its files are staged when the next one opens the table."""
    folder = tmp_path / "table"
    first = opened(spark, folder)
    later: list[ParquetTable] = []

    def before_step() -> None:
        if not later:
            later.append(opened(spark, folder))

    with steps_watched(monkeypatch, before_step):
        assert write_new(first, numbered(spark, 0, 9)) == 9
    expected = {place(number) for number in range(9)}
    assert judge(naive_places(folder), expected).is_exact
    with pytest.raises(ConcurrentWriteError, match="another writer has made version 1"):
        write_new(later[0], numbered(spark, 0, 12))
    assert judge(spark_places(read_table(spark, str(folder))), expected).is_exact
    assert write_new(opened(spark, folder), numbered(spark, 0, 12)) == 3
    assert not [*(folder / "_penstock" / "staged").glob("*")]


def test_fields_are_added_and_types_stay(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "table"
    write_new(opened(spark, folder), numbered(spark, 0, 9))
    more = numbered(spark, 9, 12).selectExpr("* except (value)", "struct(value.n, 'x' as more) as value", "1 as extra")
    write_new(opened(spark, folder), more)
    found = read_table(spark, str(folder)).orderBy("value.n").collect()
    assert [(row.value.n, row.value.more, row.extra) for row in found][8:10] == [(8, None, None), (9, "x", 1)]
    text = numbered(spark, 12, 15).selectExpr("* except (value)", "struct('x' as n) as value")
    with pytest.raises(SchemaError, match=r"value\.n is long in the table and string in the rows"):
        write_new(opened(spark, folder), text)


def test_a_folder_with_other_files_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "other.parquet").write_bytes(b"x")
    with pytest.raises(ManifestError, match=r"holds other\.parquet but no manifest"):
        opened(spark, tmp_path / "table")
    with pytest.raises(ManifestError, match="is no table"):
        read_table(spark, str(tmp_path / "nothing"))


def test_a_table_is_opened_as_it_was_made(spark: SparkSession, tmp_path: Path) -> None:
    write_new(opened(spark, tmp_path / "table"), numbered(spark, 0, 3))
    with pytest.raises(ManifestError, match="was made with partitions"):
        ParquetTable(spark, str(tmp_path / "table"), partition_by={"topic": "string"})
