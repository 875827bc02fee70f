"""What lies on disk and may come back changed: metadata records, the journal, snapshots, checkpoints, small files."""

from __future__ import annotations

import struct
from random import Random
from uuid import UUID

import cbor2
from typed_ids import node_ids

from penstock.protocol.errors import ConfigError, CorruptData
from penstock.protocol.ids import BrokerEpoch, ControllerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicId
from penstock.quorum.metadata import records
from penstock.quorum.metadata.record_codec import Entry as MetadataEntry
from penstock.quorum.metadata.record_codec import UnknownRecord, decode_entry, encode_entry, encode_record
from penstock.quorum.raft.consensus import ConsensusFailed
from penstock.quorum.raft.frames import encode_frame, scan_frames
from penstock.quorum.raft.journal_items import LogEntry, Term
from penstock.quorum.voter.journal import Journal
from penstock.quorum.voter.snapshots import Snapshots, SnapshotWriter
from penstock.storage.directories.rules.checkpoints import decode_offsets, encode_offsets
from penstock.storage.directories.rules.clean_shutdown import decode_clean_shutdown, encode_clean_shutdown
from penstock.storage.directories.rules.meta_properties import (
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
)
from penstock.storage.directories.rules.start_count import decode_start_count, encode_start_count
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.leader_epochs import decode_leader_epochs, encode_leader_epochs
from penstock.storage.log.partition_metadata import decode_partition_metadata, encode_partition_metadata
from penstock.storage.log.producer_snapshots import decode_snapshot, encode_snapshot
from penstock.storage.log.rules.producer_entry import BatchMetadata, ProducerEntry

_DIRECTORY = "/metadata"
_JOURNAL = f"{_DIRECTORY}/{0:020}.journal"
_SNAPSHOT = f"{_DIRECTORY}/{7:020}-{3:010}.checkpoint"
_LENGTH = struct.Struct(">H")
_ID = TopicId(UUID("b2698a74-0e10-8d65-9981-c07acf362664"))


def read_metadata_entry(data: bytes) -> None:
    """One entry of the metadata log: CBOR."""
    try:
        entry = decode_entry(data)
    except (CorruptData, UnknownRecord):
        return
    written = _written_entry(entry)
    # Not compared as values: one number is not equal to itself.
    assert _written_entry(decode_entry(written)) == written


def read_journal(data: bytes) -> None:
    """A segment: raw, or by its first byte as frames of good form around payloads that are not."""
    files = MemoryFiles()
    files.make_directories(_DIRECTORY)
    content = _framed(data[1:]) if data[:1] == b"\1" else data[1:]
    files.write(_JOURNAL, content)
    journal = Journal(files, _DIRECTORY, reserve_bytes=0)
    try:
        entries = journal.recover().entries
    except ConsensusFailed:
        return
    assert [entry.offset for entry in entries] == list(range(journal.start_offset, journal.end_offset))
    journal.write([LogEntry(journal.end_offset, journal.last_epoch, b"next")])
    again = Journal(files, _DIRECTORY, reserve_bytes=0)
    assert again.recover().entries[:-1] == entries
    assert again.term == journal.term


def read_metadata_snapshot(data: bytes) -> None:
    """A snapshot, raw or framed as the journal above."""
    files = MemoryFiles()
    files.make_directories(_DIRECTORY)
    files.write(_SNAPSHOT, _framed(data[1:]) if data[:1] == b"\1" else data[1:])
    try:
        snapshot = Snapshots(files, _DIRECTORY).latest()
    except ConsensusFailed:
        return
    assert snapshot is not None
    assert (snapshot.end_offset, snapshot.epoch) == (7, 3)


def read_small_file(data: bytes) -> None:
    """One byte that chooses which, then the file."""
    path, content = "/data/file", data[1:]
    try:
        match data[:1]:
            case b"\0":
                offsets = decode_offsets(content, path)
                assert decode_offsets(encode_offsets(offsets.items()), path) == offsets
            case b"\1":
                epochs = decode_leader_epochs(content, path)
                assert decode_leader_epochs(encode_leader_epochs(epochs), path) == epochs
            case b"\2":
                topic_id = decode_partition_metadata(content, path)
                assert (
                    topic_id is None or decode_partition_metadata(encode_partition_metadata(topic_id), path) == topic_id
                )
            case b"\3":
                entries, completed, _ = decode_snapshot(content, path)
                again = encode_snapshot(entries, completed)
                assert encode_snapshot(*decode_snapshot(again, path)[:2]) == again
            case b"\4":
                properties = decode_meta_properties(content, path)
                assert decode_meta_properties(encode_meta_properties(properties), path) == properties
            case b"\5":
                epoch = decode_clean_shutdown(content)
                assert epoch is None or decode_clean_shutdown(encode_clean_shutdown(epoch)) == epoch
            case b"\6":
                count = decode_start_count(content)
                assert decode_start_count(encode_start_count(count)) == count
            case _:
                pass
    except (CorruptData, ConfigError):
        return


