"""What must hold of the files of a compacted partition's replicas, whatever the nodes say.

| rule | what it says |
|---|---|
| EPOCHS, SEQUENCES, MARKERS | of each log, as `replica_files.py` has them: compaction leaves gaps, and no other order |
| SHORT | a member of the ISR ends at or behind the high watermark |
| COPIES | a record that two logs have at one offset is the same, and the last value of each key is |

Keys of which a log has records in transactions are left out of the last rule: who was compacted has none of what was
aborted. So are tombstones, which some have lost already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .log_files import PlainLog, PlainRecord
from .replica_files import judge_log


def judge_compacted_copies(
    logs: Mapping[int, PlainLog], *, end_offset: int, keeps_tombstones: bool = True
) -> Iterator[str]:
    """Of the replicas by node that must have what is below `end_offset`. Yields sentences.

    `keeps_tombstones`: none of them was away for longer than tombstones stay.
    """
    for node, log in logs.items():
        yield from (f"node {node}: {sentence}" for sentence in judge_log(log))
        if log.end_offset < end_offset:
            stopped = f": {log.stopped}" if log.stopped else ""
            yield f"SHORT: node {node} has offsets up to {log.end_offset} in its files, not to {end_offset}{stopped}"
    if not logs:
        return
    transactional = {
        record.key for log in logs.values() for batch in log.batches if batch.is_transactional
        for record in batch.records or ()
    }  # fmt: skip
    (first, ours), *others = ((node, dict(_records(log, end_offset))) for node, log in logs.items())
    for node, theirs in others:
        for offset in sorted(ours.keys() & theirs.keys()):
            if ours[offset] != theirs[offset]:
                yield f"COPIES: nodes {first} and {node} differ at offset {offset}, below {end_offset}"
                break
        values, other_values = _last_values(ours), _last_values(theirs)
        for key in sorted(values.keys() | other_values.keys()):
            if keeps_tombstones and key not in transactional and values.get(key) != other_values.get(key):
                yield f"COPIES: nodes {first} and {node} have another value of {key!r}, below {end_offset}"
                break


def _records(log: PlainLog, end_offset: int) -> Iterator[tuple[int, PlainRecord]]:
    for batch in log.batches:
        if not batch.is_control:
            yield from ((record.offset, record) for record in batch.records or () if record.offset < end_offset)


def _last_values(records: Mapping[int, PlainRecord]) -> dict[bytes, PlainRecord]:
    last: dict[bytes, PlainRecord] = {}
    for _, record in sorted(records.items()):
        last[record.key or b""] = record
    return {key: record for key, record in last.items() if record.value is not None}
