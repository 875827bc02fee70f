"""Compares what a simulated node remembers of a log with the log's files (`chaos/checkers/log_memory.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ....storage.disk.memory_files import MemoryFiles
from ....storage.log.log import Log
from ....storage.log.rules.producer_entry import BatchMetadata
from ...checkers.log_files import read_log, swapped
from ...checkers.log_memory import LogMemory, RememberedBatch, RememberedProducer, judge_memory, read_transaction_index

_LOG = ".log"
_SWAP = ".log.swap"
_TRANSACTION_INDEX = ".txnindex"
_NO_SEQUENCE = -1


def look_at_memory(
    log: Log,
    files: MemoryFiles,
    *,
    is_index_written: bool,
    is_compacted: bool = False,
    was_appended: Callable[[int, int], bool] = lambda _first, _last: False,
) -> Iterator[str]:
    """Yields sentences. `is_index_written`: no aborted transactions wait in memory to be written. `was_appended`: there
    was a batch in this partition with this first and last offset, which may be compacted."""
    if log.damage is not None:
        return
    producers = {
        producer_id: RememberedProducer(
            entry.epoch,
            tuple(_batch(batch) for batch in entry.batches),
            entry.transaction_first_offset,
        )
        for producer_id, entry in log.producers.entries.items()
    }
    indexes = _files_of(log, files, _TRANSACTION_INDEX) | _files_of(log, files, f"{_TRANSACTION_INDEX}.swap")
    aborted = read_transaction_index(indexes.values()) if is_index_written else None
    # Of what only the tier has, the judge of replicas tells.
    start_offset = log.local_log_start_offset
    segments = swapped(_files_of(log, files, _LOG), _files_of(log, files, _SWAP) if is_compacted else {})
    yield from judge_memory(
        read_log(segments, is_compacted=is_compacted),
        LogMemory(log.leader_epochs.entries_in(start_offset, log.log_end_offset + 1), producers, aborted),
        start_offset=start_offset,
        end_offset=log.log_end_offset,
        is_compacted=is_compacted,
        was_appended=lambda batch: was_appended(batch.base_offset, batch.last_offset),
    )


def _batch(batch: BatchMetadata) -> RememberedBatch:
    # Of one without sequences a snapshot tells only that it has no last one.
    sequence = batch.first_sequence if batch.last_sequence >= 0 else _NO_SEQUENCE
    return RememberedBatch(sequence, batch.first_offset, batch.last_offset)


def _files_of(log: Log, files: MemoryFiles, suffix: str) -> dict[int, bytes]:
    """By base offset, without those of segments that are deleted."""
    found = {}
    for name in files.look_into(log.directory):
        stem = name.removesuffix(suffix)
        if stem != name and stem.isdigit() and int(stem) >= log.first_segment_base_offset:
            found[int(stem)] = bytes(files.look(f"{log.directory}/{name}") or b"")
    return found
