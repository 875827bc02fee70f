"""What goes wrong with the voters of a simulated quorum: their processes, their power, their disks, and the links."""

from collections import Counter
from collections.abc import Callable, Mapping
from random import Random

from .network import Network
from .simulated_voter import SimulatedVoter


class QuorumFaults:
    """Each call is one fault, or mends one. `counts` tells how many there were, `paused` which voters are stopped."""

    def __init__(
        self,
        voters: Mapping[int, SimulatedVoter],
        *,
        network: Network,
        random: Random,
        trace: Callable[[str], None],
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.paused: set[int] = set()
        self._voters = voters
        self._network = network
        self._random = random
        self._trace = trace

    def choose(self, voters: list[SimulatedVoter]) -> SimulatedVoter | None:
        return self._random.choice(voters) if voters else None

    def end(self, voter: SimulatedVoter, *, has_power: bool) -> None:
        self.paused.discard(voter.node_id)
        voter.kill(has_power=has_power)
        voter.files.heal()
        voter.files.capacity_bytes = None
        voter.is_failure_expected = False

    def _may_go_down(self) -> list[SimulatedVoter]:
        """Mostly a majority stays."""
        up = [voter for voter in self._voters.values() if voter.is_up]
        may_lose_majority = self._random.random() < 0.2
        return up if may_lose_majority or len(up) * 2 - 2 > len(self._voters) else []

    def kill(self) -> None:
        voter = self.choose(self._may_go_down())
        if voter is not None:
            self.note("kill", voter.node_id)
            self.end(voter, has_power=True)

    def lose_power(self) -> None:
        voter = self.choose(self._may_go_down())
        if voter is not None:
            self.note("power loss", voter.node_id)
            self.end(voter, has_power=False)

    def black_out(self) -> None:
        """Everyone loses power at once; the leader, who knows the most, comes back last, perhaps."""
        self.note("blackout")
        leaders = [voter.node_id for voter in self._voters.values() if voter.is_leader]
        for voter in self._voters.values():
            if voter.is_up:
                self.end(voter, has_power=False)
        for voter in self._voters.values():
            if voter.node_id not in leaders:
                voter.start()

    def isolate_leader(self) -> None:
        leader = self.choose([voter for voter in self._voters.values() if voter.is_leader])
        if leader is not None:
            self.note("isolate", leader.node_id)
            for peer_id in self._voters:
                if peer_id != leader.node_id:
                    self._network.cut(leader.node_id, peer_id)
                    self._network.cut(peer_id, leader.node_id)

    def start(self) -> None:
        for voter in self._voters.values():
            if voter.has_failed and voter.is_up:
                self.end(voter, has_power=True)
        chosen = self.choose([voter for voter in self._voters.values() if not voter.is_up])
        if chosen is not None:
            self.note("start", chosen.node_id)
            chosen.start()

    def pair(self) -> tuple[int, int]:
        source_id, target_id = self._random.sample(sorted(self._voters), 2)
        return source_id, target_id

    def cut(self) -> None:
        source_id, target_id = self.pair()
        self._network.cut(source_id, target_id)
        is_one_way = self._random.random() >= 0.6
        self.note("one-way cut" if is_one_way else "cut", source_id, target_id)
        if not is_one_way:
            self._network.cut(target_id, source_id)

    def refuse(self) -> None:
        """Mostly for the leader: those who are refused take it for gone."""
        leaders = [voter.node_id for voter in self._voters.values() if voter.is_leader]
        source_id, target_id = self.pair()
        if leaders and self._random.random() < 0.7:
            target_id = leaders[-1]
        for node_id in self._voters if self._random.random() < 0.4 else (source_id,):
            if node_id != target_id:
                self.note("refuse", node_id, target_id)
                self._network.refuse(node_id, target_id)

    def partition(self) -> None:
        side = set(self._random.sample(sorted(self._voters), self._random.randrange(1, len(self._voters))))
        self.note("partition", *sorted(side))
        for source_id in self._voters:
            for target_id in self._voters:
                if (source_id in side) != (target_id in side):
                    self._network.cut(source_id, target_id)

    def heal(self) -> None:
        cuts = self._network.cuts
        if cuts:
            chosen = cuts if self._random.random() < 0.3 else [self._random.choice(cuts)]
            self.note("heal", len(chosen))
            for source_id, target_id in chosen:
                self._network.heal(source_id, target_id)

    def break_link(self) -> None:
        source_id, target_id = self.pair()
        self.note("broken link", source_id, target_id)
        self._network.break_link(source_id, target_id)

    def pause(self) -> None:
        voter = self.choose([voter for voter in self._voters.values() if voter.is_up])
        if voter is not None and voter.loop is not None and voter.node_id not in self.paused:
            self.note("pause", voter.node_id)
            self.paused.add(voter.node_id)
            voter.loop.pause()

    def resume(self) -> None:
        if self.paused:
            self.resume_node(self._random.choice(sorted(self.paused)))

    def resume_node(self, node_id: int) -> None:
        self.paused.discard(node_id)
        loop = self._voters[node_id].loop
        if loop is not None:
            loop.resume()

    def fail_disk(self) -> None:
        voter = self.choose(self._may_go_down())
        if voter is not None:
            self.note("disk error", voter.node_id)
            voter.is_failure_expected = True
            voter.files.fail(self._random.choice(("write", "sync", "rename", "create")), count=None)

    def fill_disk(self) -> None:
        voter = self.choose(self._may_go_down())
        if voter is not None:
            self.note("disk full", voter.node_id)
            voter.is_failure_expected = True
            voter.files.capacity_bytes = voter.files.total_bytes("/") - voter.files.free_bytes("/")

    def swap_disk(self) -> None:
        """Only while every other voter has the data: what is gone from a majority of disks is gone.

        What a voter that failed has in memory may not be on its disk.
        """
        down = [voter for voter in self._voters.values() if not voter.is_up]
        others = [voter for voter in self._voters.values() if voter.is_up]
        if len(down) == 1 and all(
            voter.voter is not None
            and voter.voter.is_member
            and voter.heard_end
            and not voter.is_busy
            and not voter.has_failed
            for voter in others
        ):
            self.note("swap", down[0].node_id)
            down[0].swap_disk()
            down[0].start()
            if self._random.random() < 0.5:
                # The voter with the longest log would now be missed.
                self.isolate_leader()

    def note(self, what: str, *details: int) -> None:
        self.counts[what] += 1
        self._trace(f"{what} {' '.join(map(str, details))}")
