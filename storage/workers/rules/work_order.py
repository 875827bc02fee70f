"""What a node and its worker tell each other: one JSON object a line, either way."""

from errno import EIO
from typing import Final, Literal

from msgspec import Struct
from msgspec.json import Decoder, Encoder

from ....protocol.errors import CorruptData
from ...compaction.rules.job import CleanedSegment, Compacted, CompactionJob
from ...disk.rules.disk_errors import ClosedError, ReadError, SyncError
from ...scrubbing.rules.scrub_job import Finding, Scrubbed, ScrubJob


class WorkOrder(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of the two jobs."""

    compaction: CompactionJob | None = None
    scrub: ScrubJob | None = None
    bytes_per_s: float


class Failure(Struct, frozen=True, kw_only=True):
    """An exception of `compaction.compact` or `scrub.scrub`."""

    kind: Literal["corrupt", "read", "sync", "closed", "system"]
    message: str
    errno: int = EIO


class WorkAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of these; all but the first and the third end the order."""

    cleaned: CleanedSegment | None = None
    compacted: Compacted | None = None
    finding: Finding | None = None
    scrubbed: Scrubbed | None = None
    failure: Failure | None = None


ENCODER: Final = Encoder()
ORDERS: Final = Decoder(WorkOrder)
ANSWERS: Final = Decoder(WorkAnswer)


def to_answer(result: CleanedSegment | Compacted | Finding | Scrubbed) -> WorkAnswer:
    match result:
        case CleanedSegment():
            return WorkAnswer(cleaned=result)
        case Compacted():
            return WorkAnswer(compacted=result)
        case Finding():
            return WorkAnswer(finding=result)
        case Scrubbed():
            return WorkAnswer(scrubbed=result)


def to_failure(error: CorruptData | OSError) -> Failure:
    if isinstance(error, CorruptData):
        return Failure(kind="corrupt", message=str(error))
    message = error.strerror or str(error)
    if error.filename is not None:
        message = f"{message}: {error.filename}"
    code = error.errno or EIO
    match error:
        case ReadError():
            return Failure(kind="read", message=message, errno=code)
        case SyncError():
            return Failure(kind="sync", message=message, errno=code)
        case ClosedError():
            return Failure(kind="closed", message=message, errno=code)
        case _:
            return Failure(kind="system", message=message, errno=code)


def to_exception(failure: Failure) -> CorruptData | OSError:
    match failure.kind:
        case "corrupt":
            return CorruptData(failure.message)
        case "read":
            return ReadError(failure.errno, failure.message)
        case "sync":
            return SyncError(failure.errno, failure.message)
        case "closed":
            return ClosedError(failure.message)
        case "system":
            return OSError(failure.errno, failure.message)
