"""What a replica remembers of its log beside the batches must be what the batches say.

Leader epochs, producers with their last batches and open transactions, and the index of aborted transactions are made
while batches are appended, and made anew when a log is opened or cut. What they say decides where followers cut, which
batches are duplicates and what readers of committed records get, so it is compared with a plain reading of the files.

Of the transaction index (`.txnindex`) each entry is

    version 2, producer id 8, first offset 8, offset of the marker 8, last stable offset 8
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from struct import Struct
from typing import Final, NamedTuple

from .log_files import PlainLog, marker_of

RETAINED_BATCHES: Final = 6
"""Of a producer: it has at most five requests under way, any of which may come again, and follows one before those."""
_NO_PRODUCER: Final = -1
_INDEX_ENTRY: Final = Struct(">hqqqq")


class RememberedBatch(NamedTuple):
    base_sequence: int
    base_offset: int
    last_offset: int


class RememberedProducer(NamedTuple):
    epoch: int
    batches: tuple[RememberedBatch, ...]
    """The last of its epoch, oldest first."""
    open_since: int | None
    """The first offset of its open transaction."""


class AbortedRange(NamedTuple):
    producer_id: int
    first_offset: int
    marker_offset: int


class LogMemory(NamedTuple):
    leader_epochs: Sequence[tuple[int, int]]
    """Epochs and where they begin."""
    producers: Mapping[int, RememberedProducer]
    aborted: Sequence[AbortedRange] | None
    """None when it is not to be judged."""


def memory_of(log: PlainLog) -> LogMemory:
    """What follows from the batches alone."""
    leader_epochs: list[tuple[int, int]] = []
    producers: dict[int, RememberedProducer] = {}
    aborted: list[AbortedRange] = []
    for batch in log.batches:
        if not leader_epochs or batch.leader_epoch > leader_epochs[-1][0]:
            leader_epochs.append((batch.leader_epoch, batch.base_offset))
        if batch.producer_id == _NO_PRODUCER:
            continue
        known = producers.get(batch.producer_id, RememberedProducer(-1, (), None))
        batches = known.batches if known.epoch == batch.producer_epoch else ()
        open_since = known.open_since
        marker = marker_of(batch)
        if marker is not None:
            if open_since is not None and not marker.is_commit:
                aborted.append(AbortedRange(batch.producer_id, open_since, batch.base_offset))
            open_since = None
        else:
            one = RememberedBatch(batch.base_sequence, batch.base_offset, batch.end_offset - 1)
            batches = (*batches, one)[-RETAINED_BATCHES:]
            # Compaction leaves the header of a producer's last batch, of which no record is there.
            if batch.is_transactional and batch.records != () and open_since is None:
                open_since = batch.base_offset
        producers[batch.producer_id] = RememberedProducer(batch.producer_epoch, batches, open_since)
    return LogMemory(leader_epochs, producers, aborted)


def read_transaction_index(files: Iterable[bytes]) -> list[AbortedRange]:
    """Those of a log, in the order of its segments."""
    return [
        AbortedRange(producer_id, first_offset, marker_offset)
        for data in files
        for _, producer_id, first_offset, marker_offset, _ in _INDEX_ENTRY.iter_unpack(data)
    ]


def judge_memory(
    log: PlainLog,
    remembered: LogMemory,
    *,
    start_offset: int,
    end_offset: int,
    is_compacted: bool = False,
    was_appended: Callable[[RememberedBatch], bool] = lambda _: False,
) -> Iterator[str]:
    """Of a log that begins at `start_offset`, maybe behind its first batch, and ends at `end_offset`. Yields sentences.

    What lay before the first batch is deleted: of that a replica may remember more than the files say. So it is with
    what `is_compacted`: the last batch of a producer stays there, the first of each leader epoch, and the
    transactions of what stays. Where such a log was cut, the last batch of a producer may be one that was compacted
    when it was not the last: `was_appended` tells whether there was such a one.
    """
    if log.batches and log.end_offset < end_offset:
        yield f"its batches end at {log.end_offset}, before {end_offset}{f': {log.stopped}' if log.stopped else ''}"
        return
    told = memory_of(PlainLog(tuple(batch for batch in log.batches if batch.end_offset <= end_offset), None))
    first_offset = end_offset if log.start_offset is None else log.start_offset
    yield from _judge_epochs(told.leader_epochs, remembered.leader_epochs, start_offset, end_offset)
    if is_compacted:
        yield from _judge_producers_of_compacted(told, remembered, end_offset, was_appended)
        return
    yield from _judge_producers(told.producers, remembered.producers, first_offset)
    if told.aborted is not None and remembered.aborted is not None:
        ours = {one for one in told.aborted if one.marker_offset >= start_offset}
        theirs = {one for one in remembered.aborted if one.marker_offset >= start_offset}
        # The first batch that is left of a transaction need not have been its first.
        begun_before = {(one.producer_id, one.marker_offset) for one in theirs if one.first_offset < first_offset}
        for missing in sorted(ours - theirs):
            if (missing.producer_id, missing.marker_offset) not in begun_before:
                yield f"its transaction index lacks {missing}"
        for stray in sorted(theirs - ours):
            # One that began before the first batch cannot be told.
            if stray.first_offset >= first_offset or stray.marker_offset >= end_offset:
                yield f"its transaction index has {stray}, which its batches have not"


def _judge_producers_of_compacted(
    told: LogMemory, remembered: LogMemory, end_offset: int, was_appended: Callable[[RememberedBatch], bool]
) -> Iterator[str]:
    for producer_id in sorted(told.producers.keys() | remembered.producers.keys()):
        ours, one = told.producers.get(producer_id), remembered.producers.get(producer_id)
        if one is None:
            yield f"it has forgotten producer {producer_id}, of which its batches say {ours}"
            continue
        last_told = ours.batches[-1:] if ours is not None else ()
        last = one.batches[-1] if one.batches else None
        told_end = last_told[0].last_offset if last_told else -1
        if last is not None and told_end < last.last_offset < end_offset and was_appended(last):
            continue
        if one.batches[-1:] != last_told or (ours is not None and ours.open_since != one.open_since):
            yield f"it remembers {one} of producer {producer_id}, but its batches say {ours}"
    for missing in sorted(set(told.aborted or ()) - set(remembered.aborted or ())):
        if remembered.aborted is not None:
            yield f"its transaction index lacks {missing}"


def _judge_epochs(
    told: Sequence[tuple[int, int]], remembered: Sequence[tuple[int, int]], start_offset: int, end_offset: int
) -> Iterator[str]:
    # What begins at the end is of a leader that has appended nothing. What ended below the start is forgotten.
    theirs = [(epoch, max(start, start_offset)) for epoch, start in remembered if start != end_offset]
    ours: list[tuple[int, int]] = []
    for epoch, start in told:
        if start <= start_offset:
            ours.clear()
        if start_offset < end_offset:
            ours.append((epoch, max(start, start_offset)))
    if theirs != ours:
        yield f"its leader epochs are {theirs}, those of its batches {ours}"


def _judge_producers(
    told: Mapping[int, RememberedProducer], remembered: Mapping[int, RememberedProducer], first_offset: int
) -> Iterator[str]:
    for producer_id in sorted(told.keys() | remembered.keys()):
        theirs = remembered.get(producer_id)
        ours = told.get(producer_id)
        if theirs is None:
            yield f"it has forgotten producer {producer_id}, of which its batches say {ours}"
            continue
        batches = tuple(one for one in theirs.batches if first_offset <= one.base_offset)
        open_since = theirs.open_since
        if ours is None:
            if batches or (open_since is not None and open_since >= first_offset):
                yield f"it remembers {theirs} of producer {producer_id}, which its batches have not"
            continue
        begun_before = open_since is not None and open_since < first_offset and ours.open_since is not None
        if (theirs.epoch, batches) != ours[:2] or (open_since != ours.open_since and not begun_before):
            yield f"it remembers {theirs} of producer {producer_id}, but its batches say {ours}"
