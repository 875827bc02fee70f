"""A partition's folder as one archive. The folder is only read, and a node may run meanwhile.

What is archived is committed and decided: batches below the high watermark and below the first open transaction.
"""

from msgspec import Struct

from ...protocol.errors import ConfigError, CorruptData
from ...protocol.ids import TopicId
from ..directories.rules.checkpoints import HIGH_WATERMARKS, LOG_START_OFFSETS, decode_offsets
from ..directories.rules.folder_names import FolderKind, parse_folder_name
from ..directories.rules.meta_properties import META_PROPERTIES, decode_meta_properties, uuid_text
from ..disk.files import Files
from ..inspection.folder_check import check_folder
from ..inspection.rules.batch_history import BatchHistory
from ..inspection.rules.report import Report
from ..inspection.segment_check import read_batches
from ..log.partition_metadata import read_topic_id
from ..log.rules.aborted_transaction import AbortedTransaction
from ..log.rules.control_records import read_end_transaction_marker
from ..log.rules.file_names import LOG, offsets_with, segment_file
from .archive_file import HashedRange, new_archive
from .closed_directory import OfflineError
from .rules.manifest import DIGEST, MANIFEST, ArchivedAbort, ArchivedSegment, Manifest, digest_of, encode_manifest

_CHUNK_BYTES = 1024 * 1024


class ExportSource(Struct, frozen=True, kw_only=True):
    """What is known of a folder beside its files."""

    path: str
    topic: str
    partition: int
    topic_id: TopicId | None
    cluster_id: str | None
    log_start_offset: int
    high_watermark: int | None


def export_source(files: Files, path: str) -> ExportSource:
    """OfflineError when `path` is no folder of a partition; CorruptData; OSError."""
    parent, _, name = path.rpartition("/")
    folder = parse_folder_name(name)
    if not files.is_directory(path) or folder is None or folder.kind is not FolderKind.LOG:
        raise OfflineError(f"{path} is no folder of a partition: it is not named topic-partition.")
    meta = f"{parent}/{META_PROPERTIES}"
    try:
        cluster_id = decode_meta_properties(files.read(meta), meta).cluster_id if files.exists(meta) else None
    except ConfigError as error:
        raise OfflineError(str(error)) from error
    offsets = {}
    for name in (LOG_START_OFFSETS, HIGH_WATERMARKS):
        checkpoint = f"{parent}/{name}"
        if files.exists(checkpoint):
            offsets[name] = decode_offsets(files.read(checkpoint), checkpoint).get((folder.topic, folder.partition))
    return ExportSource(
        path=path,
        topic=folder.topic,
        partition=folder.partition,
        topic_id=read_topic_id(files, path),
        cluster_id=cluster_id,
        log_start_offset=offsets.get(LOG_START_OFFSETS) or 0,
        high_watermark=offsets.get(HIGH_WATERMARKS),
    )


def export_partition(
    files: Files, source: ExportSource, archive: str, *, created_ms: int, is_compressed: bool
) -> Manifest:
    """Write `archive`, compressed by gzip or not at all. OfflineError, with no archive then; OSError."""
    if source.high_watermark is None:
        raise OfflineError(
            f"It is not known up to which offset {source.path} is committed: its log directory has no checkpoint of "
            f"it yet. Wait a few seconds for the node to write one, stop the node, or say it with --high-watermark."
        )
    report = Report()
    check_folder(files, source.path, report)
    if report.findings:
        raise OfflineError(f"{report.findings[0]}. See `penstock log verify {source.path}`.")
    try:
        manifest = _survey(files, source, source.high_watermark, created_ms)
        with new_archive(files, archive, created_ms=created_ms, is_compressed=is_compressed) as tar:
            encoded = encode_manifest(manifest)
            tar.add_bytes(MANIFEST, encoded)
            tar.add_bytes(DIGEST, digest_of(encoded))
            for segment in manifest.segments:
                file = files.open(f"{source.path}/{segment.name}")
                content = HashedRange(file, segment.size_bytes)
                tar.add(segment.name, segment.size_bytes, content)
                file.close()
                if content.sha256.hexdigest() != segment.sha256:
                    raise OfflineError(f"{source.path}/{segment.name} was exchanged while it was read: export again.")
    except FileNotFoundError as error:
        raise OfflineError(f"{error.filename or source.path} went away while it was read: export again.") from error
    except CorruptData as error:
        raise OfflineError(f"{error}. See `penstock log verify {source.path}`.") from error
    return manifest


def _survey(files: Files, source: ExportSource, high_watermark: int, created_ms: int) -> Manifest:
    bases = offsets_with(files.list_directory(source.path), LOG)
    start_offset = max(source.log_start_offset, bases[0] if bases else 0)
    walk = _Walk(files, source.path, bases)
    history, aborted = walk.run(high_watermark)
    end_offset = min(history.open_transactions.values(), default=high_watermark)
    # Those that began before and were aborted behind are decided, too.
    aborted = [one for one in aborted if one.first_offset < end_offset]
    history, _ = walk.run(end_offset)
    segments = []
    for base_offset, size in walk.sizes.items():
        if not size or walk.ends[base_offset] <= start_offset:
            continue
        file = files.open(segment_file(source.path, base_offset, LOG))
        content = HashedRange(file, size)
        while content.read(_CHUNK_BYTES):
            pass
        file.close()
        segments.append(
            ArchivedSegment(name=f"{base_offset:020d}{LOG}", size_bytes=size, sha256=content.sha256.hexdigest())
        )
    return Manifest(
        topic=source.topic,
        partition=source.partition,
        topic_id=None if source.topic_id is None else uuid_text(source.topic_id),
        cluster_id=source.cluster_id,
        created_ms=created_ms,
        start_offset=start_offset,
        end_offset=max(history.next_offset or 0, start_offset),
        batches=walk.batches,
        records=walk.records,
        has_gaps=walk.has_gaps,
        aborted=tuple(
            ArchivedAbort(producer_id=one.producer_id, first_offset=one.first_offset, last_offset=one.last_offset)
            for one in aborted
        ),
        segments=tuple(segments),
    )


class _Walk:
    """All batches up to an offset."""

    def __init__(self, files: Files, path: str, bases: list[int]) -> None:
        self._files = files
        self._path = path
        self._bases = bases
        self.sizes: dict[int, int] = {}
        """How many bytes of each segment are below the offset."""
        self.ends: dict[int, int] = {}
        self.batches = self.records = 0
        self.has_gaps = False

    def run(self, end_offset: int) -> tuple[BatchHistory, list[AbortedTransaction]]:
        """CorruptData; OSError."""
        history = BatchHistory()
        aborted = []
        self.batches = self.records = 0
        self.has_gaps = False
        for base_offset in self._bases:
            path = segment_file(self._path, base_offset, LOG)
            size = 0
            report = Report()
            for batch in read_batches(self._files.open(path), self._files.size(path), report, is_last=True):
                header = batch.header
                if header.next_offset > end_offset:
                    break
                if history.next_offset is not None and header.base_offset != history.next_offset:
                    self.has_gaps = True
                marker = None
                if header.is_control and header.has_producer_id:
                    marker = read_end_transaction_marker(batch.data, header)
                transaction = history.add(header, marker)
                if transaction is not None and transaction.first_offset >= 0:
                    aborted.append(transaction)
                self.batches += 1
                self.records += header.record_count
                size = batch.position + header.size_bytes
            if report.findings:
                raise CorruptData(str(report.findings[0]))
            self.sizes[base_offset] = size
            self.ends[base_offset] = history.next_offset or base_offset
        return history, aborted
