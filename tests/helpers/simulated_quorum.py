"""Whole voters on a loop where time is skipped, with disks and a network in memory: a test moves what goes on."""

from collections.abc import Callable
from random import Random
from types import TracebackType
from typing import Self

from penstock.chaos.simulation.network import STREAMS, Network
from penstock.chaos.simulation.quorum_judge import QuorumJudge
from penstock.chaos.simulation.simulated_voter import SimulatedVoter
from penstock.chaos.simulation.virtual_loop import VirtualLoop


class Quorum:
    """Use it in a `with` statement; at its end nothing that must always hold has been violated."""

    def __init__(self, count: int = 3, *, seed: int = 1) -> None:
        random = Random(seed)
        self.loop = VirtualLoop()
        self.judge = QuorumJudge()
        self.network = Network(self.loop, random, STREAMS, lambda _: None)
        ids = tuple(range(1, count + 1))
        self.voters = {
            node_id: SimulatedVoter(
                node_id, ids, loop=self.loop, network=self.network, judge=self.judge,
                random=Random(random.getrandbits(64)), trace=lambda _: None,
            )
            for node_id in ids
        }  # fmt: skip
        for voter in self.voters.values():
            voter.start()

    def run(self, duration_s: float) -> None:
        done = self.loop.create_future()
        self.loop.call_later(duration_s, done.set_result, None)
        self.loop.run_until_complete(done)

    def until(self, condition: Callable[[], bool]) -> None:
        """Let up to a minute of the loop's time pass."""
        end_s = self.loop.time() + 60
        while not condition():
            assert self.loop.time() < end_s, f"not so within a minute; {self.judge.violations}"
            self.run(0.05)

    @property
    def leader(self) -> SimulatedVoter:
        """The one that commits; waits for it."""
        self.until(lambda: any(voter.is_leader for voter in self.voters.values()))
        leaders = [voter for voter in self.voters.values() if voter.is_leader]
        return max(leaders, key=lambda voter: 0 if voter.voter is None else voter.voter.epoch)

    def followers(self) -> list[SimulatedVoter]:
        leader = self.leader
        return [voter for voter in self.voters.values() if voter is not leader]

    def commit(self, *commands: bytes) -> None:
        """Propose to the leader and wait for its answers."""
        leader = self.leader
        for command in commands:
            leader.propose(command)
        self.until(lambda: all(command in self.judge.acknowledged for command in commands))

    def isolate(self, node_id: int) -> None:
        for peer_id in self.voters:
            if peer_id != node_id:
                self.network.cut(node_id, peer_id)
                self.network.cut(peer_id, node_id)

    def heal(self) -> None:
        for source_id, target_id in self.network.cuts:
            self.network.heal(source_id, target_id)

    def is_equal(self) -> bool:
        first, *others = self.voters.values()
        return all(other.commands == first.commands and other.heard_end == first.heard_end for other in others)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for voter in self.voters.values():
            if voter.is_up:
                voter.kill(has_power=True)
        self.run(0)
        self.loop.close()
        assert self.judge.violations == []
