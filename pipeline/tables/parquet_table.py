"""A table of Parquet files in a folder, committed by numbered manifests, exactly once. A shell.

    table/event_date=2026-01-01/00000000000000000007-part-….parquet      what any reader of Parquet sees
    table/_penstock/manifests/00000000000000000007.json                  the commits
    table/_penstock/staged/<token>/event_date=2026-01-01/part-….parquet  files of a commit under way

A commit: files are written complete below `_penstock/staged`; the manifest is created, and with it the commit is made;
old files are deleted and new ones renamed to their places. A process that dies before the manifest leaves staged files
that no reader sees and the next commit deletes; one that dies after it leaves moves that the next opening finishes.
Staged files of a commit that another writer may still make stay: a commit deletes only those that were there before it.

Readers that list the folder (pandas, pyarrow, DuckDB, Spark) therefore never see a row twice or one of a commit that
was not made. They may see a commit in part while its files are renamed, and for the same moment miss rows of files
that are being replaced. `read_table` reads one version as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from . import manifest as rules
from .batch import Batch, new_token
from .compaction import NO_COMPACTION, CompactionRule
from .manifest import AddedFile, DataFile, Kind, Manifest, ManifestError, TableState
from .positions import Positions
from .schemas import merged
from .table_folder import TableFolder

HIDDEN_FOLDER: Final = "_penstock"
MANIFESTS: Final = f"{HIDDEN_FOLDER}/manifests"
STAGED: Final = f"{HIDDEN_FOLDER}/staged"
READ_ATTEMPTS: Final = 5
# Spark's name of the error.
PATH_NOT_FOUND: Final = "PATH_NOT_FOUND"


class ConcurrentWriteError(Exception):
    """Another writer made the commit that this one was about to make."""


class BatchChangedError(Exception):
    """The rows of a batch were not the same when it was read a second time."""


class ParquetTable:
    """One writer's view. Not safe to share between threads; a second writer is found out at its commit."""

    def __init__(
        self,
        spark: SparkSession,
        location: str,
        *,
        partition_by: Mapping[str, str],
        properties: Mapping[str, str] | None = None,
        compaction: CompactionRule = NO_COMPACTION,
    ) -> None:
        """Opens the table and finishes a commit that a process before this one left half published.

        Raises ManifestError when the folder holds something else, or a table made with other `partition_by` or
        `properties`.
        """
        self._spark = spark
        self._folder = TableFolder(spark, location)
        self._partition_by = dict(partition_by)
        self._properties = dict(properties or {})
        self._compaction = compaction
        self._state = load_state(self._folder)
        self._check()
        self._publish()

    @property
    def state(self) -> TableState:
        return self._state

    @property
    def positions(self) -> Positions:
        return self._state.positions

    @property
    def topic_ids(self) -> Mapping[str, str]:
        return self._state.topic_ids

    def write(self, batch: Batch) -> None:
        """Adds the rows of a batch and moves the positions; then rewrites small files."""
        self._commit("append", batch.frame, batch, row_count=batch.row_count)
        self.compact()

    def replace(self, batch: Batch, *, removed: tuple[str, ...], frame: DataFrame) -> None:
        """Puts the rows of `frame` in the place of whole files, and moves the positions to those of the batch."""
        self._commit("upsert", frame, batch, removed=removed)

    def compact(self) -> int:
        """Rewrites small files; each folder is a commit of its own. Returns how many files it replaced."""
        replaced = 0
        for rewrite in self._compaction.plan(self._state.files.values()):
            frame = self.read(rewrite.paths).coalesce(rewrite.file_count)
            self._commit("compaction", frame, None, removed=rewrite.paths, row_count=rewrite.row_count)
            replaced += len(rewrite.paths)
        return replaced

    def read(self, paths: tuple[str, ...]) -> DataFrame:
        """Some files of the table, with its partition columns. Raises ConcurrentWriteError when they are gone."""
        try:
            return read_files(self._spark, self._folder, self._state, paths)
        except AnalysisException as error:
            if error.getCondition() != PATH_NOT_FOUND:
                raise
            raise self._overtaken(self._state.version + 1) from error

    def _check(self) -> None:
        state = self._state
        if not state.version:
            found = [name for name in self._folder.names("") if name != HIDDEN_FOLDER]
            if found:
                raise ManifestError(
                    f"{self._folder.uri} holds {found[0]} but no manifest of a table: choose an empty folder"
                )
        elif state.partition_by != self._partition_by or state.properties != self._properties:
            raise ManifestError(
                f"the table {self._folder.uri} was made with partitions {state.partition_by} and {state.properties},"
                f" not with {self._partition_by} and {self._properties}: write to another folder"
            )

    def _commit(
        self,
        kind: Kind,
        frame: DataFrame,
        batch: Batch | None,
        *,
        removed: tuple[str, ...] = (),
        row_count: int | None = None,
    ) -> None:
        """Without a batch the positions stay where they are."""
        schema = merged(self._state.schema, _without_columns(frame.schema, self._partition_by).json())
        token = new_token(self._spark)
        added = self._stage(frame, f"{STAGED}/{token}")
        staged_count = sum(one.file.row_count for one in added)
        if row_count not in (None, staged_count):
            raise BatchChangedError(
                f"a batch of {row_count} rows became {staged_count} rows on their way into the table"
                f" {self._folder.uri}: its source gave other rows when it was read again; nothing was committed"
            )
        manifest = Manifest(
            version=self._state.version + 1,
            kind=kind,
            writer=batch.writer if batch else "",
            positions=batch.positions if batch else self.positions,
            topic_ids=dict(batch.topic_ids if batch else self.topic_ids),
            schema=schema,
            partition_by=self._partition_by,
            properties=self._properties,
            added=added,
            removed=removed,
        )
        manifest = rules.with_files_where_due(self._state, manifest)
        path = f"{MANIFESTS}/{manifest.name}"
        # Staged before this version is there, they are of this one or older: of commits that were made, or will fail.
        staged_before = self._folder.names(STAGED)
        if not self._folder.create(path, rules.encoded(manifest), token=token):
            raise self._overtaken(manifest.version)
        self._state = rules.following(self._state, manifest)
        self._publish()
        for name in self._folder.names(STAGED):
            if name in staged_before:
                self._folder.delete(f"{STAGED}/{name}")
        self._delete_old_manifests()

    def _overtaken(self, version: int) -> ConcurrentWriteError:
        return ConcurrentWriteError(
            f"another writer has made version {version} of the table {self._folder.uri}: one query at a time may"
            " write to a table; this one ends, and goes on correctly when it is started again"
        )

    def _stage(self, frame: DataFrame, folder: str) -> tuple[AddedFile, ...]:
        """Writes the frame's rows to files that no reader sees."""
        frame.write.partitionBy(*self._partition_by).parquet(self._folder.uri_of(folder))
        return tuple(self._added(folder, one) for one in self._folder.data_files(folder))

    def _added(self, folder: str, staged: DataFile) -> AddedFile:
        # Spark's name has a UUID of its write: a table that is made anew in the same folder has no such name again.
        name = f"{self._state.version + 1:0{rules.NAME_DIGITS}d}-{staged.path.rpartition('/')[2]}"
        file = msgspec.structs.replace(staged, path=f"{staged.folder}/{name}".lstrip("/"))
        return AddedFile(file=file, staged=f"{folder}/{staged.path}")

    def _publish(self) -> None:
        """Moves the files of the last commit to where readers find them. It may be done again, and by two at a time."""
        last = self._state.last
        if last is None:
            return
        # In this order, a reader that lists the folder misses rows for a moment. In the other it would see some twice.
        for path in last.removed:
            self._folder.delete(path)
        for one in last.added:
            self._folder.rename(one.staged, one.file.path)
        for folder in {"/".join(one.staged.split("/")[: STAGED.count("/") + 2]) for one in last.added}:
            self._folder.delete(folder)

    def _delete_old_manifests(self) -> None:
        if self._state.version % rules.FULL_EVERY:
            return
        versions = _versions(self._folder)
        for version in rules.deletable_versions(versions, self._state.version):
            self._folder.delete(f"{MANIFESTS}/{rules.manifest_name(version)}")


