"""Record batches as plain values: what a fetch brought, header by header and record by record."""

from __future__ import annotations

import hashlib
from typing import Any

from penstock.protocol.batches import HEADER_SIZE, is_crc_valid, iterate_headers
from penstock.protocol.errors import CorruptData
from penstock.protocol.records import read_records


def view(records: bytes | None) -> Any:
    """Every field of every batch; a batch that is cut off shows as its bytes left over.

    The checksum covers producer ids and times, which differ from broker to broker: only its validity is told.
    """
    if not records:
        return None if records is None else []
    batches: list[Any] = []
    end = 0
    try:
        for position, header in iterate_headers(records):
            end = position + header.size_bytes
            if end > len(records):
                end = position
                break
            data = memoryview(records)[position:end]
            batches.append(
                {
                    **{name: value for name, value in header._asdict().items() if name != "crc"},
                    "is_crc_valid": is_crc_valid(records, position, header),
                    "stored": hashlib.sha256(data[HEADER_SIZE:]).hexdigest()[:16],
                    "records": _records(data, header),
                }
            )
    except CorruptData as error:
        batches.append({"corrupt": str(error)})
    if end < len(records):
        batches.append({"left over": len(records) - end})
    return batches


def _records(data: memoryview, header: Any) -> list[Any]:
    found: list[Any] = []
    try:
        for one in read_records(data, header):
            headers = [[key, None if value is None else value.hex()] for key, value in one.headers]
            found.append(
                {
                    "offset": one.offset,
                    "timestamp": one.timestamp_ms,
                    "key": None if one.key is None else _text(one.key),
                    "value": None if one.value is None else _text(one.value),
                    "headers": headers,
                }
            )
    except CorruptData:
        found.append("unreadable")
    return found


def _text(data: bytes) -> str:
    return data.decode("latin-1") if len(data) <= 64 else f"{len(data)} bytes {hashlib.sha256(data).hexdigest()[:8]}"
