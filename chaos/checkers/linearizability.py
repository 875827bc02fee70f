"""Whether operations on one object have a linearization: an order that its model allows and real time does not forbid.

The search of Wing and Gong, with Lowe's memory of configurations that lead nowhere. A configuration is what has been
given its place so far and the state after it; it is kept as the few operations that are open, so that its size is the
concurrency, not the length, of the history. Objects are judged one by one: a history is linearizable when that of each
object is (Herlihy and Wing), so callers divide it by key.

An operation whose outcome is unknown takes effect at any moment after its invocation, or never. Those are tried last.
The number of configurations that are gone back to is bounded; beyond it the answer is "unknown", never a guess.
Sources: Wing and Gong, "Testing and Verifying Concurrent Objects" (1993); Lowe, "Testing for linearizability" (2016).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from math import inf
from typing import Final, Literal, NamedTuple

from msgspec import Struct

# Configurations that the search goes back to, before it gives up on one object, and one more for each operation: some
# seconds.
BOUND: Final = 100_000
# The same for each attempt to leave operations out of the evidence, and for all attempts: evidence that is longer than
# it must be is still true.
_ATTEMPT_BOUND: Final = 20_000
_ATTEMPTS_BOUND: Final = 100_000


class _Impossible:
    def __repr__(self) -> str:
        return "IMPOSSIBLE"


IMPOSSIBLE: Final = _Impossible()
"""What a model answers when an operation cannot have had its outcome in that state."""

Model = Callable[[Hashable, Hashable], Hashable]
"""From a state and an action to the state after it, or IMPOSSIBLE."""


class Step(NamedTuple):
    """An operation on the object. Moments are indices of the history's events, which no two share."""

    invoked: int
    # None: the outcome is unknown.
    returned: int | None
    # What was asked and, where it is known, answered, as the model takes it.
    action: Hashable
    # Whether it can change the state. What only tells the state can always have its place as soon as it fits.
    is_change: bool = True


class Linearization(Struct, frozen=True, kw_only=True):
    outcome: Literal["linearizable", "non-linearizable", "unknown"]
    # Of a history that has none: the smallest prefix that has none ends with this event, the completion of an operation
    # that has no place.
    end: int | None = None
    # The states that the object could have been in before that operation.
    states: tuple[Hashable, ...] = ()


def linearize(steps: Sequence[Step], model: Model, *, initial: Hashable = None, bound: int = BOUND) -> Linearization:
    """Searches an order of all `steps` of one object whose outcome is known, and any of the others."""
    # Mostly, one operation of unknown outcome at a time explains what is seen.
    hasty = _Search(steps, model, bound, most_at_once=1).run(initial)
    if hasty.outcome == "linearizable" or all(step.returned is not None for step in steps):
        return hasty
    return _Search(steps, model, bound).run(initial)


