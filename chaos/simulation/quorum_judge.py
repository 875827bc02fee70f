"""What must hold in every run of the quorum, checked while it runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class QuorumJudge:
    """Receives what every voter tells its node, and what clients were answered."""

    violations: list[str] = field(default_factory=list)
    leaders: dict[int, int] = field(default_factory=dict)
    """Who leads each term."""
    entries: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    """What was first heard as committed at each offset."""
    acknowledged: dict[bytes, int] = field(default_factory=dict)
    barrier_count: int = 0
    numbers: dict[int, bytes] = field(default_factory=dict)
    """What decisions that count up were answered, and for which command."""

    def on_leader(self, node_id: int, term: int) -> None:
        other_id = self.leaders.setdefault(term, node_id)
        if other_id != node_id:
            self.violations.append(f"two leaders in term {term}: {other_id} and {node_id}")

    def on_commit(self, node_id: int, offset: int, epoch: int, command: bytes) -> None:
        heard = self.entries.setdefault(offset, (epoch, command))
        if heard != (epoch, command):
            self.violations.append(
                f"divergence: node {node_id} commits {(epoch, command[:40])} at offset {offset}, others {heard[0]}, "
                f"{heard[1][:40]!r}"
            )

    def on_acknowledged(self, command: bytes, offset: int) -> None:
        self.acknowledged[command] = offset
        if self.entries.get(offset, (0, b""))[1] != command:
            self.violations.append(f"{command[:40]!r} was acknowledged at offset {offset}, where it is not")

    def on_decided(self, command: bytes, offset: int, number: int) -> None:
        """A decision read a counter, raised it to `number`, and was answered with that."""
        self.acknowledged[command] = offset
        if command not in self.entries.get(offset, (0, b""))[1]:
            self.violations.append(f"{command[:40]!r} was foretold for offset {offset}, where it is not")
        other = self.numbers.setdefault(number, command)
        if other != command:
            self.violations.append(
                f"decided on an old image: {other[:40]!r} and {command[:40]!r} were both answered {number}"
            )

    @property
    def acknowledged_end(self) -> int:
        return max(self.acknowledged.values(), default=-1) + 1

    def on_barrier(self, node_id: int, offset: int, needed_end: int) -> None:
        """A barrier that began when everything below `needed_end` had been acknowledged returned `offset`."""
        self.barrier_count += 1
        if offset + 1 < needed_end:
            self.violations.append(
                f"stale barrier read: node {node_id} answers offset {offset}, {needed_end - 1} was acknowledged before"
            )

    def on_failure(self, node_id: int, reason: str) -> None:
        """A voter stopped for no reason that it was given."""
        self.violations.append(f"node {node_id} stopped: {reason}")

    def on_state(self, node_id: int, commands: Sequence[bytes]) -> None:
        """At the end: the whole state of a voter."""
        state = set(commands)
        lost = [command for command in self.acknowledged if command not in state]
        if lost:
            self.violations.append(f"acknowledged loss: node {node_id} lacks {len(lost)}, among them {lost[0][:40]!r}")
        if len(state) != len(commands):
            self.violations.append(f"node {node_id} has {len(commands) - len(state)} commands twice")
