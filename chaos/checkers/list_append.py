"""Transactions that append to lists and read them: Elle's list-append.

A read shows all appends before it, in order; so the longest read of a key is the order of its versions. Found are, by
Elle's names, what one operation shows (internal, future-read), what reads show of others (G1a, G1b,
duplicate-elements, incompatible-order, dirty-update, lost-update) and cycles (`dependencies`). Appends that committed
and that the final reads lack are lost-write.

With the isolation `serializable` a history is judged by strict serializability, as a database promises it. Kafka
promises less: a list is a partition, appends are not isolated, and a read is no part of the transaction: it returns
what is committed and stable, a prefix. What follows from that is found and allowed. Sources: Elle (elle.list-append,
elle.txn), docs/guarantees.md.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from ..histories.operation import History
from .append_cycles import NOT_A_SNAPSHOT, NOT_ISOLATED, find_cycles
from .append_lists import AppendLists, micro_operations
from .finding import Checked, Findings

UNSTABLE: Final = (
    "another transaction that was open held the last stable offset inside of this one, which had committed"
)


def check_list_append(history: History) -> Checked:
    """All anomalies; elements are unique within their key."""
    is_serializable = history.header.isolation == "serializable"
    lists = AppendLists([pair for pair in history.pairs() if pair.invocation.f == "txn"])
    findings = Findings()
    lists.note_orders(findings)
    for number in range(len(lists.pairs)):
        _check_operation(lists, number, findings, is_serializable=is_serializable)
    _find_dirty_updates(lists, findings)
    _find_lost_updates(lists, findings, None if is_serializable else NOT_ISOLATED)
    _find_losses(lists, findings)
    statistics = find_cycles(lists, findings, is_serializable=is_serializable)
    return findings.checked({"operations": len(lists.pairs), "keys": len(lists.order), "cycles": statistics})


def _check_operation(lists: AppendLists, number: int, findings: Findings, *, is_serializable: bool) -> None:
    """internal, future-read, precommitted-read, G1a, G1b and unexpected of one transaction."""
    pair = lists.pairs[number]
    if pair.outcome != "ok":
        return
    own = {*lists.appends(number)}
    appended: dict[str, list[Any]] = defaultdict(list)
    since_read: dict[str, list[Any]] = defaultdict(list)
    read: dict[str, list[Any]] = {}
    for f, key, value in micro_operations(pair):
        if f == "append":
            appended[key].append(value)
            since_read[key].append(value)
            continue
        elements = value or []
        _check_sources(lists, number, key, elements, findings, None if is_serializable else UNSTABLE)
        mine = [element for element in elements if (key, element) in own]
        if any(element not in appended[key] for element in mine):
            findings.add("future-read", f"{mine} was read before it was appended", [pair.index], key=key)
        elif mine and not is_serializable:
            text = f"{mine} was read by the transaction that appends it, before that was committed"
            findings.add("precommitted-read", text, [pair.index], key=key)
        _check_internal(key, elements, read.get(key), since_read[key], pair.index, findings, is_serializable)
        read[key] = elements
        since_read[key] = []


def _check_internal(
    key: str,
    elements: list[Any],
    before: list[Any] | None,
    appended: list[Any],
    event: int,
    findings: Findings,
    is_serializable: bool,
) -> None:
    """A read against the read of the same key before it in the transaction, and what it appended in between."""
    if is_serializable:
        expected = [*(before or ()), *appended]
        is_consistent = (
            elements == expected if before is not None else elements[len(elements) - len(expected) :] == expected
        )
        why_allowed: str | None = None
    else:
        expected = before or []
        is_consistent = before is None or elements == before
        shorter = min(len(elements), len(expected))
        why_allowed = NOT_A_SNAPSHOT if elements[:shorter] == expected[:shorter] else None
    if not is_consistent:
        text = f"a transaction read {elements[-8:]} and by its own operations had to read {expected[-8:]}"
        findings.add("internal", text, [event], key=key, why_allowed=why_allowed)


def _check_sources(
    lists: AppendLists, number: int, key: str, elements: list[Any], findings: Findings, g1b_allowed: str | None
) -> None:
    """G1a, G1b and unexpected: who appended what was read. `g1b_allowed` says why a read may end inside a
    transaction."""
    for element in elements:
        writer = lists.writer.get((key, element))
        if writer is None:
            text = f"{element} was read, and no transaction appended it"
            findings.add("unexpected", text, [lists.event(number)], key=key, detail={"value": element})
        elif lists.pairs[writer].outcome == "fail":
            text = f"{element} was read, and its transaction was aborted"
            both = [lists.event(writer), lists.event(number)]
            findings.add("G1a", text, both, key=key, detail={"value": element})
    if not elements:
        return
    writer = lists.writer.get((key, elements[-1]))
    if writer is not None and writer != number:
        last = [element for other, element in lists.appends(writer) if other == key][-1]
        if last != elements[-1]:
            text = f"a read ends with {elements[-1]}, after which the same transaction appended {last}"
            both = [lists.event(writer), lists.event(number)]
            findings.add("G1b", text, both, key=key, why_allowed=g1b_allowed)


def _find_dirty_updates(lists: AppendLists, findings: Findings) -> None:
    """A committed append behind an aborted one, which its transaction may have built on."""
    for key, elements in lists.order.items():
        aborted: int | None = None
        for element in elements:
            writer = lists.writer.get((key, element))
            outcome = None if writer is None else lists.pairs[writer].outcome
            if outcome == "fail":
                aborted = writer
            elif outcome == "ok" and writer is not None and aborted is not None:
                text = f"{element} was appended behind what an aborted transaction had appended"
                findings.add("dirty-update", text, [lists.event(aborted), lists.event(writer)], key=key)
                aborted = None


def _find_lost_updates(lists: AppendLists, findings: Findings, why_allowed: str | None) -> None:
    """Transactions that read the same version of a key and then each appended to it: one did not see the other."""
    updates: dict[tuple[str, int, Any], list[int]] = defaultdict(list)
    for number in range(len(lists.pairs)):
        if not lists.is_there(number):
            continue
        seen: dict[str, list[Any]] = {}
        appended: set[str] = set()
        for f, key, value in micro_operations(lists.pairs[number]):
            if f == "r" and key not in appended and lists.pairs[number].outcome == "ok":
                seen.setdefault(key, value or [])
            elif f == "append" and key in seen and key not in appended:
                appended.add(key)
                updates[key, len(seen[key]), seen[key][-1] if seen[key] else None].append(number)
    for (key, _, last), numbers in updates.items():
        if len(numbers) > 1:
            text = f"{len(numbers)} transactions appended to what they read up to {last}"
            events = [lists.event(number) for number in numbers[:8]]
            findings.add("lost-update", text, events, key=key, why_allowed=why_allowed)


def _find_losses(lists: AppendLists, findings: Findings) -> None:
    """lost-write: committed appends that a final read of their key lacks."""
    finals: dict[str, tuple[int, set[Any]]] = {}
    for number, pair in enumerate(lists.pairs):
        if pair.invocation.final:
            for key, elements in lists.reads(number):
                if len(elements) >= len(finals.get(key, (0, ()))[1]):
                    finals[key] = number, {*elements}
    for (key, element), writer in lists.writer.items():
        if key in finals and element not in finals[key][1] and lists.is_there(writer):
            text = f"{element} was appended by a transaction that committed, and the final read lacks it"
            both = [lists.event(writer), lists.event(finals[key][0])]
            findings.add("lost-write", text, both, key=key, detail={"value": element})
