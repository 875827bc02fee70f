"""Whose checkpoint a folder holds: a file beside it that the first run writes and every later one compares.

Spark itself continues any checkpoint with any query, and fails, or worse, reads state of another meaning. The file is
written through Hadoop's file systems, so the folder may be on HDFS or in an object store.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ... import __version__
from ..job import JobError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE_NAME: Final = "penstock-job.json"


class CheckpointOwner(msgspec.Struct, frozen=True, kw_only=True):
    """What must be the same when a checkpoint is continued, and who began it."""

    job: str
    name: str
    state_version: int
    source: str
    """Topics or the pattern: Spark takes other ones only in a new checkpoint."""
    penstock: str = __version__
    """The version that wrote the file; any later one continues it as long as the state version is the same."""
    settings: dict[str, str] = {}
    """As `JobConfig.bound_settings`; one that is not in the file is not compared."""
    topic_ids: dict[str, str] = {}
    """Of the topics that were there when it was begun, as far as they are known; of others none is compared."""


def claim(spark: SparkSession, folder: str, owner: CheckpointOwner, *, begun_anew: Collection[str] = ()) -> None:
    """Writes who owns the checkpoint in `folder`, or compares. A start that failed before its first batch owns nothing.
    Raises JobError when it is another's, and when one of another state version lies beside it. `begun_anew` as in
    `compare`."""
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(f"{folder}/{FILE_NAME}")
    files = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    if files.exists(path) and _has_batches(files, jvm, folder):
        stream = files.open(path)
        try:
            written = bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()
        compare(folder, _decoded(folder, written), owner, begun_anew=begun_anew)
        return
    _refuse_other_versions(files, jvm, folder, owner)
    stream = files.create(path, True)
    try:
        stream.write(bytearray(msgspec.json.encode(owner)))
    finally:
        stream.close()


def compare(folder: str, found: CheckpointOwner, owner: CheckpointOwner, *, begun_anew: Collection[str] = ()) -> None:
    """Raises JobError with the first difference that forbids to go on.

    Topics that are `begun_anew` are read from their start: the checkpoint has to know their ids of now.
    """
    named = (("job", "job"), ("name", "name"), ("state_version", "state version"), ("source", "source"))
    pairs = [(what, getattr(found, field), getattr(owner, field)) for field, what in named]
    pairs += [(what, before, owner.settings.get(what, before)) for what, before in found.settings.items()]
    for what, before, now in pairs:
        if before != now:
            raise JobError(
                f"The checkpoint {folder} was begun with the {what} {before!r} (penstock {found.penstock}), and this is"
                f" {now!r}: a query cannot continue it. Use another --checkpoint or name, or remove the folder to begin"
                " anew."
            )
    for topic, now in sorted(owner.topic_ids.items()):
        before = found.topic_ids.get(topic, "(not noted)" if topic in begun_anew else now)
        if before != now:
            raise JobError(
                f"The checkpoint {folder} was begun with the topic {topic} of the id {before} (penstock"
                f" {found.penstock}), and its id is {now}: it was deleted and made anew, or is that of another cluster,"
                " so that its offsets are of other records. Use another --checkpoint or name, or remove the folder to"
                " begin anew."
            )


def _has_batches(files: Any, jvm: Any, folder: str) -> bool:
    """Whether a query of the checkpoint has begun a batch: Spark writes its offsets first."""
    for query in files.listStatus(jvm.org.apache.hadoop.fs.Path(folder)):
        offsets = jvm.org.apache.hadoop.fs.Path(query.getPath(), "offsets")
        if query.isDirectory() and files.exists(offsets) and len(files.listStatus(offsets)):
            return True
    return False


def _decoded(folder: str, written: bytes) -> CheckpointOwner:
    try:
        return msgspec.json.decode(written, type=CheckpointOwner)
    except msgspec.DecodeError as error:
        raise JobError(f"{folder}/{FILE_NAME} does not say whose checkpoint it is: {error}.") from error


def _refuse_other_versions(files: Any, jvm: Any, folder: str, owner: CheckpointOwner) -> None:
    """A job whose state version was raised would silently begin anew beside the checkpoint of the version before."""
    base, _, own = folder.rpartition("/")
    parent = jvm.org.apache.hadoop.fs.Path(base)
    if not files.exists(parent):
        return
    prefix = own[: own.rindex("-v") + 2]
    others = [status.getPath().getName() for status in files.listStatus(parent)]
    before = [name for name in others if name.startswith(prefix) and name[len(prefix) :].isdigit() and name != own]
    if before:
        raise JobError(
            f"{base} has the checkpoint {before[0]} of another state version of {owner.name}, which this version (state"
            f" version {owner.state_version}) cannot continue. Use another --checkpoint, or remove that folder to begin"
            " anew."
        )