def entry_seeds() -> list[bytes]:
    some = (
        records.FeatureLevelRecord(name="metadata.version", feature_level=29),
        records.ClusterRecord(cluster_id="fuzz"),
        records.TopicRecord(name="orders", topic_id=_ID),
        records.PartitionRecord(
            topic_id=_ID, partition_id=3, replicas=node_ids(1, 2), isr=node_ids(1), leader=NodeId(1),
            leader_epoch=LeaderEpoch(4), partition_epoch=PartitionEpoch(5), directories=(_ID, _ID),
        ),
        records.ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1"),
        records.ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value=None),
        records.ProducerIdsRecord(broker_id=NodeId(1), broker_epoch=BrokerEpoch(9), next_producer_id=1000),
    )  # fmt: skip
    seeds = [encode_entry(1_700_000_000_000, [encode_record(record)]) for record in some]
    return [*seeds, encode_entry(5, [encode_record(record) for record in some]), encode_entry(5, [])]


def journal_seeds() -> list[bytes]:
    files = MemoryFiles()
    files.make_directories(_DIRECTORY)
    journal = Journal(files, _DIRECTORY, reserve_bytes=0)
    assert journal.recover().entries == []
    journal.write([Term(3, 1)])
    for offset, command in enumerate(entry_seeds()):
        journal.write([LogEntry(offset, 3, command)])
    whole = files.read(_JOURNAL)
    return [b"\0" + whole, b"\0" + whole[:-5], b"\1" + _unframed(whole)]


def snapshot_seeds() -> list[bytes]:
    files = MemoryFiles()
    files.make_directories(_DIRECTORY)
    writer = SnapshotWriter(files, _DIRECTORY, end_offset=7, epoch=ControllerEpoch(3))
    writer.append(entry_seeds())
    writer.finish()
    whole = files.read(_SNAPSHOT)
    return [b"\0" + whole, b"\1" + _unframed(whole)]


def small_file_seeds() -> list[bytes]:
    source = Random(1)
    batches = [BatchMetadata(1, 3, 90, 92, 5), BatchMetadata(4, 9, 100, 105, 1_700_000_000_000)]
    entry = ProducerEntry(7, epoch=1, coordinator_epoch=-1, last_timestamp=5, appended_ms=6, batches=batches)
    return [
        b"\0" + encode_offsets([(("orders", 0), 118), (("orders", 1), source.getrandbits(60))]),
        b"\1" + encode_leader_epochs(((0, 0), (3, 118))),
        b"\2" + encode_partition_metadata(_ID),
        b"\3" + encode_snapshot([entry, entry], {80: 93}),
        b"\4" + encode_meta_properties(MetaProperties(cluster_id="fuzz", node_id=NodeId(1), directory_id=_ID)),
        b"\5" + encode_clean_shutdown(BrokerEpoch(7)),
        b"\6" + encode_start_count(7),
    ]


def _written_entry(entry: MetadataEntry) -> bytes:
    return encode_entry(entry.timestamp_ms, [encode_record(record) for record in entry.records])


def _framed(data: bytes) -> bytes:
    """Frames in sequence, with their checksums, around payloads that `data` holds, each behind its length."""
    frames: list[bytes] = []
    position = 0
    while position + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        frames.append(encode_frame(len(frames), data[position : position + length]))
        position += length
    return b"".join(frames)


def _unframed(data: bytes) -> bytes:
    return b"".join(_LENGTH.pack(len(frame.payload)) + frame.payload for frame in scan_frames(data, None, "").frames)


def deep_seeds() -> list[bytes]:
    """CBOR that is hostile to readers of CBOR: deep, self-referring, of announced sizes that are not there."""
    return [
        b"\x81" * 2000,
        b"\xd8\x1c\x81\xd8\x1d\x00",
        b"\x9b" + b"\x7f" + b"\xff" * 7,
        b"\x5b" + b"\x7f" + b"\xff" * 7,
        cbor2.dumps([1, 5, [[1, 0, {0: {"a": [1.5, None, b""]}}]]]),
    ]
