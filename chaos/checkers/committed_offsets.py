"""Whether the committed offset of a group in one partition is what its members were told: a register.

A commit that was answered has happened, once, between its request and its answer; any other may have happened or not,
and may yet happen: clients retry by themselves, and return the last answer only. What a fetch returns must be possible
so.
"""

from __future__ import annotations

NOTHING = -1
"""What a fetch tells before any commit."""


class CommittedOffset:
    """Members report when something begins and what came of it."""

    def __init__(self) -> None:
        # What was committed last, as far as answers tell: several when their requests overlapped.
        self._settled: set[int] = {NOTHING}
        # By number, commits that are under way, and what was answered meanwhile.
        self._open: dict[int, int] = {}
        self._answered_meanwhile: dict[int, set[int]] = {}
        # Commits without an answer: they may have happened or not.
        self._lost: set[int] = set()
        # By number, fetches that are under way, with what they may tell.
        self._fetches: dict[int, set[int]] = {}
        self._number = 0
        self.commit_count = 0
        self.last_told = NOTHING
        """What the last fetch told."""

    def begin_commit(self, offset: int) -> int:
        """Returns the number by which the outcome is told."""
        self._number += 1
        self._open[self._number] = offset
        self._answered_meanwhile[self._number] = set()
        for allowed in self._fetches.values():
            allowed.add(offset)
        return self._number

    def on_committed(self, number: int) -> None:
        self.commit_count += 1
        offset = self._open.pop(number)
        # Of two that overlapped either may have come last.
        self._settled = {offset, *self._answered_meanwhile.pop(number)}
        for answered in self._answered_meanwhile.values():
            answered.add(offset)

    def on_lost(self, number: int) -> None:
        """The commit has no answer."""
        self._lost.add(self._open.pop(number))
        del self._answered_meanwhile[number]

    def begin_fetch(self) -> int:
        self._number += 1
        self._fetches[self._number] = {*self._settled, *self._open.values(), *self._lost}
        return self._number

    def on_fetched(self, number: int, offset: int) -> str | None:
        """A sentence when that cannot be."""
        self.last_told = offset
        allowed = self._fetches.pop(number)
        if offset in allowed:
            return None
        return f"the committed offset was fetched as {offset}, where only {sorted(allowed)} can be"

    def on_fetch_failed(self, number: int) -> None:
        del self._fetches[number]
