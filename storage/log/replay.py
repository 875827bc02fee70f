"""Taking batches that are in a log into the producer state again, and their aborted transactions into the indexes."""

from collections.abc import Sequence

from ...protocol.batches import BatchHeader
from .rules.aborted_transaction import AbortedTransaction
from .rules.control_records import read_end_transaction_marker
from .rules.producer_state import EndTransactionMarker, ProducerState
from .rules.record_batch import StoredBatch
from .segment import Segment
from .segment_scan import scan


def replay_batch(
    batch: StoredBatch, producers: ProducerState, appended_ms: int, index_in: Segment | None = None
) -> None:
    """Take in one batch that was appended at `appended_ms`, or at the latest then.

    An abort that it brings is written to the transaction index of `index_in`, if given.
    """
    header = batch.header
    if header.has_producer_id:
        marker = read_end_transaction_marker(batch.data, header) if header.is_control else None
        apply_batch(header, header.base_offset, header.max_timestamp, marker, producers, appended_ms, index_in)
    producers.end_offset = header.next_offset


def apply_batch(
    header: BatchHeader,
    base_offset: int,
    timestamp: int,
    marker: EndTransactionMarker | None,
    producers: ProducerState,
    appended_ms: int,
    index_in: Segment | None,
) -> None:
    """Takes in a producer's batch, or the `marker` that ends its transaction, at `base_offset`."""
    completed = producers.apply(header, base_offset, timestamp, appended_ms, marker)
    if completed is not None:
        if completed.is_abort and index_in is not None:
            index_in.note_aborted(
                AbortedTransaction(
                    completed.producer_id,
                    completed.first_offset,
                    completed.last_offset,
                    producers.last_stable_offset_after(completed),
                )
            )
        producers.complete(completed)


def replay_segments(segments: Sequence[Segment], producers: ProducerState, end_offset: int, appended_ms: int) -> None:
    """Bring `producers` from where they are to `end_offset`, which the last of `segments` reaches.

    When the batches were appended is not stored with them: at the latest at `appended_ms`.
    """
    for number, segment in enumerate(segments):
        following = segments[number + 1].base_offset if number + 1 < len(segments) else end_offset
        if following <= producers.end_offset:
            continue
        place = segment.locate(producers.end_offset)
        if place is None:
            continue
        for batch in scan(segment.file, place.position, segment.size_bytes):
            if batch.header.base_offset >= end_offset:
                break
            replay_batch(batch, producers, appended_ms)
    producers.end_offset = end_offset
