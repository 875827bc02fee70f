"""A history judged key by key without Spark: what its frames do, in lists."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.chaos.checkers.dependencies import merged_spans
from penstock.chaos.checkers.finding import Checked, Findings
from penstock.chaos.checkers.queue.cycles import SEARCHES
from penstock.chaos.histories.operation import NEMESIS, History, Operation
from penstock.pipeline.checking.cycle_search import Covered, OperationRow, find_cycles_among
from penstock.pipeline.checking.findings_merge import merged
from penstock.pipeline.checking.key_parts import NEVER, NONE, By, PairRow, PartRow, parts_of
from penstock.pipeline.checking.queue_part import KnownOfHistory, judged


def rows_of(history: History, by: By = "micro-operations") -> list[PartRow]:
    open_: dict[int | str, Operation] = {}
    pairs: list[PairRow] = []
    for event in history.operations:
        if event.process == NEMESIS:
            continue
        before = open_.pop(event.process, None)
        if before is not None:
            pairs.append(_pair(before, event))
        if event.type == "invoke":
            open_[event.process] = event
    pairs += [_pair(before, None) for before in open_.values()]
    return [part for pair in pairs for part in parts_of(pair, by)]


def of_keys(rows: Sequence[PartRow]) -> dict[str, list[PartRow]]:
    """Each key's rows with the assignments, in their order."""
    keys = dict.fromkeys(row.key for row in rows if row.key is not None)
    of_all = [row for row in rows if row.key is None and row.f in ("assign", "subscribe")]
    return {
        key: sorted([*(row for row in rows if row.key == key), *of_all], key=lambda row: (row.order, row.invoked))
        for key in keys
    }


def checked_by_parts(history: History, known_there: frozenset[int]) -> Checked:
    """What `history_judge.check_queue` puts together, `known_there` given."""
    rows = rows_of(history)
    has_final_reads = any(
        row.f in ("poll", "txn") and row.outcome == "ok" and (row.final_invoked or row.final_completed) for row in rows
    )
    known = KnownOfHistory(history.header, has_final_reads, known_there)
    judges = {key: judged(key, of_key, known) for key, of_key in of_keys(rows).items()}
    parts = sorted((judge.part() for judge in judges.values()), key=lambda part: part.first)
    spans = {name: merged_spans(span for part in parts for span in part.spans[name]) for name in SEARCHES}
    covers = Covered(merged_spans(span for of_search in spans.values() for span in of_search))
    covered = [
        OperationRow(*(getattr(row, field) for field in OperationRow._fields))
        for row in rows
        if row.is_first and row.position in covers
    ]
    wanted = {row.position for row in covered}
    edges = [
        edge._replace(value=msgspec.json.decode(msgspec.json.encode(edge.value)))
        for judge in judges.values()
        for edge in judge.edges_among(wanted)
    ]
    findings = Findings()
    statistics = find_cycles_among(
        covered,
        edges,
        {part.key: number for number, part in enumerate(parts)},
        spans,
        findings,
        sees_uncommitted=history.header.isolation == "read_uncommitted",
    )
    return merged([*(part.checked for part in parts), findings.checked()], {"cycles": statistics})


def _pair(invocation: Operation, following: Operation | None) -> PairRow:
    completion = following if following is not None and following.type != "invoke" else None
    return PairRow(
        NEVER if following is None else following.index,
        invocation.index,
        invocation.time,
        NONE if completion is None else completion.index,
        invocation.time if completion is None else completion.time,
        msgspec.json.encode(invocation.process).decode(),
        invocation.f,
        "info" if completion is None else completion.type,
        invocation.final,
        completion is not None and completion.final,
        _json(invocation.value),
        None if completion is None else _json(completion.value),
    )


def _json(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
