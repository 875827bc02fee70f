"""The story of one record: sent, appended, fetched by followers, below the high watermark, acknowledged, read. Pure.

What clients saw is exact. What lies in logs is known from samples: it took place between two of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from ..checkers.finding import Finding
from ..histories.cluster_sample import ClusterSample
from ..histories.operation import Pair
from .client_series import hashable, polled, sent
from .fault_band import FaultBand

_READERS_MAX: Final = 3


class Step(Struct, frozen=True, kw_only=True):
    """Took place after `after_ns`, at `by_ns` at the latest; both are the same where it is exact.

    `index` is the event of the history that says it; `tone` is `good`, `bad` or `plain`.
    """

    actor: str
    text: str
    after_ns: int
    by_ns: int
    index: int | None = None
    tone: str = "plain"


class Story(Struct, frozen=True, kw_only=True):
    key: str
    value: Any
    offset: int | None
    why: str
    steps: list[Step]
    # What became of the record, in a sentence.
    end: str
    is_good: bool


class _Read(Struct, frozen=True):
    pair: Pair
    offset: int
    time_ns: int


def chosen_records(
    pairs: Sequence[Pair], findings: Sequence[Finding], bands: Sequence[FaultBand], *, limit: int
) -> list[tuple[str, Any, str]]:
    """(key, value, why it was chosen): a record of each finding, else the one that a fault held up the longest."""
    by_index = {}
    for pair in pairs:
        by_index[pair.invocation.index] = pair
        by_index[pair.index] = pair
    chosen: dict[tuple[str, Any], str] = {}
    for finding in findings:
        record = _record_of(finding, by_index)
        if record is not None and record not in chosen:
            chosen[record] = f"It is evidence of {finding.type}."
        if len(chosen) == limit:
            break
    if not chosen and (crossing := _record_across(pairs, bands)) is not None:
        record, band = crossing
        chosen[record] = f"Of all acknowledged records that met a fault ({band.name}), it waited the longest."
    return [(key, value, why) for (key, value), why in chosen.items()]


def _record_of(finding: Finding, by_index: dict[int, Pair]) -> tuple[str, Any] | None:
    if isinstance(finding.detail, dict) and finding.key is not None:
        values = finding.detail.get("values")
        if "value" in finding.detail:
            return finding.key, hashable(finding.detail["value"])
        if isinstance(values, list) and values:
            return finding.key, hashable(values[0])
    pairs = [by_index[index] for index in finding.operations if index in by_index]
    for pair in pairs:
        for key, value, _ in sent(pair):
            if finding.key in (None, key):
                return key, hashable(value)
    for pair in pairs:
        for key, _, value in polled(pair):
            if finding.key in (None, key):
                return key, hashable(value)
    return None


def _record_across(pairs: Sequence[Pair], bands: Sequence[FaultBand]) -> tuple[tuple[str, Any], FaultBand] | None:
    best: tuple[int, tuple[str, Any], FaultBand] | None = None
    for pair in pairs:
        if pair.outcome != "ok" or pair.completion is None:
            continue
        record = next(((key, hashable(value)) for key, value, offset in sent(pair) if offset is not None), None)
        if record is None:
            continue
        waited_ns = pair.completion.time - pair.invocation.time
        if best is not None and waited_ns <= best[0]:
            continue
        for band in bands:
            if pair.invocation.time <= band.end_ns and band.begin_ns <= pair.completion.time:
                best = waited_ns, record, band
                break
    return None if best is None else best[1:]


def story(pairs: Sequence[Pair], samples: Sequence[ClusterSample], *, key: str, value: Any, why: str) -> Story:
    """Of the record with that value in the partition `key`; values are unique there."""
    steps: list[Step] = []
    offset: int | None = None
    sent_ns = 0
    outcome = None
    for pair in pairs:
        for sent_key, sent_value, told in sent(pair):
            if sent_key == key and hashable(sent_value) == value:
                sent_ns = pair.invocation.time
                outcome = pair.outcome
                offset = told if told is not None and outcome == "ok" else offset
                steps += _sending(pair, told)
    reads = _reads(pairs, key, value)
    if offset is None and reads:
        offset = reads[0].offset
    if offset is not None:
        steps += _log_steps(samples, key, offset, sent_ns)
    steps += _read_steps(reads)
    passing = _passing_reads(pairs, key, offset, value, sent_ns) if offset is not None else []
    steps += passing
    ranked = sorted(enumerate(steps), key=lambda item: (max(item[1].after_ns, sent_ns), item[1].by_ns, item[0]))
    readers = _count(len({read.pair.invocation.process for read in reads}), "process", "es")
    if reads and outcome == "fail":
        end, is_good = f"It failed, and was read by {readers} all the same.", False
    elif reads:
        end, is_good = f"Read by {readers}.", True
    elif not any(read_key == key for pair in pairs for read_key, _, _ in polled(pair)):
        end, is_good = "No client reads this partition.", True
    elif outcome == "ok":
        end, is_good = "Acknowledged, and no poll of the run returned it.", False
    elif outcome == "fail":
        end, is_good = "It failed, and no poll of the run returned it: that is right.", True
    else:
        end, is_good = "Its outcome is unknown, and no poll of the run returned it: that may be.", True
    return Story(
        key=key, value=value, offset=offset, why=why, steps=[step for _, step in ranked], end=end, is_good=is_good
    )


def _count(number: int, noun: str, plural: str = "s") -> str:
    return f"{number} {noun}{'' if number == 1 else plural}"


def _sending(pair: Pair, offset: int | None) -> Iterator[Step]:
    actor = f"process {pair.invocation.process}"
    at = pair.invocation.time
    yield Step(actor=actor, text="sent it", after_ns=at, by_ns=at, index=pair.invocation.index)
    if pair.completion is None:
        return
    at = pair.completion.time
    index = pair.completion.index
    if pair.outcome == "ok":
        where = "" if offset is None else f" with offset {offset}"
        yield Step(actor=actor, text=f"got its acknowledgement{where}", after_ns=at, by_ns=at, index=index, tone="good")
    else:
        certainty = "was told that it failed" if pair.outcome == "fail" else "does not know its outcome"
        error = "" if pair.completion.error is None else f" ({pair.completion.error})"
        yield Step(actor=actor, text=f"{certainty}{error}", after_ns=at, by_ns=at, index=index, tone="bad")


def _reads(pairs: Sequence[Pair], key: str, value: Any) -> list[_Read]:
    found = []
    for pair in pairs:
        if pair.completion is None or pair.outcome != "ok":
            continue
        for read_key, offset, read_value in polled(pair):
            if read_key == key and hashable(read_value) == value:
                found.append(_Read(pair, offset, pair.completion.time))
    return sorted(found, key=lambda read: read.time_ns)


def _read_steps(reads: list[_Read]) -> Iterator[Step]:
    readers: set[int | str] = set()
    for read in reads:
        process = read.pair.invocation.process
        if process in readers or len(readers) == _READERS_MAX:
            continue
        readers.add(process)
        text = f"read it at offset {read.offset}" + (", in its final reads" if read.pair.invocation.final else "")
        yield Step(
            actor=f"process {process}",
            text=text,
            after_ns=read.time_ns,
            by_ns=read.time_ns,
            index=read.pair.index,
            tone="good",
        )


def _passing_reads(pairs: Sequence[Pair], key: str, offset: int, value: Any, sent_ns: int) -> list[Step]:
    """The first read that found another record at its offset, and the first that went past its offset without it."""
    other: Step | None = None
    for pair in pairs:
        if pair.completion is None or pair.outcome != "ok" or pair.completion.time < sent_ns:
            continue
        for read_key, read_offset, read_value in polled(pair):
            if read_key != key or read_offset != offset or hashable(read_value) == value:
                continue
            if other is None or pair.completion.time < other.by_ns:
                at = pair.completion.time
                other = Step(
                    actor=f"process {pair.invocation.process}",
                    text=f"read {read_value} at its offset {offset}",
                    after_ns=at,
                    by_ns=at,
                    index=pair.index,
                    tone="bad",
                )
    if other is not None:
        return [other]
    return _skipping_reads(pairs, key, offset, sent_ns)


def _skipping_reads(pairs: Sequence[Pair], key: str, offset: int, sent_ns: int) -> list[Step]:
    """A process that read below and above the offset, one read after the other, without it."""
    positions: dict[int | str, int] = {}
    for pair in pairs:
        if pair.completion is None or pair.outcome != "ok" or pair.completion.time < sent_ns:
            continue
        process = pair.invocation.process
        if pair.invocation.f in ("assign", "subscribe"):
            positions.pop(process, None)
        offsets = [read_offset for read_key, read_offset, _ in polled(pair) if read_key == key]
        for read in offsets:
            before = positions.get(process)
            if before is not None and before < offset < read and offset not in offsets:
                at = pair.completion.time
                text = f"read offset {before}, then {read}, and nothing at {offset}"
                return [
                    Step(actor=f"process {process}", text=text, after_ns=at, by_ns=at, index=pair.index, tone="bad")
                ]
            positions[process] = read
    return []


def _log_steps(samples: Sequence[ClusterSample], key: str, offset: int, sent_ns: int) -> Iterator[Step]:
    """When the log of each replica went past the offset, fell back below it, and when the high watermark passed."""
    beyond: dict[str, bool] = {}
    last_ns: dict[str, int] = {}
    is_committed = False
    committed_after_ns = 0
    for sample in samples:
        partition = sample.partitions.get(key)
        if partition is None:
            continue
        leader = str(partition.leader)
        for node, log_end in sorted(partition.ends.items(), key=lambda item: (item[0] != leader, item[0])):
            is_beyond = log_end > offset
            was_beyond = beyond.get(node, False)
            after_ns = max(last_ns.get(node, 0), sent_ns)
            if sample.time < sent_ns:
                pass
            elif is_beyond and not was_beyond:
                text = "as leader, has it in its log" if node == leader else "fetched it"
                yield Step(actor=f"node {node}", text=text, after_ns=after_ns, by_ns=sample.time)
            elif was_beyond and not is_beyond:
                text = f"has a log that ends at {log_end} again: the record is cut off"
                yield Step(actor=f"node {node}", text=text, after_ns=after_ns, by_ns=sample.time, tone="bad")
            beyond[node] = is_beyond
            last_ns[node] = sample.time
        if partition.hw is not None and not is_committed:
            if partition.hw > offset and sample.time >= sent_ns:
                is_committed = True
                yield Step(
                    actor="high watermark",
                    text="passed it: consumers may read it",
                    after_ns=max(committed_after_ns, sent_ns),
                    by_ns=sample.time,
                )
            committed_after_ns = sample.time
