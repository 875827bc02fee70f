"""What those who propose see of a leadership transfer, on simulated voters with journals and links."""

from collections.abc import Callable, Iterator
from random import Random

import pytest

from penstock.chaos.simulation.network import STREAMS, Network
from penstock.chaos.simulation.quorum_judge import QuorumJudge
from penstock.chaos.simulation.simulated_voter import SimulatedVoter
from penstock.chaos.simulation.virtual_loop import VirtualLoop
from penstock.protocol.ids import NodeId
from penstock.quorum.raft.consensus import NotLeader, OutcomeUnknown, TransferFailed
from penstock.quorum.raft.leadership_transfer import TIMEOUT_MS
from penstock.quorum.voter.voter import RaftVoter

IDS = (1, 2, 3)


class Quorum:
    """Three voters that follow one leader."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.judge = QuorumJudge()
        self.network = Network(loop, Random(1), STREAMS, lambda _: None)
        self.voters = {
            node_id: SimulatedVoter(
                node_id, IDS, loop=loop, network=self.network, judge=self.judge, random=Random(node_id),
                trace=lambda _: None,
            )
            for node_id in IDS
        }  # fmt: skip
        for voter in self.voters.values():
            voter.start()
        self.wait(lambda: len({self.voter(node_id).leader_id for node_id in IDS} - {None}) == 1 and self.leads(None))

    def voter(self, node_id: int) -> RaftVoter:
        voter = self.voters[node_id].voter
        assert voter is not None
        return voter

    def leads(self, node_id: int | None) -> bool:
        """Whether a voter, or this one, leads with everyone's knowledge and an entry of its own."""
        leader_id = self.voter(1).leader_id
        return (
            leader_id is not None
            and node_id in (None, leader_id)
            and all(
                self.voter(peer_id).leader_id == leader_id and self.voters[peer_id].epoch == self.voter(leader_id).epoch
                for peer_id in IDS
            )
        )

    @property
    def leader_id(self) -> int:
        leader_id = self.voter(1).leader_id
        assert leader_id is not None
        return leader_id

    def pass_time(self, duration_s: float) -> None:
        stopped = self.loop.create_future()
        self.loop.call_later(duration_s, stopped.set_result, None)
        self.loop.run_until_complete(stopped)

    def wait(self, condition: Callable[[], bool]) -> None:
        end_s = self.loop.time() + 30
        while not condition():
            assert self.loop.time() < end_s
            self.pass_time(0.01)

    def stop(self) -> None:
        for voter in self.voters.values():
            voter.kill(has_power=True)
        self.pass_time(0)
        assert not self.judge.violations


@pytest.fixture
def quorum() -> Iterator[Quorum]:
    with VirtualLoop() as loop:
        quorum = Quorum(loop)
        yield quorum
        quorum.stop()


def test_it_ends_when_the_new_leader_is_known(quorum: Quorum) -> None:
    old_id = quorum.leader_id
    target_id = old_id % 3 + 1
    transfer = quorum.loop.create_task(quorum.voter(old_id).transfer_leadership(NodeId(target_id)))
    assert quorum.loop.run_until_complete(transfer) == target_id
    assert quorum.voter(old_id).leader_id == target_id
    quorum.wait(lambda: quorum.leads(target_id))
    with pytest.raises(NotLeader):
        quorum.loop.run_until_complete(quorum.voter(old_id).transfer_leadership(None))


def test_what_is_proposed_meanwhile_is_never_made_or_made_elsewhere(quorum: Quorum) -> None:
    old = quorum.voter(quorum.leader_id)
    before = old.propose(b"before", epoch=old.epoch)
    transfer = quorum.loop.create_task(old.transfer_leadership(None))
    quorum.pass_time(0)
    meanwhile = old.propose(b"meanwhile", epoch=old.epoch)
    quorum.loop.run_until_complete(transfer)
    assert before.result().offset == 1
    with pytest.raises(OutcomeUnknown):
        quorum.loop.run_until_complete(meanwhile)
    quorum.wait(lambda: quorum.leads(None))
    assert all(quorum.voters[node_id].commands == [b"before"] for node_id in IDS)


def test_what_is_proposed_meanwhile_is_made_when_no_voter_takes_over(quorum: Quorum) -> None:
    old_id = quorum.leader_id
    target_id = old_id % 3 + 1
    old = quorum.voter(old_id)
    epoch = old.epoch
    loop = quorum.voters[target_id].loop
    assert loop is not None
    loop.pause()
    transfer = quorum.loop.create_task(old.transfer_leadership(NodeId(target_id)))
    quorum.pass_time(0.1)
    futures = [old.propose(b"%d" % number, epoch=epoch) for number in range(3)]
    assert old.next_offset == 4
    quorum.pass_time(TIMEOUT_MS / 2_000)
    assert not any(future.done() for future in futures)
    with pytest.raises(TransferFailed, match=f"Node {target_id} .* within 1 s"):
        quorum.loop.run_until_complete(transfer)
    quorum.wait(lambda: all(future.done() for future in futures))
    assert [future.result() for future in futures] == [(offset, epoch) for offset in (1, 2, 3)]
    loop.resume()
    quorum.wait(lambda: quorum.voters[target_id].commands == [b"0", b"1", b"2"])
