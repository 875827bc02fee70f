"""Whether everything goes on once all faults have ended: the longest time without a success, of each key and process.

A key waits from the invocation that asks for it, or from the healing, until an operation that asks for it succeeds.
Attempts that fail in between do not end the wait. Time in which nothing asks for the key is no wait, if it follows a
success, or if other keys were successful in it: else it may be that no client could ask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from msgspec import Struct

from ..histories.operation import NEMESIS, History, Operation, Pair
from .finding import Checked, Findings
from .judge import CANARY
from .metadata_operations import is_refusal

# What a client may wait after the healing: a session, an election and its own timeouts and pauses.
BOUND_S: Final = 30.0
# Longer than a client pauses between attempts.
PAUSE_S: Final = 5.0
# Of keys and of processes, the longest are in the statistics.
_SHOWN: Final = 16

# `key` or `process`, and which.
_Name = tuple[str, str]


@dataclass(slots=True)
class _Wait:
    """Of a key or a process. Times are nanoseconds since the run began."""

    open_count: int = 0
    # Since when a success is missing, and the event from which on; None while nothing is asked for.
    since: tuple[int, int] | None = None
    last: tuple[int, int] = (0, 0)
    longest_ns: int = 0
    longest: tuple[int, int] | None = None
    first_success: int | None = None

    def asked(self, time: int, index: int, *, is_open: bool, others_succeeded: int) -> None:
        """`others_succeeded`: when an operation of any key was successful last."""
        is_anew = not self.open_count and time - self.last[0] > PAUSE_S * 1e9 and others_succeeded > self.last[0]
        if self.since is not None and is_anew:
            self.ends(*self.last)
            self.since = None
        self.open_count += is_open
        self.last = time, index
        if self.since is None:
            self.since = time, index

    def answered(self, time: int, index: int, *, is_success: bool) -> None:
        self.open_count -= 1
        self.last = time, index
        if is_success:
            self.first_success = time if self.first_success is None else self.first_success
            self.ends(time, index)
            self.since = (time, index) if self.open_count else None

    def ends(self, time: int, index: int) -> None:
        if self.since is not None and time - self.since[0] > self.longest_ns:
            self.longest_ns = time - self.since[0]
            self.longest = self.since[1], index


def check_liveness(history: History, *, bound_s: float = BOUND_S) -> Checked:
    """A wait of more than `bound_s` after the last fault ended is a finding. Without faults, all of the run is judged;
    where one never ended, nothing is."""
    findings = Findings()
    run = _Run.of(history)
    healed_ns = run.healed_ns
    if healed_ns is None:
        return findings.checked({"healed": False})
    waits = _waits(history, healed_ns, run.unanswered)
    for (what, name), wait in waits.items():
        if wait.longest is not None and wait.longest_ns > bound_s * 1e9:
            message = (
                f"{what} {name} has no success for {wait.longest_ns / 1e9:.1f} s after all faults ended, "
                f"where at most {bound_s:g} s were expected"
            )
            key = name if what == "key" else None
            findings.add("stall", message, wait.longest, key=key, detail={"s": round(wait.longest_ns / 1e9, 3)})
    return findings.checked(
        {"healed": True, "healed-at-s": round(healed_ns / 1e9, 3), "bound-s": bound_s}
        | {
            "longest-waits-of-keys-s": _longest(waits, "key"),
            "longest-waits-of-processes-s": _longest(waits, "process"),
        }
        | {"first-success-s": _first_successes(waits, healed_ns)}
    )


class _Run(Struct, frozen=True):
    # When the last fault ended, 0 without any; None where one never did.
    healed_ns: int | None
    # Invocations whose clients have no later event.
    unanswered: Collection[int]

    @classmethod
    def of(cls, history: History) -> Self:
        """Goes through the history once: it may be a file of millions."""
        healed_ns = 0
        holding: Counter[str] = Counter()
        asked: dict[int | str, int] = {}
        for operation in history.operations:
            if operation.process != NEMESIS:
                if operation.type == "invoke":
                    asked[operation.process] = operation.index
                else:
                    asked.pop(operation.process, None)
            elif operation.f != CANARY:
                healed_ns = operation.time
                if isinstance(operation.value, dict):
                    holding[operation.f] += ("begin" in operation.value) - ("end" in operation.value)
        return cls(None if any(count > 0 for count in holding.values()) else healed_ns, frozenset(asked.values()))


def _waits(history: History, healed_ns: int, unanswered: Collection[int]) -> Mapping[_Name, _Wait]:
    waits: dict[_Name, _Wait] = {}
    asked: dict[int | str, Operation] = {}
    is_healed = False
    succeeded = healed_ns
    end = healed_ns, 0

    def ask(operation: Operation) -> None:
        for name in _names(operation):
            # What a dead client asked of a key is asked no more; the client itself waits in vain.
            is_open = name[0] == "process" or operation.index not in unanswered
            wait = waits.setdefault(name, _Wait())
            time = max(operation.time, healed_ns)
            wait.asked(time, operation.index, is_open=is_open, others_succeeded=succeeded)

    for operation in history.operations:
        if operation.process == NEMESIS:
            continue
        end = operation.time, operation.index
        if not is_healed and operation.time >= healed_ns:
            # What is open when all is healed waits from then on.
            is_healed = True
            for before in asked.values():
                ask(before)
        if operation.type == "invoke":
            asked[operation.process] = operation
            if is_healed:
                ask(operation)
        elif (invocation := asked.pop(operation.process, None)) is not None and is_healed:
            is_success = _is_success(Pair(invocation, operation))
            for name in _names(invocation):
                waits[name].answered(operation.time, operation.index, is_success=is_success)
                if is_success and name[0] == "key":
                    succeeded = operation.time
    for wait in waits.values():
        # What is open waits to the end; else the last answer was the last attempt.
        wait.ends(*(end if wait.open_count else wait.last))
    return waits


def _is_success(pair: Pair) -> bool:
    return pair.outcome == "ok" or is_refusal(pair)


def _names(invocation: Operation) -> Iterator[_Name]:
    """The process, and the keys that the operation asks for: a poll asks for none."""
    yield "process", str(invocation.process)
    yield from (("key", key) for key in dict.fromkeys(_keys(invocation)))


def _keys(invocation: Operation) -> Iterator[str]:
    value: Any = invocation.value
    if isinstance(value, dict):
        yield from (str(value[name]) for name in ("k", "name") if name in value)
    elif isinstance(value, list) and invocation.f in ("send", "txn"):
        yield from (str(one[1]) for one in value if isinstance(one, list) and len(one) > 1)


def _longest(waits: Mapping[_Name, _Wait], kind: str) -> dict[str, float]:
    found = sorted(
        ((wait.longest_ns, name) for (what, name), wait in waits.items() if what == kind), key=lambda one: -one[0]
    )
    return {name: round(longest_ns / 1e9, 3) for longest_ns, name in found[:_SHOWN]}


def _first_successes(waits: Mapping[_Name, _Wait], healed_ns: int) -> dict[str, float]:
    """Of keys, after the healing."""
    return {
        name: round((wait.first_success - healed_ns) / 1e9, 3)
        for (what, name), wait in sorted(waits.items())
        if what == "key" and wait.first_success is not None
    }
