"""Whether idempotent producers leave each value once, in the order of its process's sends (KIP-98).

A process is one life of a producer. What was sent while the outcome of earlier sends was unknown is another life's, so
order is judged within a process only; that a value is there once, over all.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from ..histories.operation import History
from .finding import Checked, Findings
from .micro_operations import polled, sent


class _Send(NamedTuple):
    process: int | str
    value: Hashable
    event: int


def check_idempotence(history: History) -> Checked:
    """Operations `send` and `poll`. Offsets are those that producers and consumers were told."""
    findings = Findings()
    # By key and value: offsets, with the event that told it first.
    places: dict[tuple[str, Hashable], dict[int, int]] = {}
    sends: dict[str, list[_Send]] = {}
    failed: dict[tuple[str, Hashable], int] = {}
    for pair in history.pairs():
        for key, value, offset in sent(pair):
            if pair.outcome == "fail":
                failed[key, value] = pair.index
                continue
            sends.setdefault(key, []).append(_Send(pair.invocation.process, value, pair.index))
            if offset is not None:
                places.setdefault((key, value), {}).setdefault(offset, pair.index)
        if pair.outcome == "ok":
            for key, offset, value in polled(pair):
                places.setdefault((key, value), {}).setdefault(offset, pair.index)
    for (key, value), found in places.items():
        if len(found) > 1:
            offsets = " and ".join(map(str, sorted(found)))
            findings.add("duplicate", f"{value} is in {key} at {offsets}", found.values(), key=key)
        if (key, value) in failed:
            message = f"{value} is in {key}, though its send certainly failed"
            findings.add("G1a", message, [failed[key, value], *found.values()], key=key)
    for key, of_key in sends.items():
        _check_order(findings, key, of_key, places)
    return findings.checked(
        {"values": len(places), "sends": sum(map(len, sends.values())), "producers": _count_producers(sends)}
    )


def _check_order(
    findings: Findings, key: str, sends: list[_Send], places: dict[tuple[str, Hashable], dict[int, int]]
) -> None:
    newest: dict[int | str, tuple[int, _Send]] = {}
    for one in sends:
        found = places.get((key, one.value))
        if found is None:
            continue
        offset = min(found)
        highest, before = newest.get(one.process, (-1, one))
        if offset < highest:
            message = (
                f"process {one.process} sends {before.value} and then {one.value}; in {key} they are at {highest} and "
                f"at {offset}"
            )
            findings.add("nonmonotonic-send", message, (before.event, one.event, found[offset]), key=key)
        else:
            newest[one.process] = offset, one


def _count_producers(sends: dict[str, list[_Send]]) -> int:
    return len({one.process for of_key in sends.values() for one in of_key})
