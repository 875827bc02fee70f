"""Voters whose network refuses connections for a leader that lives: no loss, no flapping."""

from collections.abc import Callable, Iterator
from random import Random

import pytest

from penstock.chaos.simulation.network import Network, NetworkMode
from penstock.chaos.simulation.quorum_judge import QuorumJudge
from penstock.chaos.simulation.simulated_voter import SimulatedVoter
from penstock.chaos.simulation.virtual_loop import VirtualLoop

IDS = (1, 2, 3)


class World:
    """Three voters with a leader, on a network without faults until it is told otherwise."""

    def __init__(self, loop: VirtualLoop, seed: int) -> None:
        self.loop = loop
        random = Random(seed)
        self.judge = QuorumJudge()
        self.network = Network(loop, random, NetworkMode(is_hostile=False, stall_chance=0.0), lambda _: None)
        self.voters = {
            node_id: SimulatedVoter(
                node_id, IDS, loop=loop, network=self.network, judge=self.judge, random=random, trace=lambda _: None
            )
            for node_id in IDS
        }
        self.command_count = 0
        for voter in self.voters.values():
            voter.start()
        self.run_until(lambda: self.leader_ids != [])

    @property
    def leader_ids(self) -> list[int]:
        return [node_id for node_id, voter in self.voters.items() if voter.is_leader]

    @property
    def term_count(self) -> int:
        return len(self.judge.leaders)

    def run(self, duration_s: float) -> None:
        """Let time pass under load."""
        end_s = self.loop.time() + duration_s
        while self.loop.time() < end_s:
            for node_id in self.leader_ids:
                self.command_count += 1
                self.voters[node_id].propose(b"%d" % self.command_count)
            stopped = self.loop.create_future()
            self.loop.call_later(0.02, stopped.set_result, None)
            self.loop.run_until_complete(stopped)

    def run_until(self, condition: Callable[[], bool]) -> None:
        end_s = self.loop.time() + 20
        while not condition():
            assert self.loop.time() < end_s, "not so within 20 simulated seconds"
            self.run(0.02)

    def come_together(self) -> None:
        """Heal; everything acknowledged must be everywhere."""
        for source_id, target_id in self.network.cuts:
            self.network.heal(source_id, target_id)
        self.run_until(lambda: len(self.leader_ids) == 1)
        self.run(1)
        (leader_id,) = self.leader_ids
        acknowledged = set(self.judge.acknowledged)
        self.run_until(lambda: all(acknowledged <= set(voter.commands) for voter in self.voters.values()))
        assert self.voters[leader_id].is_leader
        assert self.judge.violations == []


@pytest.fixture(params=range(5))
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with VirtualLoop() as loop:
        world = World(loop, request.param)
        world.run(1)
        yield world
        for voter in world.voters.values():
            if voter.is_up:
                voter.kill(has_power=True)
        loop.run_until_complete(loop.create_task(_nothing()))


async def _nothing() -> None:
    """Let what was killed end."""


@pytest.mark.thorough
def test_a_leader_that_is_refused_for_to_one_follower_goes_on_leading(world: World) -> None:
    (leader_id,), before = world.leader_ids, world.term_count
    follower_id = next(node_id for node_id in IDS if node_id != leader_id)
    for _ in range(10):
        world.network.refuse(follower_id, leader_id)
        world.run(0.5)
        world.network.heal(follower_id, leader_id)
        world.run(0.1)
    assert (world.leader_ids, world.term_count) == ([leader_id], before)
    world.come_together()
    assert world.term_count == before


@pytest.mark.thorough
def test_a_follower_that_hears_nothing_either_moves_no_leadership(world: World) -> None:
    (leader_id,), before = world.leader_ids, world.term_count
    follower_id = next(node_id for node_id in IDS if node_id != leader_id)
    world.network.refuse(follower_id, leader_id)
    world.network.refuse(leader_id, follower_id)
    world.run(10)
    assert (world.leader_ids, world.term_count) == ([leader_id], before)
    world.come_together()
    assert world.term_count == before


@pytest.mark.thorough
def test_a_leader_that_is_refused_for_to_everyone_is_replaced_once(world: World) -> None:
    """No node reaches it any more, so it is no leader."""
    (leader_id,), before = world.leader_ids, world.term_count
    for node_id in IDS:
        if node_id != leader_id:
            world.network.refuse(node_id, leader_id)
    world.run_until(lambda: any(node_id != leader_id for node_id in world.leader_ids))
    world.run(10)
    assert leader_id not in world.leader_ids
    assert world.term_count <= before + 2
    replaced = world.term_count
    world.come_together()
    assert world.term_count == replaced


def test_a_killed_leader_is_replaced_before_any_timeout(world: World) -> None:
    (leader_id,) = world.leader_ids
    killed_s = world.loop.time()
    world.voters[leader_id].kill(has_power=True)
    world.run_until(lambda: world.leader_ids != [])
    assert world.loop.time() - killed_s < 0.5
