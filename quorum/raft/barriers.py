"""Read barriers: what a leader must hear before it may say that it has seen every commit (ReadIndex, thesis §6.4).

A barrier waits until an entry of the leader's own term is committed, takes the commit end of that moment, and is done
when a majority of voters has answered a probe that was sent after it began.
"""

from typing import NamedTuple

from ...protocol.ids import NodeId


class _Barrier(NamedTuple):
    token: object
    sequence: int


class BarrierResult(NamedTuple):
    token: object
    end_offset: int


class Barriers:
    """Of one leadership."""

    def __init__(self, voter_count: int) -> None:
        self._voter_count = voter_count
        self._sequence = 0
        self._new: list[object] = []
        self._waiting: list[_Barrier] = []
        self._ends: dict[int, int] = {}
        self._answered: dict[NodeId, int] = {}

    def begin(self, token: object) -> None:
        self._new.append(token)

    def start_round(self, commit_end: int) -> int | None:
        """Return the sequence to probe with for the barriers that came since the last round; None when none did.

        Call it only while the own term has committed.
        """
        if not self._new:
            return None
        self._sequence += 1
        self._ends[self._sequence] = commit_end
        self._waiting += [_Barrier(token, self._sequence) for token in self._new]
        self._new.clear()
        return self._sequence

    @property
    def open_sequence(self) -> int | None:
        """The latest sequence, while anyone waits: a probe may have been lost."""
        return self._sequence if self._waiting else None

    @property
    def is_round_due(self) -> bool:
        return bool(self._new)

    @property
    def is_idle(self) -> bool:
        return not self._new and not self._waiting

    def on_ack(self, peer_id: NodeId, sequence: int) -> None:
        if sequence <= self._sequence:
            self._answered[peer_id] = max(self._answered.get(peer_id, 0), sequence)

    def finished(self) -> list[BarrierResult]:
        answered = sorted(self._answered.values(), reverse=True)
        needed = self._voter_count // 2
        if needed == 0:
            confirmed = self._sequence
        elif len(answered) >= needed:
            confirmed = answered[needed - 1]
        else:
            return []
        done = [barrier for barrier in self._waiting if barrier.sequence <= confirmed]
        if done:
            self._waiting = [barrier for barrier in self._waiting if barrier.sequence > confirmed]
        results = [BarrierResult(barrier.token, self._ends[barrier.sequence]) for barrier in done]
        for sequence in [sequence for sequence in self._ends if sequence <= confirmed]:
            del self._ends[sequence]
        return results

    def drop(self) -> list[object]:
        """Return the tokens of all waiting barriers; this voter is no longer leader."""
        tokens = [*self._new, *(barrier.token for barrier in self._waiting)]
        self._new.clear()
        self._waiting.clear()
        self._ends.clear()
        self._answered.clear()
        return tokens
