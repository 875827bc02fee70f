"""Who has which partitions of a group, by what its members are told: never two at a time, and epochs only rise.

An epoch is a generation of the classic protocol, or a member epoch of the consumer protocol.

- In one epoch no partition has two members.
- A member that joins after any member has got an epoch gets that or a later one; no member goes back to an earlier one.
- What a member holds is given to no other as long as the group must know that it is there: for a session after it
  asked a coordinator that then was one, and was answered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(slots=True)
class _Claim:
    """A member has a partition since then."""

    since_s: float


class GroupOwnership:
    """Members report what they hear; `violations` are sentences. Times are seconds of one clock."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        self.highest_epoch = 0
        self._owners: dict[tuple[int, int], str] = {}
        self._epochs: dict[str, int] = {}
        self._claims: dict[tuple[str, int], _Claim] = {}
        self._sessions_s: dict[str, float] = {}

    def on_epoch(self, member: str, epoch: int, *, joined_above: int | None = None) -> None:
        """`joined_above` is what `highest_epoch` was when it asked to join, None if it only went on."""
        before = self._epochs.get(member, 0) if joined_above is None else joined_above
        if epoch < before:
            self.violations.append(f"{member} gets epoch {epoch} after epoch {before}")
        self._epochs[member] = epoch
        self.highest_epoch = max(self.highest_epoch, epoch)

    def on_assigned(self, member: str, epoch: int, partitions: Iterable[int]) -> None:
        for partition in partitions:
            owner = self._owners.setdefault((epoch, partition), member)
            if owner != member:
                self.violations.append(f"{member} and {owner} both have partition {partition} in epoch {epoch}")

    def hold(self, member: str, partitions: Iterable[int], *, asked_s: float, now_s: float) -> None:
        """What it takes in addition, by the answer to what it asked at `asked_s`."""
        for partition in partitions:
            for (other, held), claim in self._claims.items():
                # Of answers that crossed each other it is unknown which was made first.
                if held != partition or other == member or claim.since_s >= asked_s:
                    continue
                if now_s < self._sessions_s.get(other, 0.0):
                    self.violations.append(
                        f"{member} is given partition {partition}, which {other} has and has not let go"
                    )
            self._claims[(member, partition)] = _Claim(now_s)

    def release(self, member: str, partitions: Iterable[int]) -> None:
        """Before the coordinator gets the request that gives them up."""
        for partition in partitions:
            self._claims.pop((member, partition), None)

    def on_session(self, member: str, end_s: float) -> None:
        """Until then the group must count on it."""
        self._sessions_s[member] = end_s
