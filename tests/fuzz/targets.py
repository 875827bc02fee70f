"""The readers that strangers and damaged disks feed, each with its seeds and its promise about memory.

A target takes bytes and returns. It fails by any exception that its reader does not document, by an AssertionError when
what was accepted is not read again as the same, and by reserving more than `base_bytes + bytes_per_byte * input`.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import authentication_targets as authentication
import protocol_targets as protocol
import storage_targets as storage

KIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One reader, or a family of them."""

    name: str
    read: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]
    base_bytes: int
    """Of Python memory that any input may take, for what is done with it here, errors and their sentences included."""
    bytes_per_byte: int
    """And further for each byte of it: decoded values are objects."""

    def check(self, data: bytes) -> None:
        """Feed it. The caller has started tracemalloc, or memory is not looked at."""
        taken_bytes = self._taken_bytes(data)
        allowed_bytes = self.base_bytes + self.bytes_per_byte * len(data)
        if taken_bytes > allowed_bytes:
            # A module that is loaded or a table that is made at first use is not the input's: once more without.
            taken_bytes = self._taken_bytes(data)
        assert taken_bytes <= allowed_bytes, (
            f"{self.name} took {taken_bytes} bytes for {len(data)}, at most {allowed_bytes} are allowed"
        )

    def _taken_bytes(self, data: bytes) -> int:
        if tracemalloc.is_tracing():
            tracemalloc.reset_peak()
        before_bytes, _ = tracemalloc.get_traced_memory()
        self.read(data)
        _, peak_bytes = tracemalloc.get_traced_memory()
        return peak_bytes - before_bytes


# What a reader reserves, its writer and its reader once more.
_ALL = (
    Target(
        name="requests",
        read=protocol.read_request,
        seeds=protocol.request_seeds,
        base_bytes=64 * KIB,
        bytes_per_byte=256,
    ),
    Target(
        name="responses",
        read=protocol.read_response,
        seeds=protocol.response_seeds,
        base_bytes=64 * KIB,
        bytes_per_byte=256,
    ),
    Target(
        name="batches", read=protocol.read_batches, seeds=protocol.batch_seeds, base_bytes=64 * KIB, bytes_per_byte=16
    ),
    Target(
        name="records",
        read=protocol.read_batch_records,
        seeds=protocol.batch_seeds,
        base_bytes=64 * protocol.UNCOMPRESSED_MAX,
        bytes_per_byte=256,
    ),
    Target(
        name="validation",
        read=protocol.validate_batch,
        seeds=protocol.validation_seeds,
        base_bytes=64 * protocol.UNCOMPRESSED_MAX,
        bytes_per_byte=256,
    ),
    Target(
        name="compression",
        read=protocol.unpack,
        seeds=protocol.compression_seeds,
        base_bytes=8 * protocol.UNCOMPRESSED_MAX,
        bytes_per_byte=16,
    ),
    Target(
        name="metadata-records",
        read=storage.read_metadata_entry,
        seeds=lambda: storage.entry_seeds() + storage.deep_seeds(),
        base_bytes=128 * KIB,
        bytes_per_byte=256,
    ),
    Target(
        name="journal", read=storage.read_journal, seeds=storage.journal_seeds, base_bytes=128 * KIB, bytes_per_byte=256
    ),
    Target(
        name="metadata-snapshot",
        read=storage.read_metadata_snapshot,
        seeds=storage.snapshot_seeds,
        base_bytes=128 * KIB,
        bytes_per_byte=256,
    ),
    Target(
        name="small-files",
        read=storage.read_small_file,
        seeds=storage.small_file_seeds,
        base_bytes=64 * KIB,
        bytes_per_byte=256,
    ),
    Target(
        name="certificates",
        read=authentication.read_certificate,
        seeds=authentication.certificate_seeds,
        base_bytes=64 * KIB,
        bytes_per_byte=256,
    ),
    Target(
        name="jaas",
        read=authentication.read_jaas,
        seeds=authentication.jaas_seeds,
        base_bytes=64 * KIB,
        bytes_per_byte=512,
    ),
    Target(
        name="sasl-plain",
        read=authentication.read_plain,
        seeds=authentication.plain_seeds,
        base_bytes=64 * KIB,
        bytes_per_byte=256,
    ),
    Target(
        name="sasl-scram",
        read=authentication.read_scram,
        seeds=authentication.scram_seeds,
        base_bytes=64 * KIB,
        bytes_per_byte=256,
    ),
    Target(
        name="sasl-bearer",
        read=authentication.read_bearer,
        seeds=authentication.bearer_seeds,
        base_bytes=64 * KIB,
        bytes_per_byte=256,
    ),
    Target(
        name="authorization-header",
        read=authentication.read_header,
        seeds=authentication.header_seeds,
        base_bytes=64 * KIB,
        bytes_per_byte=256,
    ),
    Target(
        name="key-sets",
        read=authentication.read_keys,
        seeds=authentication.key_seeds,
        base_bytes=128 * KIB,
        bytes_per_byte=256,
    ),
)
TARGETS: Mapping[str, Target] = {target.name: target for target in _ALL}
