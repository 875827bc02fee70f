"""The last offset of each key in the dirty part of a log. Kafka: `Cleaner.buildOffsetMap`."""

from ..log.rules.aborted_transaction import AbortedTransaction
from ..log.rules.control_records import read_end_transaction_marker
from .rules.batch_filter import open_table
from .rules.cleaned_transactions import CleanedTransactions
from .rules.job import CompactionJob
from .rules.latest_offsets import LatestOffsets
from .sources import Sources


def find_latest_offsets(sources: Sources, job: CompactionJob, aborted: list[AbortedTransaction]) -> LatestOffsets:
    """Of as many batches from `dirty_offset` on as `map_bytes` are enough for, one at least. CorruptData, OSError."""
    dirty_offset = job.dirty_offset
    latest = LatestOffsets(dirty_offset, max_bytes=job.map_bytes)
    # Those that ended before would make their producers' later batches look aborted.
    transactions = CleanedTransactions(one for one in aborted if one.last_offset >= dirty_offset)
    for segment, next_base in sources.with_ends():
        if next_base <= dirty_offset:
            continue
        position = sources.position_of(segment, dirty_offset) if segment.base_offset < dirty_offset else 0
        for batch in sources.batches(segment, position):
            header = batch.header
            if header.next_offset <= dirty_offset:
                continue
            if latest.is_full:
                return latest
            # What was aborted is no value, and a marker has no key.
            if header.is_control:
                transactions.is_ended(header, read_end_transaction_marker(batch.data, header))
            elif not transactions.is_aborted(header):
                latest.add(open_table(batch), dirty_offset)
            latest.end_offset = header.next_offset
        # An earlier compaction may have taken offsets from its end.
        latest.end_offset = next_base
    return latest