def evidence(steps: Sequence[Step], model: Model, end: int, *, initial: Hashable = None) -> tuple[Step, ...]:
    """The operations of the prefix up to `end` that have no order together, as few as a bounded search finds.

    Those left out are still allowed to take effect at any moment after their invocation, or never.
    """
    prefix = [
        step if step.returned is not None and step.returned <= end else step._replace(returned=None)
        for step in steps
        if step.invoked < end
    ]
    kept = [place for place, step in enumerate(prefix) if step.returned is not None and step.returned < end]
    bound = _ATTEMPTS_BOUND
    size = max(1, len(kept) // 2)
    # The oldest are left out first: the newest are mostly those that matter.
    start = 0
    while bound > 0 and kept:
        chunk = {*kept[start : start + size]}
        relaxed = [step._replace(returned=None) if place in chunk else step for place, step in enumerate(prefix)]
        search = _Search(relaxed, model, min(bound, _ATTEMPT_BOUND))
        # An attempt costs its length, too.
        is_enough = search.run(initial).outcome == "non-linearizable"
        bound -= search.tried + len(relaxed)
        if is_enough:
            prefix = relaxed
            kept = [place for place in kept if place not in chunk]
        else:
            start += size
        if start >= len(kept):
            if size == 1:
                break
            size, start = size // 2, 0
    return tuple(step for step in prefix if step.returned is not None)


class _Configuration(NamedTuple):
    """All operations of known outcome before `front` have their place, but for the open ones."""

    front: int
    open: tuple[int, ...]
    # A bit for each operation of unknown outcome that has taken effect.
    used: int
    state: Hashable
    # Whether more operations of unknown outcome, before the next of a known one, are tried by another configuration.
    is_settled: bool = False


class _Search:
    def __init__(self, steps: Sequence[Step], model: Model, bound: int, *, most_at_once: int = sys.maxsize) -> None:
        """`most_at_once`: so many of unknown outcome between two of known outcome; with fewer than there are, only what
        is found linearizable is certain."""
        self._model = model
        self._bound = bound + len(steps)
        self._most_at_once = most_at_once
        self.tried = 0
        known = sorted((step for step in steps if step.returned is not None), key=lambda step: step.invoked)
        self._invoked = [step.invoked for step in known]
        self._returned = [step.returned or 0 for step in known]
        self._actions = [step.action for step in known]
        self._is_change = [step.is_change for step in known]
        unknown = sorted(
            (step for step in steps if step.returned is None and step.is_change), key=lambda step: step.invoked
        )
        self._unknown_invoked = [step.invoked for step in unknown]
        self._unknown_actions = [step.action for step in unknown]
        # Of equal operations of unknown outcome the earlier one takes effect first: no other order shows more.
        newest: dict[Hashable, int] = {}
        self._twins: list[int | None] = []
        for place, action in enumerate(self._unknown_actions):
            self._twins.append(newest.get(action))
            newest[action] = place
        self._end = -1.0
        self._last: set[Hashable] = set()
        # By the rest of a configuration, the operations of unknown outcome that it had used.
        self._seen: dict[tuple[int, tuple[int, ...], Hashable], list[int]] = {}

    def run(self, initial: Hashable) -> Linearization:
        # What is still to be tried; of an iterator, what it yields.
        waiting: list[Iterator[_Configuration]] = [iter([_Configuration(0, (), 0, initial)])]
        while waiting:
            following = next(waiting[-1], None)
            if following is None:
                waiting.pop()
                continue
            self.tried += 1
            if self.tried > self._bound:
                return Linearization(outcome="unknown")
            if self._follow(following, waiting):
                return Linearization(outcome="linearizable")
        states = tuple(sorted(self._last, key=repr))
        return Linearization(outcome="non-linearizable", end=int(self._end), states=states)

    def _follow(self, start: _Configuration, waiting: list[Iterator[_Configuration]]) -> bool:
        """Goes on from `start` by the first choice, each time, and leaves the others waiting. Returns whether it came
        to the end of the history."""
        invoked, returned, actions, is_change = self._invoked, self._returned, self._actions, self._is_change
        model = self._model
        count = len(invoked)
        first_unknown = self._unknown_invoked[0] if self._unknown_invoked else inf
        front, open_ones, used, state, is_settled = start
        opened = list(open_ones)
        while True:
            limit: float = min((returned[place] for place in opened), default=inf)
            # The next operation may come now unless one that is open returned before it was invoked.
            while front < count and invoked[front] < limit:
                opened.append(front)
                limit = min(limit, returned[front])
                front += 1
            if not opened:
                return True
            moves: list[tuple[int, Hashable]] = []
            remaining: list[int] = []
            for place in opened:
                after = model(state, actions[place])
                if after is IMPOSSIBLE or is_change[place]:
                    remaining.append(place)
                    if after is not IMPOSSIBLE:
                        moves.append((place, after))
            if len(remaining) < len(opened):
                opened = remaining
                is_settled = False
                continue
            if limit > self._end:
                self._end, self._last = limit, {state}
            elif limit == self._end:
                self._last.add(state)
            if len(moves) != 1 or first_unknown < limit:
                here = _Configuration(front, tuple(opened), used, state)
                if _is_covered(self._seen.setdefault((front, here.open, state), []), used):
                    return False
                if first_unknown < limit and not is_settled:
                    waiting.append(self._unknown_moves(here, limit))
                if len(moves) > 1:
                    waiting.append(_others(here, moves))
                elif not moves:
                    return False
            place, state = moves[0]
            opened.remove(place)
            is_settled = False

    def _unknown_moves(self, here: _Configuration, limit: float) -> Iterator[_Configuration]:
        """What operations of unknown outcome can make of `here` until the next one of known outcome, fewest first."""
        tried = {here.state: [here.used]}
        level = [here]
        for _ in range(min(self._most_at_once, len(self._unknown_invoked))):
            following = []
            for one in level:
                for place, invoked in enumerate(self._unknown_invoked):
                    if invoked > limit:
                        break
                    twin = self._twins[place]
                    if one.used >> place & 1 or (twin is not None and not one.used >> twin & 1):
                        continue
                    after = self._model(one.state, self._unknown_actions[place])
                    used = one.used | 1 << place
                    if after is IMPOSSIBLE or _is_covered(tried.setdefault(after, []), used):
                        continue
                    following.append(one._replace(used=used, state=after, is_settled=True))
                    yield following[-1]
            level = following


def _is_covered(tried: list[int], used: int) -> bool:
    """Whether one of `tried` had used none that `used` has not, so that from it all is possible that is from here; else
    `used` is one of them from now on."""
    if any(other & used == other for other in tried):
        return True
    tried.append(used)
    return False


def _others(here: _Configuration, moves: Sequence[tuple[int, Hashable]]) -> Iterator[_Configuration]:
    for place, after in moves[1:]:
        yield here._replace(open=tuple(other for other in here.open if other != place), state=after, is_settled=False)
