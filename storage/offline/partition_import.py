"""An archive's records into the empty log of a partition of another cluster, whose node is stopped.

written into a folder named as one that is to be removed     a stop leaves something that the next start removes
checked against the manifest, synced
the empty folder goes aside, the new one gets its name       a stop between leaves no folder: a start makes an empty one
"""

from collections.abc import Iterator
from random import Random

from msgspec import Struct

from ...protocol.batches import HEADER_SIZE, BatchHeader, is_crc_valid, read_header
from ...protocol.errors import CorruptData, KafkaError
from ...protocol.ids import TopicId
from ..compaction.rules.cleaned_transactions import CleanedTransactions
from ..directories.log_directory import LogDirectory, draw_id
from ..directories.rules.checkpoints import CLEANER_OFFSETS, LOG_START_OFFSETS
from ..directories.rules.folder_names import FolderKind, moved_folder_name
from ..disk.files import Files
from ..log.log import Log
from ..log.rules.aborted_transaction import AbortedTransaction
from ..log.rules.config import LogConfig
from ..log.rules.control_records import read_end_transaction_marker
from ..log.rules.file_names import LOG, base_offset_of, offsets_with
from .archive_file import ArchiveMember, archive_members
from .closed_directory import ClosedPartition, OfflineError
from .rules.manifest import DIGEST, MANIFEST, MANIFEST_BYTES_MAX, Manifest, decode_manifest
from .rules.plain_batch import plain_batch

_APPENDED_BYTES = 1024 * 1024
_DIGEST_BYTES_MAX = 100
# Larger than any that a broker takes in.
_BATCH_BYTES_MAX = 1024 * 1024 * 1024


class PartitionImport(Struct, frozen=True, kw_only=True):
    manifest: Manifest
    kept_records: int
    """Without markers and what was aborted."""
    size_bytes: int


def import_partition(
    files: Files,
    archive: str,
    target: ClosedPartition,
    config: LogConfig,
    *,
    known_topic_id: TopicId | None = None,
    now_ms: int,
    random: Random,
) -> PartitionImport:
    """`known_topic_id` is the topic's in the node's metadata, where these can be read.

    OfflineError when the target is not an empty log of the topic, CorruptData when the archive is not intact; the
    target is as it was then. OSError.
    """
    directory, topic_id = target.directory, target.topic_id
    if directory is None or topic_id is None:
        raise OfflineError(f"{target.path} is not in the log directory of a node that knows the topic's id.")
    if known_topic_id not in (None, topic_id):
        raise OfflineError(
            f"{target.path} is of an earlier topic {target.topic}, by the topic id in it: its node would set it aside. "
            f"Start the node, so that it makes the folder of the topic that there is now, and stop it."
        )
    if target.topic.startswith("__"):
        raise OfflineError(f"{target.topic} is the cluster's own: what is in it means something there only.")
    _check_empty(files, target.path)
    new, aside = (
        f"{directory.path}/{moved_folder_name(*target.key, FolderKind.DELETED, draw_id(random))}" for _ in range(2)
    )
    try:
        result = _write(files, archive, target, topic_id, config, new, now_ms)
    except BaseException:
        if files.exists(new):
            files.remove_tree(new)
        raise
    manifest = result.manifest
    if manifest.has_gaps:
        # Else a start after a kill would take the gaps for lost batches.
        _write_offset(directory, CLEANER_OFFSETS, target, manifest.end_offset)
    files.rename(target.path, aside)
    files.rename(new, target.path)
    files.sync_directory(directory.path)
    _write_offset(directory, LOG_START_OFFSETS, target, manifest.start_offset)
    files.remove_tree(aside)
    files.sync_directory(directory.path)
    return result


def _check_empty(files: Files, path: str) -> None:
    for base_offset in offsets_with(files.list_directory(path), LOG):
        if base_offset or files.size(f"{path}/{base_offset:020d}{LOG}"):
            raise OfflineError(
                f"{path} has, or had, records: an archive goes into a partition without a history. Create a "
                f"topic for it."
            )


def _write_offset(directory: LogDirectory, name: str, target: ClosedPartition, offset: int) -> None:
    directory.write_offsets(name, {**directory.checkpointed[name], target.key: offset})


