"""What must hold of the files of a partition's replicas, whatever the nodes say: of each log, and of all together.

| rule | what it says |
|---|---|
| EPOCHS | leader epochs of a log do not fall |
| SEQUENCES | of a producer's epoch each sequence is there once, in order; its epochs do not fall |
| MARKERS | a marker ends what its producer wrote, not by a lower epoch; coordinator epochs of a producer do not fall |
| SHORT | a member of the ISR has everything below the high watermark in its files |
| COPIES | logs are equal below the high watermark |
| LOST, MOVED | an acknowledged record is in every one of them, where it was acknowledged |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from .log_files import PlainBatch, PlainLog, marker_of

_NO_PRODUCER = -1
_NO_SEQUENCE = -1


class Acknowledged(NamedTuple):
    offset: int
    value: bytes


class Ended(NamedTuple):
    """A marker, and the values that it decided about, in one partition."""

    is_commit: bool
    values: tuple[bytes, ...]


def judge_copies(
    logs: Mapping[int, PlainLog], *, start_offset: int, end_offset: int, acknowledged: Iterable[Acknowledged]
) -> Iterator[str]:
    """Of the replicas by node that must have everything from `start_offset` up to `end_offset`. Yields sentences."""
    if not logs or end_offset <= start_offset:
        return
    for node, log in logs.items():
        yield from (f"node {node}: {sentence}" for sentence in judge_log(log))
        first = log.start_offset
        if first is None or first > start_offset or log.end_offset < end_offset:
            yield (
                f"SHORT: node {node} has offsets {first} to {log.end_offset} in its files, not all from {start_offset} "
                f"to {end_offset}{f': {log.stopped}' if log.stopped else ''}"
            )
    ours = {
        node: {batch.base_offset: batch for batch in log.batches if _is_within(batch, start_offset, end_offset)}
        for node, log in logs.items()
    }
    one, *others = ours.items()
    for node, batches in others:
        for base in sorted(one[1].keys() | batches.keys()):
            if one[1].get(base) != batches.get(base):
                yield f"COPIES: nodes {one[0]} and {node} differ at offset {base}, below {end_offset}"
                break
    values = {
        node: {record.offset: record.value for batch in log.batches for record in batch.records or ()}
        for node, log in logs.items()
    }
    for record in acknowledged:
        if record.offset < start_offset:
            continue
        for node, by_offset in values.items():
            if by_offset.get(record.offset) != record.value:
                elsewhere = [offset for offset, value in by_offset.items() if value == record.value]
                what = (
                    f"MOVED: at {elsewhere} of node {node}" if elsewhere else f"LOST: not in the files of node {node}"
                )
                yield f"{what}: {record.value[:40]!r}, acknowledged at offset {record.offset}"


def judge_log(log: PlainLog) -> Iterator[str]:
    """What holds of one log as it stands, committed or not."""
    leader_epoch = -1
    # By producer: its epoch and the next sequence; the newest coordinator epoch of its markers.
    producers: dict[int, tuple[int, int]] = {}
    coordinators: dict[int, int] = {}
    for batch in log.batches:
        at = f"at offset {batch.base_offset}"
        if batch.leader_epoch < leader_epoch:
            yield f"EPOCHS: leader epoch {batch.leader_epoch} follows {leader_epoch} {at}"
        leader_epoch = max(leader_epoch, batch.leader_epoch)
        producer_id = batch.producer_id
        if producer_id == _NO_PRODUCER:
            continue
        epoch, next_sequence = producers.get(producer_id, (-1, 0))
        if batch.producer_epoch < epoch:
            rule = "MARKERS" if batch.is_control else "SEQUENCES"
            yield f"{rule}: producer {producer_id} goes from epoch {epoch} to {batch.producer_epoch} {at}"
        marker = marker_of(batch)
        if marker is not None:
            known = coordinators.get(producer_id, -1)
            if marker.coordinator_epoch < known:
                yield f"MARKERS: coordinator epoch {marker.coordinator_epoch} follows {known} {at}"
            coordinators[producer_id] = max(known, marker.coordinator_epoch)
            if batch.producer_epoch > epoch:
                producers[producer_id] = (batch.producer_epoch, 0)
        elif batch.base_sequence != _NO_SEQUENCE:
            if batch.producer_epoch == epoch and batch.base_sequence < next_sequence:
                yield (
                    f"SEQUENCES: producer {producer_id} epoch {epoch} has sequence {batch.base_sequence} after "
                    f"{next_sequence - 1} {at}"
                )
            count = batch.end_offset - batch.base_offset
            producers[producer_id] = (max(epoch, batch.producer_epoch), batch.base_sequence + count)


def transactions_of(log: PlainLog) -> tuple[list[Ended], list[bytes]]:
    """What was ended, in order, and the values of what is still open."""
    ended: list[Ended] = []
    under_way: dict[int, list[bytes]] = {}
    for batch in log.batches:
        marker = marker_of(batch)
        if marker is not None:
            ended.append(Ended(marker.is_commit, tuple(under_way.pop(batch.producer_id, ()))))
        elif batch.is_transactional:
            values = under_way.setdefault(batch.producer_id, [])
            values += [record.value or b"" for record in batch.records or ()]
    return ended, [value for values in under_way.values() for value in values]


def _is_within(batch: PlainBatch, start_offset: int, end_offset: int) -> bool:
    return batch.base_offset >= start_offset and batch.end_offset <= end_offset
