"""One row of fields for each batch, record, entry of a log's files: one line of JSON, or of text in that order."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ....protocol.batches import BatchHeader
from ....protocol.compression import Compression
from ....protocol.records import Record
from ...log.rules.aborted_transaction import AbortedTransaction
from ...log.rules.producer_entry import ProducerEntry
from ...log.rules.producer_state import EndTransactionMarker

Row: TypeAlias = dict[str, Any]
Decoder: TypeAlias = Callable[[bytes | None, bytes | None], Mapping[str, Any]]
"""What key and value of a record mean. CorruptData when they are not of that kind."""

_CODECS: Final = {int(codec): codec.name.lower() for codec in Compression}


def batch_row(header: BatchHeader, position: int) -> Row:
    row: Row = {
        "kind": "batch",
        "position": position,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "record_count": header.record_count,
        "size_bytes": header.size_bytes,
        "leader_epoch": header.partition_leader_epoch,
        "crc": header.crc,
        "compression": _CODECS.get(header.compression, str(header.compression)),
        "timestamp_type": "LogAppendTime" if header.is_log_append_time else "CreateTime",
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
    }
    if header.delete_horizon_ms is not None:
        row["delete_horizon_ms"] = header.delete_horizon_ms
    return row


def record_row(record: Record, decoded: Mapping[str, Any] | None) -> Row:
    """With `decoded` in place of key and value. A tombstone's value is null."""
    row: Row = {"kind": "record", "offset": record.offset, "timestamp": record.timestamp_ms}
    if decoded is not None:
        row.update(decoded)
    else:
        _put_bytes(row, "key", record.key)
        _put_bytes(row, "value", record.value)
    if record.headers:
        headers = []
        for name, value in record.headers:
            header: Row = {}
            _put_bytes(header, "key", name.encode("utf-8", "surrogateescape"))
            _put_bytes(header, "value", value)
            headers.append(header)
        row["headers"] = headers
    return row


def marker_row(offset: int, marker: EndTransactionMarker) -> Row:
    return {
        "kind": "marker",
        "offset": offset,
        "timestamp": marker.timestamp,
        "type": "ABORT" if marker.is_abort else "COMMIT",
        "coordinator_epoch": marker.coordinator_epoch,
    }


def aborted_row(transaction: AbortedTransaction) -> Row:
    return {"kind": "aborted_transaction", **transaction._asdict()}


def producer_row(entry: ProducerEntry) -> Row:
    last = entry.last_batch
    return {
        "kind": "producer",
        "producer_id": entry.producer_id,
        "producer_epoch": entry.epoch,
        "last_sequence": entry.last_sequence,
        "last_offset": None if last is None else last.last_offset,
        "last_timestamp": entry.last_timestamp,
        "coordinator_epoch": entry.coordinator_epoch,
        "transaction_first_offset": entry.transaction_first_offset,
        "batches": [batch._asdict() for batch in entry.batches],
    }


def as_text(row: Row) -> str:
    """A line for a person: fields by name, as Apache Kafka's tool has them; records are indented."""
    kind = row["kind"]
    fields = " ".join(f"{name}: {_shown(value)}" for name, value in row.items() if name != "kind")
    return f"| {fields}" if kind in ("record", "marker") else f"{kind} {fields}"


def _shown(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            # A value may have line breaks and escape sequences for terminals.
            return value if value.isprintable() else json.dumps(value)
        case dict() | list():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)


def _put_bytes(row: Row, name: str, data: bytes | None) -> None:
    if data is None:
        row[name] = None
        return
    try:
        row[name] = data.decode()
    except UnicodeDecodeError:
        row[f"{name}_base64"] = b64encode(data).decode()