def _write(
    files: Files,
    archive: str,
    target: ClosedPartition,
    topic_id: TopicId,
    config: LogConfig,
    folder: str,
    now_ms: int,
) -> PartitionImport:
    members = archive_members(files, archive)
    manifest = _read_manifest(archive, members)
    importer = _Importer(manifest)
    log: Log | None = None
    pending: list[bytes] = []
    pending_bytes = 0
    try:
        for batch, header in importer.batches(members):
            if log is None:
                log = Log.open(
                    files,
                    folder,
                    topic=target.topic,
                    partition=target.partition,
                    topic_id=topic_id,
                    config=config,
                    log_start_offset=min(manifest.start_offset, header.base_offset),
                    is_clean=True,
                    now_ms=now_ms,
                )
            pending.append(batch)
            pending_bytes += len(batch)
            if pending_bytes >= _APPENDED_BYTES:
                log.append_as_follower(b"".join(pending), now_ms=now_ms)
                pending, pending_bytes = [], 0
        if log is None:
            raise OfflineError(f"{archive} has no record: there is nothing to import.")
        if pending:
            log.append_as_follower(b"".join(pending), now_ms=now_ms)
        if log.log_end_offset != manifest.end_offset:
            raise CorruptData(f"{archive} ends at offset {log.log_end_offset}, not at {manifest.end_offset}")
        log.flush()
        log.close()
        files.sync_directory(folder)
    except KafkaError as error:
        raise CorruptData(f"{archive} cannot be imported: {error}") from error
    finally:
        if log is not None:
            log.close_files()
    return PartitionImport(manifest=manifest, kept_records=importer.kept_records, size_bytes=log.size_bytes)


def _read_manifest(archive: str, members: Iterator[ArchiveMember]) -> Manifest:
    first = next(members, None)
    if first is None or first.name != MANIFEST or first.size > MANIFEST_BYTES_MAX:
        raise CorruptData(f"{archive} is no archive of a partition: it does not begin with {MANIFEST}")
    data = first.read(first.size)
    second = next(members, None)
    if second is None or second.name != DIGEST or second.size > _DIGEST_BYTES_MAX:
        raise CorruptData(f"{archive} has no {DIGEST} behind {MANIFEST}")
    return decode_manifest(data, second.read(second.size))


class _Importer:
    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._transactions = CleanedTransactions(
            AbortedTransaction(one.producer_id, one.first_offset, one.last_offset, -1) for one in manifest.aborted
        )
        self.kept_records = 0

    def batches(self, members: Iterator[ArchiveMember]) -> Iterator[tuple[bytes, BatchHeader]]:
        """For the target, each with the header that it had. CorruptData."""
        for segment in self._manifest.segments:
            member = next(members, None)
            if member is None or (member.name, member.size) != (segment.name, segment.size_bytes):
                raise CorruptData(f"the archive lacks {segment.name} with {segment.size_bytes} bytes")
            if base_offset_of(segment.name) is None:
                raise CorruptData(f"{segment.name} is no name of a segment")
            yield from self._batches_of(member)
            if member.sha256.hexdigest() != segment.sha256:
                raise CorruptData(f"{segment.name} in the archive does not have its SHA-256")
        if next(members, None) is not None:
            raise CorruptData("the archive has more than its manifest says")

    def _batches_of(self, member: ArchiveMember) -> Iterator[tuple[bytes, BatchHeader]]:
        left = member.size
        while left:
            head = member.read(min(HEADER_SIZE, left))
            header = read_header(head, 0)
            if header.size_bytes > min(left, _BATCH_BYTES_MAX):
                raise CorruptData(f"{member.name} in the archive: a batch of {header.size_bytes} bytes is cut off")
            batch = head + member.read(header.size_bytes - HEADER_SIZE)
            left -= header.size_bytes
            if not is_crc_valid(batch, 0, header):
                raise CorruptData(
                    f"{member.name} in the archive: the batch at {header.base_offset} does not have its CRC"
                )
            has_records = self._may_be_read(batch, header)
            if header.last_offset < self._manifest.start_offset:
                continue
            if has_records:
                self.kept_records += header.record_count
            yield plain_batch(batch, header, has_records=has_records), header

    def _may_be_read(self, batch: bytes, header: BatchHeader) -> bool:
        transactions = self._transactions
        if header.is_control:
            if header.has_producer_id:
                transactions.is_ended(header, read_end_transaction_marker(batch, header))
            return False
        return not transactions.is_aborted(header)
