"""The log of a Parquet table: numbered manifests, each one commit, and the state that they add up to. Pure.

Manifests are written once and never changed. One in `FULL_EVERY` also lists all files of the table, so that a reader
needs the last such one and those after it, and the others are deleted. Delta and Iceberg have the same device
("checkpoint", "manifest list").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec

from .positions import Positions

FORMAT_VERSION: Final = 1
# A commit of 1,000 partitions is about 20 kB; a full one of 10,000 files about 1 MB.
FULL_EVERY: Final = 16
NAME_DIGITS: Final = 20
SUFFIX: Final = ".json"

Kind = Literal["append", "upsert", "compaction"]


class DataFile(msgspec.Struct, frozen=True, kw_only=True):
    """A Parquet file by its path in the table's folder, `event_date=2026-01-01/…`."""

    path: str
    size_bytes: int
    row_count: int

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]


class AddedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a commit adds: until it is renamed to its path it lies, complete, where it was staged."""

    file: DataFile
    staged: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One commit. It is the truth from the moment that it is there; renames and removals follow from it.

    `schema` is Spark's JSON, without the columns of `partition_by`. `writer` says which query and batch it was, for
    people who look into it.
    """

    format_version: int = FORMAT_VERSION
    version: int
    kind: Kind
    writer: str
    positions: Positions
    # By topic its id, where it is known; manifests of version 0.1 have none.
    topic_ids: dict[str, str] = {}
    schema: str
    # By partition column, its type in Spark's words; files do not have these columns.
    partition_by: dict[str, str]
    # What is decided when the table is made and does not change: the number of buckets.
    properties: dict[str, str] = {}
    added: tuple[AddedFile, ...] = ()
    removed: tuple[str, ...] = ()
    files: tuple[DataFile, ...] | None = None

    @property
    def name(self) -> str:
        return manifest_name(self.version)


class ManifestError(Exception):
    """The folder is no table, or one that this version cannot go on with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """What a table holds after its last commit; version 0 is a table that is not there yet."""

    version: int = 0
    positions: Positions = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    schema: str | None = None
    partition_by: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    files: dict[str, DataFile] = field(default_factory=dict)
    # Files of the last commit may still lie where they were staged.
    last: Manifest | None = None

    @property
    def row_count(self) -> int:
        return sum(one.row_count for one in self.files.values())


def manifest_name(version: int) -> str:
    return f"{version:0{NAME_DIGITS}d}{SUFFIX}"


def version_of(name: str) -> int | None:
    """The version that a file's name says, None for other files."""
    number = name.removesuffix(SUFFIX)
    return int(number) if name.endswith(SUFFIX) and len(number) == NAME_DIGITS and number.isdecimal() else None


def first_version_needed(last_version: int) -> int:
    """Readers of the last version begin with this manifest, the last full one or the first of all."""
    return max(1, last_version - last_version % FULL_EVERY)


def deletable_versions(versions: Iterable[int], last_version: int) -> tuple[int, ...]:
    """All before the last but one full manifest: a reader that listed the folder a commit ago still finds its own."""
    keep_from = first_version_needed(last_version) - FULL_EVERY
    return tuple(sorted(version for version in versions if version < keep_from))


def following(state: TableState, manifest: Manifest) -> TableState:
    """The state after one more commit. Raises ManifestError when it does not follow."""
    if manifest.version != state.version + 1 and manifest.files is None:
        raise ManifestError(f"manifest {manifest.version} does not follow version {state.version}")
    if manifest.format_version > FORMAT_VERSION:
        raise ManifestError(
            f"manifest {manifest.version} has format {manifest.format_version}, and this version reads up to"
            f" {FORMAT_VERSION}: the table was written by a later release"
        )
    if manifest.files is not None:
        files = {one.path: one for one in manifest.files}
    else:
        removed = frozenset(manifest.removed)
        if missing := sorted(removed - state.files.keys()):
            raise ManifestError(f"manifest {manifest.version} removes {missing[0]}, which the table does not have")
        files = {path: one for path, one in state.files.items() if path not in removed}
        files |= {one.file.path: one.file for one in manifest.added}
    return TableState(
        version=manifest.version,
        positions=manifest.positions,
        topic_ids=manifest.topic_ids,
        schema=manifest.schema,
        partition_by=manifest.partition_by,
        properties=manifest.properties,
        files=files,
        last=manifest,
    )


def with_files_where_due(state: TableState, manifest: Manifest) -> Manifest:
    """The manifest as it is to be written after `state`: every `FULL_EVERY`th lists all files."""
    if manifest.version % FULL_EVERY:
        return manifest
    return msgspec.structs.replace(manifest, files=tuple(following(state, manifest).files.values()))


def encoded(manifest: Manifest) -> bytes:
    return msgspec.json.encode(manifest)


def decoded(content: bytes, name: str) -> Manifest:
    """Raises ManifestError, which names the file."""
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
    except msgspec.MsgspecError as error:
        raise ManifestError(f"manifest {name} cannot be read: {error}") from error
    if version_of(name) != manifest.version:
        raise ManifestError(f"manifest {name} says that it is version {manifest.version}")
    return manifest
