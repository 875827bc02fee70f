"""What must be true of every run, whatever its workload: no node ended by itself, the cluster is whole at the end, and
clients ended as they should."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from ...protocol.structs import replace
from ..checkers.finding import Checked, Checker, Findings
from ..histories.operation import History
from ..histories.run_folder import EndedNode, EndOfRun
from ..nemeses.fault import FAULTS, FailedRead, Fault
from ..nemeses.limits import ENDING

NOT_WHOLE = "not-whole"
CLIENT_FAILURE = "client-failure"
NODE_ENDED = "node-ended"
# Of a log, in the sentence of a finding.
_LINES: Final = 3
# A node stops so, with a sentence, when its disk fails; it may still be stopping when the fault is over, as it asks for
# a controlled shutdown, which no controller may answer, and answers what clients asked. One that starts meanwhile says
# that its log directory cannot be used.
_STOPPED: Final = 1
_NOT_STARTED: Final = 2
_STOPPING_NS: Final = 60_000_000_000


class _Span(Struct, frozen=True, kw_only=True):
    """Of a fault by which the nodes that it hits may end."""

    kind: str
    nodes: frozenset[int]
    begin_ns: int
    end_ns: float
    events: tuple[int, ...]

    def may_end(self, node: EndedNode) -> bool:
        # Reads are needed to start alone: a node that runs tells its clients of one that fails.
        by = (_NOT_STARTED,) if self.kind == "failed-read" else (_STOPPED, _NOT_STARTED)
        return (
            node.exit_status in by
            and node.node in self.nodes
            and self.begin_ns <= node.time <= self.end_ns + _STOPPING_NS
        )


def end_of_run(end: EndOfRun) -> Checker:
    """The checker of a run that ended so."""

    def check(history: History) -> Checked:
        findings = Findings()
        spans = [*_ending_spans(history)] if end.ended else []
        for node in end.ended:
            fault = next((span for span in spans if span.may_end(node)), None)
            findings.add(
                NODE_ENDED,
                "\n".join([node.sentence, *node.log_tail.splitlines()[-_LINES:]]),
                () if fault is None else fault.events,
                why_allowed=None if fault is None else f"A node may stop when its disk fails: {fault.kind} hit it.",
                detail={
                    "node": node.node,
                    "time_ns": node.time,
                    "exit_status": node.exit_status,
                    "log_tail": node.log_tail,
                },
            )
        for lack in end.lacks:
            findings.add(NOT_WHOLE, f"long after everything had healed, {lack}", ())
        for failure in end.failures:
            findings.add(CLIENT_FAILURE, failure, ())
        return findings.checked()

    return check


def _ending_spans(history: History) -> Iterator[_Span]:
    open_: list[_Span] = []
    for event in history.faults():
        value: Any = event.value
        if not isinstance(value, dict) or not issubclass(FAULTS.get(event.f, Fault), (*ENDING, FailedRead)):
            continue
        if "begin" in value:
            nodes = frozenset(value["begin"].get("nodes", ()))
            open_.append(_Span(kind=event.f, nodes=nodes, begin_ns=event.time, end_ns=math.inf, events=(event.index,)))
            continue
        nodes = frozenset(value.get("end", {}).get("nodes", ()))
        span = next((one for one in open_ if (one.kind, one.nodes) == (event.f, nodes)), None)
        if span is not None:
            open_.remove(span)
            yield replace(span, end_ns=event.time, events=(*span.events, event.index))
    yield from open_
