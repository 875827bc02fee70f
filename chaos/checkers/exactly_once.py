"""Whether consume-transform-produce copied each input exactly once, by what was read of its output, read_committed.

An input is a record that was acknowledged or read; what an output is of, its value says: [input key, input value].
One input has one output. In an output partition the outputs of an input partition are in its order: its records are
consumed in order, and a member that lost the partition can commit no more (KIP-447).

Copiers tell how far they came: what a transaction `copy` took in, and what their group had `committed` in the end. An
input behind all of that is not lost, as nothing has said that it was consumed; that it was to be is no matter of
exactly once.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..histories.operation import History, Pair
from .finding import Checked, Findings
from .micro_operations import NO_FINAL_READS, has_final_polls, polled, sent

_Source = tuple[str, Hashable]


class _Input(NamedTuple):
    # Of the operation that proves it, its event.
    event: int
    offset: int | None


class _Output(NamedTuple):
    key: str
    offset: int
    event: int


@dataclass(slots=True)
class _Copies:
    inputs: dict[_Source, _Input] = field(default_factory=dict)
    # Sends that certainly failed, and those of unknown outcome, by event.
    failed: dict[_Source, int] = field(default_factory=dict)
    unknown: set[_Source] = field(default_factory=set)
    outputs: dict[_Source, list[_Output]] = field(default_factory=dict)
    # The next offset behind what copiers came to, by input key.
    reached: dict[str, int] = field(default_factory=dict)
    # Whether one of them told at the end what the group has committed; else it may have come further than is known.
    has_committed: bool = False

    def why_not_lost(self, key: str, one: _Input) -> str | None:
        """A sentence for an input that no copier came to; None for one that has to have an output."""
        reached = self.reached.get(key, 0)
        if not self.has_committed or one.offset is None or one.offset < reached:
            return None
        return f"no copier came to it: the group has committed {key} up to {reached} in the end"


def check_exactly_once(history: History) -> Checked:
    """Operations `send` into input keys, `poll` of output keys and, if wanted, of input keys; `copy`, `committed`."""
    findings = Findings()
    copies = _read(history, findings)
    for source, outputs in copies.outputs.items():
        name = f"{source[1]} of {source[0]}"
        places = ", ".join(f"{one.key} at {one.offset}" for one in outputs)
        proof = [one.event for one in outputs]
        if len(outputs) > 1:
            known = copies.inputs.get(source)
            evidence = proof if known is None else [known.event, *proof]
            findings.add("duplicate-output", f"{name} has {len(outputs)} outputs: {places}", evidence, key=source[0])
        if source in copies.inputs or source in copies.unknown:
            continue
        if source in copies.failed:
            message = f"{name} has an output, {places}, though its send certainly failed"
            findings.add("G1a", message, [copies.failed[source], *proof], key=source[0])
        else:
            findings.add("unexpected", f"{places} is an output of {name}, which was never sent", proof, key=source[0])
    without_final_reads = None if has_final_polls(history) else NO_FINAL_READS
    missing = 0
    for source, one in copies.inputs.items():
        if source not in copies.outputs:
            missing += 1
            message = f"{source[1]} of {source[0]} has no output"
            why_allowed = without_final_reads or copies.why_not_lost(source[0], one)
            findings.add("lost-output", message, (one.event,), key=source[0], why_allowed=why_allowed)
    _check_orders(copies, findings)
    return findings.checked(
        {
            "inputs": len(copies.inputs),
            "inputs-with-one-output": sum(len(copies.outputs.get(source, ())) == 1 for source in copies.inputs),
            "inputs-without-output": missing,
            "outputs": sum(map(len, copies.outputs.values())),
        }
    )


def _read(history: History, findings: Findings) -> _Copies:
    copies = _Copies()
    # What each place of the output holds, and where that was read first.
    places: dict[tuple[str, int], tuple[_Source, int]] = {}
    for pair in history.pairs():
        if pair.invocation.f in ("copy", "committed"):
            _note_reached(copies, pair)
            continue
        for key, value, offset in sent(pair):
            source = key, value
            if pair.outcome == "fail":
                copies.failed[source] = pair.index
            elif offset is not None:
                copies.inputs.setdefault(source, _Input(pair.index, offset))
            else:
                copies.unknown.add(source)
        if pair.outcome != "ok":
            continue
        for key, offset, value in polled(pair):
            if not isinstance(value, tuple):
                copies.inputs.setdefault((key, value), _Input(pair.index, offset))
                continue
            output_of: _Source = value[0], value[1]
            known = places.get((key, offset))
            if known is None:
                places[key, offset] = output_of, pair.index
                copies.outputs.setdefault(output_of, []).append(_Output(key, offset, pair.index))
            elif known[0] != output_of:
                message = f"{key} at {offset} is read as {list(known[0])} and as {list(output_of)}"
                findings.add("inconsistent-offsets", message, (known[1], pair.index), key=key)
    return copies


def _note_reached(copies: _Copies, pair: Pair) -> None:
    """`copy` has [first offset, next offset] by key, `committed` the next one."""
    is_done = pair.outcome == "ok"
    if pair.invocation.f == "committed":
        copies.has_committed = copies.has_committed or is_done
        ends = dict(pair.value) if is_done else {}
    else:
        # A copier begins where others have committed up to, whatever becomes of its own transaction.
        ends = {key: place[is_done] for key, place in pair.value.items()}
    for key, end in ends.items():
        copies.reached[key] = max(copies.reached.get(key, 0), end)


def _check_orders(copies: _Copies, findings: Findings) -> None:
    """The first outputs of inputs only: what is there twice is reported as that."""
    lanes: dict[tuple[str, str], list[tuple[int, int, Hashable, int]]] = {}
    for source, outputs in copies.outputs.items():
        known = copies.inputs.get(source)
        if known is not None and known.offset is not None:
            first = min(outputs, key=lambda one: one.offset)
            lanes.setdefault((source[0], first.key), []).append((first.offset, known.offset, source[1], first.event))
    for (input_key, output_key), copied in lanes.items():
        copied.sort()
        newest = copied[0]
        for one in copied[1:]:
            if one[1] < newest[1]:
                message = (
                    f"in {output_key} the output of {one[2]} ({input_key} at {one[1]}) is at {one[0]}, behind that of "
                    f"{newest[2]} ({input_key} at {newest[1]}) at {newest[0]}"
                )
                findings.add("reordered-output", message, (newest[3], one[3]), key=output_key)
            else:
                newest = one
