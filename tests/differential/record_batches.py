"""Record batches that the scripts send: good ones, and ones with a single thing wrong."""

from __future__ import annotations

import struct

from crc32c import crc32c

from penstock.protocol.records import Record, write_batch


def batch(base_ms: int, count: int = 1, *, word: str = "value", step_ms: int = 1, **options: int) -> bytes:
    """`count` records with keys, rising times from `base_ms`, and what `write_batch` offers."""
    records = [Record(n, base_ms + n * step_ms, b"key", f"{word} {n}".encode()) for n in range(count)]
    return write_batch(records, **options)  # type: ignore[arg-type]  # only numbers are given


def patched(data: bytes, position: int, layout: str, *values: int) -> bytes:
    """With other bytes at `position`, and a checksum that says nothing is wrong."""
    new = struct.pack(">" + layout, *values)
    changed = data[:position] + new + data[position + len(new) :]
    return changed[:17] + struct.pack(">I", crc32c(changed[21:])) + changed[21:]


def raw_patched(data: bytes, position: int, new: bytes) -> bytes:
    """With other bytes at `position`, and the checksum as it was."""
    return data[:position] + new + data[position + len(new) :]