def load_state(folder: TableFolder) -> TableState:
    """The table as its manifests say. Raises ManifestError."""
    versions = _versions(folder)
    state = TableState()
    if not versions:
        return state
    first = rules.first_version_needed(versions[-1])
    for version in range(first, versions[-1] + 1):
        name = rules.manifest_name(version)
        if version not in versions:
            raise ManifestError(f"manifest {name} is missing in the table {folder.uri}")
        state = rules.following(state, rules.decoded(folder.read(f"{MANIFESTS}/{name}"), name))
    return state


def read_table(spark: SparkSession, location: str) -> DataFrame:
    """The last version of a table as a whole, whatever is being written meanwhile.

    A scan that is under way while its files are replaced, by compaction or an upsert, fails with a missing file and
    is to be begun again; it never returns something else. Raises ManifestError when there is no table.
    """
    folder = TableFolder(spark, location)
    for attempt in range(1, READ_ATTEMPTS + 1):
        state = load_state(folder)
        if not state.version:
            raise ManifestError(f"{folder.uri} is no table: it has no manifests in {MANIFESTS}")
        try:
            return read_files(spark, folder, state, tuple(state.files))
        except AnalysisException as error:
            # A commit was made and published since the manifests were read.
            if error.getCondition() != PATH_NOT_FOUND or attempt == READ_ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def read_files(spark: SparkSession, folder: TableFolder, state: TableState, paths: tuple[str, ...]) -> DataFrame:
    """Files of a version, each from where it is: files of the last commit may not be in their places yet."""
    staged = {one.file.path: one.staged for one in state.last.added} if state.last else {}
    waiting = {path: staged[path] for path in paths if path in staged and not folder.exists(path)}
    groups: dict[str, list[str]] = {}
    for path in paths:
        place = waiting.get(path, path)
        base = "/".join(place.split("/")[: -1 - len(state.partition_by)])
        groups.setdefault(base, []).append(folder.uri_of(place))
    schema = StructType.fromJson(msgspec.json.decode(state.schema or "{}"))
    for column, kind in state.partition_by.items():
        schema = schema.add(column, kind)
    frames = [
        spark.read.schema(schema).option("basePath", folder.uri_of(base)).parquet(*uris)
        for base, uris in groups.items()
    ]
    if not frames:
        return spark.createDataFrame([], schema)
    first, *others = frames
    for other in others:
        first = first.unionByName(other)
    return first


def _versions(folder: TableFolder) -> tuple[int, ...]:
    found = (rules.version_of(name) for name in folder.names(MANIFESTS))
    return tuple(sorted(version for version in found if version is not None))


def _without_columns(schema: StructType, columns: Mapping[str, str]) -> StructType:
    return StructType([one for one in schema.fields if one.name not in columns])
