"""What one scrub is asked, and what it answers: all that passes between the owner of a log and who scrubs it."""

from enum import StrEnum

from msgspec import Struct

from ...log.rules.aborted_transaction import AbortedTransaction
from ...log.rules.closed_segment import ClosedSegment


class ScrubJob(Struct, frozen=True, kw_only=True):
    directory: str
    """The partition's folder."""
    segments: tuple[ClosedSegment, ...]
    """In offset order, each where the one before ends."""
    end_offset: int
    """Where the next segment begins; the log end offset when `has_active`."""
    log_start_offset: int
    leader_epochs: tuple[tuple[int, int], ...]
    """(epoch, start offset), as the partition knows them, from the log start on."""
    index_interval_bytes: int
    """Where there are more, an offset index has an entry."""
    has_active: bool
    """The last of `segments` is what the active segment had by now. Its indexes are not looked at: their newest entries
    are in the owner's memory."""
    may_have_gaps: bool
    """Offsets may be missing between segments: Apache Kafka's compaction leaves that."""


class DamagedPart(StrEnum):
    BATCHES = "batches"
    OFFSET_INDEX = "offset index"
    TIME_INDEX = "time index"
    TRANSACTION_INDEX = "transaction index"
    PRODUCER_SNAPSHOT = "producer snapshot"
    LEADER_EPOCHS = "leader epochs"


class Finding(Struct, frozen=True, kw_only=True):
    """Damage. What lies behind it in the segment is not looked at when it is in the batches."""

    part: DamagedPart
    base_offset: int
    """Of the segment; of a snapshot, its offset."""
    size_bytes: int
    """Of the segment, as the job has it."""
    offset: int
    """Up to there the batches are intact."""
    reason: str
    aborted: tuple[AbortedTransaction, ...] = ()
    """What the transaction index should have."""
    leader_epochs: tuple[tuple[int, int], ...] = ()
    """What is known of the log's batches up to `offset`."""


class Scrubbed(Struct, frozen=True, kw_only=True):
    """The end of a scrub."""

    segment_count: int
    read_bytes: int
