"""The verdict on a history, as `penstock chaos judge` gives it, with the work of its checkers done key by key on Spark.

Checkers of which a key can be judged by itself are run on every key, by their own functions. What goes over keys and
needs little memory (liveness, whether the run shows anything) reads the events one after the other on the driver. What
goes over keys and needs all of them at once runs on the driver up to a bound, and is refused beyond it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
from pyspark.sql import functions

from ...chaos.checkers.catalogue import CHECKERS, checkers_of
from ...chaos.checkers.dependencies import Span, merged_spans
from ...chaos.checkers.finding import UNDECIDED, Checked, Checker, Findings, Verdict
from ...chaos.checkers.judge import judge
from ...chaos.checkers.queue.checker import READ_UNCOMMITTED
from ...chaos.checkers.queue.cycles import SEARCHES
from ...chaos.histories.operation import Header, History
from .cycle_search import LAGGING, LAGGING_MAX, Covered, OperationRow, find_cycles_among
from .findings_merge import merged
from .history_frame import by_key, events_of, operations_of, parts_frame
from .key_parts import By, PartRow, events_in_order
from .queue_part import SPANS_MAX, EdgeRow, KnownOfHistory, QueuePart, judged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Of these a key can be judged by itself, with nothing of others.
_BY_KEY: Final[Mapping[str, By]] = {"register": "k", "counter": "k", "idempotent": "micro-operations"}
_QUEUE: Final = "queue"
# These read events one after the other, and remember little of them.
_ON_THE_DRIVER: Final = frozenset({"liveness"})
_OF_A_QUEUE: Final = "is_first and f in ('send', 'poll', 'txn', 'assign', 'subscribe')"
_TOLD: Final = "told string"
_OPERATION: Final = tuple(OperationRow._fields)
_EDGE: Final = "source long, target long, kind long, key string, value string, rank long, place long"


class TooLargeError(Exception):
    """A checker needs the whole history at once, and it has more operations than were allowed for one machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Of what goes to the driver, in operations."""

    whole_max: int = 5_000_000
    cycles_max: int = 2_000_000


def judge_history(lines: DataFrame, history: History, bounds: Bounds) -> Verdict:
    """`lines` are those of the file or files of `history`, whose events are read again each time that it is gone
    through. Raises TooLargeError, LookupError for a workload without checkers, ValueError for values that are not those
    of the workload."""
    frames: dict[By, DataFrame] = {}
    operations = operations_of(events_of(lines))

    def parts(by: By) -> DataFrame:
        if by not in frames:
            frames[by] = parts_frame(operations, by).persist()
        return frames[by]

    try:
        checkers: dict[str, Checker] = {}
        for name, checker in checkers_of(history.header).items():
            if name == _QUEUE:
                checkers[name] = _given(check_queue(parts("micro-operations"), history.header, bounds))
            elif name in _BY_KEY:
                checkers[name] = _given(_check_by_key(parts(_BY_KEY[name]), history.header, name))
            else:
                checkers[name] = checker
                if name not in _ON_THE_DRIVER:
                    _refuse_large(operations, name, bounds)
        return judge(history, checkers)
    finally:
        for frame in frames.values():
            frame.unpersist()


def check_queue(parts: DataFrame, header: Header, bounds: Bounds) -> Checked:
    """What `queue.checker.check_queue` says, but for its series over time."""
    operation_count, has_final_reads = _counted(parts)
    known = KnownOfHistory(header, has_final_reads, _known_there(parts, header))

    def told(key: str, rows: Iterator[PartRow]) -> Iterator[tuple[str]]:
        yield (msgspec.json.encode(judged(key, rows, known).part()).decode(),)

    decode = msgspec.json.Decoder(QueuePart).decode
    found = [decode(row.told) for row in by_key(parts, told, _TOLD).collect()]
    found.sort(key=lambda part: part.first)
    cycles, statistics = _cycles(parts, found, known, bounds)
    counts: Counter[str] = Counter()
    for part in found:
        counts.update(part.consume_counts)
    return merged(
        [*(part.checked for part in found), cycles],
        {
            "operations": operation_count,
            "sends": sum(part.sends for part in found),
            "reads": sum(part.reads for part in found),
            "consume-counts": dict(counts),
            "cycles": statistics,
        },
    )


def _given(checked: Checked) -> Checker:
    return lambda _: checked


def _check_by_key(parts: DataFrame, header: Header, name: str) -> Checked:
    """A checker that sees nothing but one key at a time; figures add up, and of the worst the worst is kept."""

    def told(key: str, rows: Iterator[PartRow]) -> Iterator[tuple[str]]:
        checked = CHECKERS[name](History(header, events_in_order(rows)))
        yield (msgspec.json.encode((key, checked)).decode(),)

    decode = msgspec.json.Decoder(tuple[str, Checked]).decode
    found = sorted((decode(row.told) for row in by_key(parts, told, _TOLD).collect()), key=lambda one: one[0])
    return merged([checked for _, checked in found], _added([checked.statistics for _, checked in found]))


def _added(statistics: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    added: dict[str, Any] = {}
    for one in statistics:
        for name, value in one.items():
            before = added.get(name)
            if before is None:
                added[name] = value
            elif isinstance(value, dict):
                added[name] = {**before, **value}
            else:
                added[name] = max(before, value) if name.startswith("worst") or name == "producers" else before + value
    return added


def _refuse_large(operations: DataFrame, name: str, bounds: Bounds) -> None:
    count = operations.count()
    if count > bounds.whole_max:
        raise TooLargeError(
            f"the checker {name} needs all operations at once, as what it looks for goes over keys: there are"
            f" {count:,}, and at most {bounds.whole_max:,} are judged on one machine"
        )


def _counted(parts: DataFrame) -> tuple[int, bool]:
    """How many operations there are, and whether any is a final read."""
    is_final = functions.expr("f in ('poll', 'txn') and outcome = 'ok' and (final_invoked or final_completed)")
    row = (
        parts.where(_OF_A_QUEUE)
        .agg(functions.count("*"), functions.coalesce(functions.bool_or(is_final), functions.lit(False)))
        .first()
    )
    assert row is not None, "an aggregate has a row"
    return row[0], row[1]


def _known_there(parts: DataFrame, header: Header) -> frozenset[int]:
    """Transactions of unknown outcome with records of several keys, of which a successful poll returned one."""
    several = parts.where("key is not null and micro_count > 1 and outcome = 'info'")
    if not header.transactions:
        several = several.where("f = 'txn'")
    sent: dict[tuple[str, str], int] = {}
    events: set[int] = set()
    for row in several.select("key", "invoked", "completed", "asked").collect():
        event = row.invoked if row.completed < 0 else row.completed
        for micro in msgspec.json.decode(row.asked):
            if micro[0] == "send":
                value = micro[2][1] if isinstance(micro[2], list) and len(micro[2]) == 2 else micro[2]
                sent[row.key, msgspec.json.encode(value).decode()] = event
                events.add(event)
    if not events:
        return frozenset()

    def read(key: str, rows: Iterator[PartRow]) -> Iterator[tuple[int]]:
        for row in rows:
            if row.outcome != "ok" or row.asked is None:
                continue
            for micro in msgspec.json.decode(row.asked):
                if micro[0] == "poll" and len(micro) > 1:
                    for _, value in micro[1].get(key, ()):
                        event = sent.get((key, msgspec.json.encode(value).decode()))
                        if event is not None:
                            yield (event,)

    return frozenset(row.event for row in by_key(parts, read, "event long").distinct().collect())


def _cycles(
    parts: DataFrame, found: Sequence[QueuePart], known: KnownOfHistory, bounds: Bounds
) -> tuple[Checked, Mapping[str, Any]]:
    spans = {name: merged_spans(span for part in found for span in part.spans[name]) for name in SEARCHES}
    findings = Findings()
    # Those of the other searches are all there, or the search is not made.
    certain = [name for name in SEARCHES if name != LAGGING]
    is_cut = any(len(part.spans[name]) == SPANS_MAX for part in found for name in certain)
    covered = _covered(parts, merged_spans(span for name in certain for span in spans[name]), bounds.cycles_max + 1)
    if is_cut or len(covered) > bounds.cycles_max:
        findings.add(
            UNDECIDED,
            f"cycles were not searched: more than {bounds.cycles_max:,} operations may be in one",
            (),
            why_allowed="nothing is known of cycles: that is no failure, and no success either",
        )
        return findings.checked(), {}
    rows = covered | _covered(parts, spans[LAGGING], LAGGING_MAX)
    if not rows:
        return findings.checked(), {name: {"searched": 0, "is_whole": True} for name in SEARCHES}
    wanted = frozenset(row.position for row in rows)

    def edges(key: str, part: Iterator[PartRow]) -> Iterator[tuple[Any, ...]]:
        for edge in judged(key, part, known).edges_among(wanted):
            yield edge._replace(value=msgspec.json.encode(edge.value).decode())

    told = [EdgeRow(*row) for row in by_key(parts, edges, _EDGE).collect()]
    statistics = find_cycles_among(
        [*rows],
        [edge._replace(value=msgspec.json.decode(edge.value)) for edge in told],
        {part.key: number for number, part in enumerate(found)},
        spans,
        findings,
        sees_uncommitted=known.header.isolation == READ_UNCOMMITTED,
    )
    return findings.checked(), statistics


def _covered(parts: DataFrame, spans: Sequence[Span], limit: int) -> set[OperationRow]:
    """The first operations of a queue that stand within spans."""
    if not spans:
        return set()
    near = parts.where(_OF_A_QUEUE).where(functions.col("position").between(spans[0][0], spans[-1][1]))
    if len(spans) > 1:
        covers = Covered(spans)
        near = near.where(functions.udf(lambda position: position in covers, "boolean")("position"))
    return {OperationRow(*row) for row in near.select(*_OPERATION).orderBy("position").limit(limit).collect()}
