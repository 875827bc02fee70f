"""Whether a group that commits by itself got everything at least once: nothing is skipped by what it committed.

A member commits what it has been given, never more; so the group goes on, after any crash and rebalance, at or before
the first record that no member was given. Records that come again are allowed: that is at least once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from ..histories.operation import History, Pair
from .finding import Checked, Findings
from .micro_operations import NO_FINAL_READS, has_final_polls, polled, sent

AT_LEAST_ONCE: Final = "a member goes on at what was committed, and what came after that comes again: at least once"


class _Record(NamedTuple):
    value: Hashable
    # The event that proves that it is there.
    event: int
    # The event before which it cannot have been there: its send was not invoked yet.
    sent: int = -1


class _UnknownPoll(NamedTuple):
    """A member's poll of which nothing tells what it was given. `completed` is infinite where it has no completion."""

    invoked: int
    completed: float

    def may_have_given(self, record: _Record, *, before: float) -> bool:
        """Whether the record was there while it lasted, and it began before the event that shows the record skipped."""
        return record.sent < self.completed and self.invoked < before

    def sentence(self) -> str:
        event = self.invoked if self.completed == inf else int(self.completed)
        return f"the poll of event {event} may have been given it"


@dataclass(slots=True)
class _Partition:
    # What is known to be there, by offset.
    records: dict[int, _Record] = field(default_factory=dict)
    # First and second time that the group was given each offset: events.
    given: dict[int, int] = field(default_factory=dict)
    again: dict[int, int] = field(default_factory=dict)
    # What the group is known to have committed, highest last, with the events of their requests.
    commits: list[tuple[int, int]] = field(default_factory=list)


def check_group(history: History) -> Checked:
    """Operations `send`, `subscribe`, `poll`, `commit` {key: next offset}; members are the processes that subscribed
    last; others that poll, those of final reads among them, read for themselves."""
    findings = Findings()
    partitions: dict[str, _Partition] = {}
    unknown: list[_UnknownPoll] = []
    for pair, is_member in _with_members(history):
        for key, value, offset in sent(pair):
            if pair.outcome != "fail" and offset is not None:
                _of(partitions, key).records.setdefault(offset, _Record(value, pair.index, pair.invocation.index))
        if pair.outcome != "fail":
            for key, position in _committed(pair).items():
                commits = _of(partitions, key).commits
                if pair.outcome == "ok" and (not commits or position > commits[-1][0]):
                    commits.append((position, pair.index))
        if pair.outcome == "info" and is_member and pair.invocation.f == "poll":
            unknown.append(
                _UnknownPoll(pair.invocation.index, inf if pair.completion is None else pair.completion.index)
            )
        if pair.outcome != "ok":
            continue
        for key, offset, value in polled(pair):
            one = _of(partitions, key)
            one.records.setdefault(offset, _Record(value, pair.index))
            if is_member and one.given.setdefault(offset, pair.index) != pair.index:
                one.again.setdefault(offset, pair.index)
    why_late = None if has_final_polls(history) else NO_FINAL_READS
    for key, one in partitions.items():
        _judge(findings, key, one, unknown, why_late=why_late)
    return findings.checked(
        {
            "records": sum(len(one.records) for one in partitions.values()),
            "given": sum(len(one.given) for one in partitions.values()),
            "given-again": sum(len(one.again) for one in partitions.values()),
            "commits": sum(len(one.commits) for one in partitions.values()),
        }
    )


def _judge(
    findings: Findings, key: str, one: _Partition, unknown: Sequence[_UnknownPoll], *, why_late: str | None
) -> None:
    def excuse(record: _Record, *, before: float = inf) -> str | None:
        return next((poll.sentence() for poll in unknown if poll.may_have_given(record, before=before)), None)

    given = sorted(one.given)
    for offset in sorted(one.records.keys() - one.given.keys()):
        record = one.records[offset]
        value, index, _ = record
        commit = next((commit for commit in one.commits if commit[0] > offset), None)
        if commit is not None:
            message = f"{value} at {offset} of {key} was given to no member, and {commit[0]} was committed"
            why_allowed = excuse(record, before=commit[1])
            findings.add("skipped", message, (index, commit[1]), key=key, why_allowed=why_allowed)
        elif given and offset < given[-1]:
            later = given[bisect_right(given, offset)]
            message = f"{value} at {offset} of {key} was given to no member, and what is at {later} was"
            why_allowed = excuse(record, before=one.given[later])
            findings.add("skipped", message, (index, one.given[later]), key=key, why_allowed=why_allowed)
        else:
            message = f"{value} at {offset} of {key} was given to no member"
            findings.add("unseen", message, (index,), key=key, why_allowed=why_late or excuse(record))
    for offset, index in one.again.items():
        message = f"{one.records[offset].value} at {offset} of {key} was given to members again"
        findings.add("duplicate", message, (one.given[offset], index), key=key, why_allowed=AT_LEAST_ONCE)


def _with_members(history: History) -> Iterator[tuple[Pair, bool]]:
    """Each operation, and whether its process is a member of the group then."""
    members: dict[int | str, bool] = {}
    for pair in history.pairs():
        process = pair.invocation.process
        if pair.invocation.f in ("subscribe", "assign"):
            members[process] = pair.invocation.f == "subscribe"
        # Of a history that does not say who subscribed, all are.
        yield pair, members.get(process, True)


def _committed(pair: Pair) -> Mapping[str, int]:
    value = pair.invocation.value
    return value if pair.invocation.f == "commit" and isinstance(value, dict) else {}


def _of(partitions: dict[str, _Partition], key: str) -> _Partition:
    return partitions.setdefault(key, _Partition())
