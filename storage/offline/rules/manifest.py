"""The first member of a partition's archive, `manifest.json`, and behind it its own digest, `manifest.sha256`.

Segments follow, in offset order, each as in the folder.

Indexes, producer snapshots and leader epochs stay behind: they are made anew from the batches.
"""

from hashlib import sha256
from typing import Final

from msgspec import DecodeError, Struct, ValidationError, json

from ....protocol.errors import CorruptData

MANIFEST: Final = "manifest.json"
DIGEST: Final = "manifest.sha256"
FORMAT: Final = "penstock partition archive"
VERSION: Final = 1
MANIFEST_BYTES_MAX: Final = 256 * 1024 * 1024


class ArchivedSegment(Struct, frozen=True, kw_only=True):
    name: str
    size_bytes: int
    """Of the part that is committed and decided."""
    sha256: str


class ArchivedAbort(Struct, frozen=True, kw_only=True, array_like=True):
    """A transaction of whose records none may be read."""

    producer_id: int
    first_offset: int
    last_offset: int


class Manifest(Struct, frozen=True, kw_only=True):
    format: str = FORMAT
    version: int = VERSION
    topic: str
    partition: int
    topic_id: str | None
    cluster_id: str | None
    created_ms: int
    start_offset: int
    end_offset: int
    """Exclusive: the last stable offset below the high watermark, at the end of a batch."""
    batches: int
    records: int
    """Markers of transactions are counted, too."""
    has_gaps: bool
    """Compaction has taken offsets."""
    aborted: tuple[ArchivedAbort, ...]
    segments: tuple[ArchivedSegment, ...]


_MANIFESTS: Final = json.Decoder(Manifest)


def encode_manifest(manifest: Manifest) -> bytes:
    return json.format(json.encode(manifest), indent=1) + b"\n"


def digest_of(manifest: bytes) -> bytes:
    """What the second member has: in hexadecimal, a line."""
    return sha256(manifest).hexdigest().encode() + b"\n"


def decode_manifest(data: bytes, digest: bytes) -> Manifest:
    """CorruptData when it is not the manifest of an archive, or of one that a later release has made."""
    if digest != digest_of(data):
        raise CorruptData(f"{MANIFEST} does not have the SHA-256 of {DIGEST}")
    try:
        manifest = _MANIFESTS.decode(data)
    except (DecodeError, ValidationError) as error:
        raise CorruptData(f"{MANIFEST} cannot be read: {error}") from None
    if manifest.format != FORMAT or manifest.version != VERSION:
        raise CorruptData(f"{MANIFEST} says {manifest.format!r} version {manifest.version}, not {FORMAT!r} {VERSION}")
    return manifest
