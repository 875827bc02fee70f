"""The stages of a record batch on its way into a log, and that none is left out."""

import re
from pathlib import Path
from struct import Struct

import pytest
from produced_batches import produced

import penstock
from penstock.protocol import batches
from penstock.protocol.batches import BatchHeader, Buffer, read_header
from penstock.protocol.records import Record, read_records, write_batch
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.batch_validation import validate_batch, validate_coordinator_batch
from penstock.storage.log.rules.config import LogConfig
from penstock.storage.log.rules.control_records import write_end_transaction_marker
from penstock.storage.log.rules.record_batch import ValidatedBatch
from penstock.storage.log.rules.record_validation import recompress

NOW = 1_700_000_000_000
PARTITION = "t-0"


class CountingStruct:
    def __init__(self, layout: Struct) -> None:
        self.count = 0
        self._layout = layout

    def unpack_from(self, buffer: Buffer, position: int) -> tuple[int, ...]:
        self.count += 1
        return self._layout.unpack_from(buffer, position)


def test_header_of_a_produced_batch_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log.open(
        MemoryFiles(),
        "/t-0",
        topic="t",
        partition=0,
        topic_id=None,
        config=LogConfig(),
        is_clean=True,
        now_ms=NOW,
    )
    sent = write_batch([Record(0, NOW, b"k", b"v")], producer_id=1, producer_epoch=0, base_sequence=0)
    parsed = CountingStruct(batches._HEADER)
    monkeypatch.setattr(batches, "_HEADER", parsed)
    log.append_as_leader(produced(sent), leader_epoch=0, now_ms=NOW)
    assert (log.log_end_offset, parsed.count) == (1, 1)


def test_only_validation_makes_validated_batches() -> None:
    root = Path(next(iter(penstock.__path__)))
    makers = {
        path.name
        for room in ("storage", "quorum", "broker", "chaos")
        for path in (root / room).rglob("*.py")
        if re.search(r"\bValidatedBatch\(", path.read_text())
    }
    assert makers == {"batch_validation.py", "record_validation.py"}


def header_of(batch: ValidatedBatch) -> BatchHeader:
    assert batch.header.size_bytes == len(batch.data)
    return read_header(batch.data, 0)


LEVELS = [
    *(("gzip", "compression_gzip_level", low, high) for low, high in ((1, 2), (1, -1), (-1, 9))),
    *(("lz4", "compression_lz4_level", low, high) for low, high in ((9, 3), (3, 5), (5, 12))),
    *(("zstd", "compression_zstd_level", low, high) for low, high in ((-131072, -5), (-5, 3), (3, 22))),
]


@pytest.mark.parametrize(("codec", "key", "low", "high"), LEVELS)
def test_recompression_obeys_the_level_of_the_topic(codec: str, key: str, low: int, high: int) -> None:
    # KIP-390. lz4's 9 is the fast compressor, as in Apache Kafka.
    rows = [Record(number, NOW, b"%d" % number, b"%d %d" % (number, number * number) * 9) for number in range(2000)]
    sent = produced(write_batch(rows, compression=2))
    sizes = []
    for level in (low, high):
        config = LogConfig(compression_type=codec, **{key: level})  # type: ignore[arg-type]
        stored = recompress(validate_batch(sent, config, PARTITION, NOW), config, PARTITION)
        assert list(read_records(stored.data, stored.header)) == rows
        sizes.append(len(stored.data))
    assert sizes[0] > sizes[1]


def test_a_level_of_another_codec_changes_nothing() -> None:
    sent = produced(write_batch([Record(0, NOW, b"k", b"v" * 1000)], compression=2))
    plain, other = LogConfig(compression_type="zstd"), LogConfig(compression_type="zstd", compression_gzip_level=1)
    assert [
        bytes(recompress(validate_batch(sent, one, PARTITION, NOW), one, PARTITION).data) for one in (plain, other)
    ] == [bytes(recompress(validate_batch(sent, plain, PARTITION, NOW), plain, PARTITION).data)] * 2


@pytest.mark.parametrize("tail", [b"", b"junk"])
def test_header_goes_with_its_bytes(tail: bytes) -> None:
    config = LogConfig(compression_type="lz4")
    sent = write_batch([Record(number, NOW, b"k", b"v" * 100) for number in range(3)])
    validated = validate_batch(produced(sent + tail), config, PARTITION, NOW)
    assert bytes(validated.data) == sent
    assert header_of(validated) == validated.header
    smaller = recompress(validated, config, PARTITION)
    assert len(smaller.data) < len(sent)
    assert header_of(smaller) == smaller.header
    marker = write_end_transaction_marker(1, 0, is_commit=True, coordinator_epoch=0, now_ms=NOW)
    ours = validate_coordinator_batch(marker, config, PARTITION)
    assert header_of(ours) == ours.header
