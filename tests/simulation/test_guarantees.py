"""What survives what, for each `acks`, `min.insync.replicas` and `flush.messages`: the lines of `docs/guarantees.md`.

Three whole nodes in virtual time, with one replica each of one partition, which node 1 leads at first. Where something
is not promised, a test shows that it happens: a promise that could not be broken would be no promise.
"""

from collections.abc import Sequence
from itertools import permutations
from random import Random

import pytest
from simulated_nodes import NODES, SimulatedNodes, simulated_nodes

from penstock.protocol.errors import ErrorCode

MIN_ISR = pytest.mark.parametrize("min_isr", [1, 2, 3])
FLUSH = pytest.mark.parametrize("is_flushed", [False, True], ids=["default", "flush"])
COUNT = 5


def lose_all_that_is_not_synced(nodes: SimulatedNodes, node_id: int) -> None:
    """The power goes, and not one of those bytes had got to the disk by itself."""
    machine = nodes.machines[node_id]
    machine._random = _Forgetful()
    machine.kill(has_power=False)


class _Forgetful(Random):
    """Decides against whatever may have survived."""

    def random(self) -> float:
        return 0.0

    def getrandbits(self, _: int) -> int:
        return 0


# acks=all, one node.


@MIN_ISR
@FLUSH
def test_acks_all_survives_the_kill_of_the_leader(min_isr: int, is_flushed: bool) -> None:
    with simulated_nodes(min_isr, is_flushed=is_flushed) as nodes:
        nodes.append_some(COUNT)
        nodes.kill(1)
        nodes.wait_leader(2, 3)
        if min_isr != 3:
            # With fewer in sync than these, what was acknowledged last may be shown only when there are enough again.
            nodes.wait(lambda: set(nodes.acknowledged) <= set(nodes.read()), "what was acknowledged")
        nodes.start(1)
        assert nodes.lost() == {}


@MIN_ISR
def test_acks_all_survives_the_power_loss_of_a_leader_with_others_in_sync(min_isr: int) -> None:
    with simulated_nodes(min_isr) as nodes:
        nodes.append_some(COUNT)
        lose_all_that_is_not_synced(nodes, 1)
        nodes.wait_leader(2, 3)
        nodes.start(1)
        assert nodes.lost() == {}


def test_a_leader_that_lost_power_follows_though_it_is_back_before_it_was_missed() -> None:
    with simulated_nodes(2) as nodes:
        nodes.append_some(COUNT)
        lose_all_that_is_not_synced(nodes, 1)
        nodes.start(1)
        nodes.wait_leader(2, 3)
        assert nodes.lost() == {}


# acks=all, several nodes at once.


@FLUSH
@pytest.mark.parametrize("order", list(permutations(NODES)))
def test_acks_all_survives_the_kill_of_all(order: Sequence[int], is_flushed: bool) -> None:
    """Whatever order they come back in, one of them leads."""
    with simulated_nodes(2, is_flushed=is_flushed) as nodes:
        nodes.append_some(COUNT)
        nodes.kill(*NODES)
        for node_id in order:
            nodes.start(node_id)
            nodes.pass_ms(300)
        assert nodes.lost() == {}


@pytest.mark.parametrize("gone", [(1, 2), (1, 3), (2, 3)])
def test_acks_all_survives_the_power_loss_of_one_less_than_min_insync_replicas(gone: tuple[int, int]) -> None:
    with simulated_nodes(3) as nodes:
        nodes.append_some(COUNT)
        for node_id in gone:
            lose_all_that_is_not_synced(nodes, node_id)
        nodes.start(*gone)
        assert nodes.lost() == {}


@MIN_ISR
def test_flush_survives_the_power_loss_of_all(min_isr: int) -> None:
    with simulated_nodes(min_isr, is_flushed=True) as nodes:
        nodes.append_some(COUNT)
        for node_id in NODES:
            lose_all_that_is_not_synced(nodes, node_id)
        nodes.start(*NODES)
        assert nodes.lost() == {}
        assert nodes.acknowledged


@MIN_ISR
def test_without_flush_the_power_loss_of_all_may_lose_what_was_acknowledged(min_isr: int) -> None:
    with simulated_nodes(min_isr) as nodes:
        nodes.append_some(COUNT)
        for node_id in NODES:
            lose_all_that_is_not_synced(nodes, node_id)
        nodes.start(*NODES)
        # The partition lives on, its replicas agree, and that is all.
        assert set(nodes.lost()) == set(range(COUNT))
        nodes.acknowledged.clear()
        nodes.append_some(COUNT)
        assert nodes.lost() == {}


def test_the_power_loss_of_the_leader_with_the_kill_of_all_others_may_lose_what_was_acknowledged() -> None:
    """All three stopped uncleanly, and it is unknown which of them has everything: the last leader leads again."""
    with simulated_nodes(2, has_own_controllers=True) as nodes:
        nodes.append_some(COUNT)
        lose_all_that_is_not_synced(nodes, 1)
        nodes.kill(2, 3)
        for node_id in (2, 3, 1):
            nodes.start(node_id)
            nodes.pass_ms(300)
        assert nodes.lost()


# acks=all with a leader that is alone in sync: min.insync.replicas=1 lets it acknowledge.


def alone_with_records(nodes: SimulatedNodes) -> None:
    nodes.append_some(COUNT)
    nodes.leave_alone_in_sync(1)
    nodes.append_some(COUNT)


@FLUSH
def test_min_insync_replicas_1_survives_the_kill_of_a_leader_that_was_alone(is_flushed: bool) -> None:
    """There is no leader until it is back."""
    with simulated_nodes(1, has_own_controllers=True, is_flushed=is_flushed) as nodes:
        alone_with_records(nodes)
        nodes.kill(1)
        nodes.heal()
        nodes.wait(lambda: nodes.leader_id == -1, "partition without a leader")
        nodes.start(1)
        nodes.wait_leader(1)
        assert nodes.lost() == {}


def test_min_insync_replicas_1_may_lose_what_was_acknowledged_with_the_power_of_a_leader_alone() -> None:
    with simulated_nodes(1, has_own_controllers=True) as nodes:
        alone_with_records(nodes)
        lose_all_that_is_not_synced(nodes, 1)
        nodes.heal()
        nodes.start(1)
        assert nodes.lost()


@pytest.mark.parametrize("acks", [1, -1])
def test_min_insync_replicas_1_with_flush_survives_the_power_loss_of_a_leader_alone(acks: int) -> None:
    with simulated_nodes(1, has_own_controllers=True, is_flushed=True) as nodes:
        alone_with_records(nodes)
        nodes.append_some(1, acks=acks)
        lose_all_that_is_not_synced(nodes, 1)
        nodes.heal()
        nodes.start(1)
        assert nodes.lost() == {}


@pytest.mark.parametrize("min_isr", [2, 3])
def test_with_fewer_in_sync_than_min_insync_replicas_nothing_is_taken_in(min_isr: int) -> None:
    with simulated_nodes(min_isr, has_own_controllers=True) as nodes:
        nodes.append_some(COUNT)
        nodes.leave_alone_in_sync(1)
        # Once it was: acks=1 asks for nothing, but no consumer is shown it.
        assert nodes.append(b"refused") is ErrorCode.NOT_ENOUGH_REPLICAS
        assert sorted(nodes.read()) == list(range(COUNT))
        nodes.heal()
        assert nodes.lost() == {}


# Partitions of the network.


@MIN_ISR
def test_acks_all_survives_a_leader_cut_off_with_its_clients(min_isr: int) -> None:
    with simulated_nodes(min_isr) as nodes:
        nodes.append_some(COUNT)
        nodes.isolate(1)
        assert nodes.append(b"no follower has it", to=1) is not ErrorCode.NONE
        nodes.wait_leader(2, 3)
        if min_isr != 3:
            nodes.append_some(COUNT)
        assert nodes.append(b"nor this", to=1) is not ErrorCode.NONE
        nodes.heal()
        assert nodes.lost() == {}


def test_acks_1_of_a_leader_cut_off_is_lost() -> None:
    with simulated_nodes(1) as nodes:
        nodes.append_some(COUNT)
        nodes.isolate(1)
        assert nodes.append(b"no follower has it", acks=1, to=1) is ErrorCode.NONE
        nodes.wait_leader(2, 3)
        assert nodes.append(b"in its place") is ErrorCode.NONE
        nodes.heal()
        assert nodes.read()[COUNT] == b"in its place"
        assert nodes.acknowledged[COUNT] == b"in its place"
        assert nodes.lost() == {}


# Disks.


@pytest.mark.parametrize("min_isr", [2, 3])
@FLUSH
def test_acks_all_survives_an_emptied_disk(min_isr: int, is_flushed: bool) -> None:
    """The empty one refills, and does not lead before it is in sync."""
    with simulated_nodes(min_isr, is_flushed=is_flushed) as nodes:
        nodes.append_some(COUNT)
        nodes.kill(1)
        nodes.wait_leader(2, 3)
        nodes.machines[1].swap_disk()
        nodes.start(1)
        assert nodes.lost() == {}


def test_the_emptied_disk_of_a_leader_that_was_alone_takes_the_records_and_leaves_no_leader() -> None:
    """Rather no leader than one that passes its empty log for all there was."""
    with simulated_nodes(1, has_own_controllers=True) as nodes:
        alone_with_records(nodes)
        nodes.kill(1)
        nodes.heal()
        nodes.wait(lambda: nodes.leader_id == -1, "partition without a leader")
        nodes.machines[1].swap_disk()
        nodes.start(1)
        nodes.wait(lambda: nodes.machines[1].is_ready, "start of the node with the empty disk")
        nodes.pass_ms(5_000)
        assert nodes.leader_id == -1


@pytest.mark.parametrize("operation", ["write", "sync"])
def test_acks_all_survives_a_disk_error_of_the_leader(operation: str) -> None:
    with simulated_nodes(2, has_own_controllers=True, is_flushed=True) as nodes:
        nodes.append_some(COUNT)
        nodes.machines[1].files.fail(operation, under="/data/promised-0", count=None)  # type: ignore[arg-type]
        assert nodes.append(b"not on this disk") in (
            ErrorCode.KAFKA_STORAGE_ERROR,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            None,
        )
        nodes.wait_leader(2, 3)
        nodes.append_some(COUNT)
        nodes.wait(lambda: not nodes.machines[1].is_up, "end of the node whose only disk failed")
        nodes.start(1)
        assert nodes.lost() == {}


def test_the_disk_error_of_a_leader_that_was_alone_keeps_the_records_until_the_disk_is_back() -> None:
    with simulated_nodes(1, has_own_controllers=True) as nodes:
        alone_with_records(nodes)
        nodes.machines[1].files.fail("write", under="/data/promised-0", count=None)
        assert nodes.append(b"not on this disk") is not ErrorCode.NONE
        nodes.heal()
        nodes.wait(lambda: not nodes.machines[1].is_up, "end of the node whose only disk failed")
        nodes.wait(lambda: nodes.leader_id == -1, "partition without a leader")
        nodes.start(1)
        nodes.wait_leader(1)
        assert nodes.lost() == {}


# acks=1 and acks=0.


def only_the_leader_has(nodes: SimulatedNodes, acks: int) -> None:
    """The last record does not get to the followers before the leader is gone."""
    nodes.append_some(COUNT)
    nodes.isolate(1)
    if acks:
        assert nodes.append(b"only here", acks=acks, to=1) is ErrorCode.NONE
    else:
        nodes.append_unasked(b"only here", to=1)
    partition = nodes.hosted(1)
    assert partition is not None
    nodes.wait(lambda: partition.log.log_end_offset == COUNT + 1, "record in the leader's log")


@pytest.mark.parametrize("acks", [0, 1])
@FLUSH
def test_what_only_the_leader_has_is_lost_with_its_process(acks: int, is_flushed: bool) -> None:
    with simulated_nodes(1, is_flushed=is_flushed) as nodes:
        only_the_leader_has(nodes, acks)
        nodes.kill(1)
        nodes.heal()
        nodes.wait_leader(2, 3)
        nodes.start(1)
        nodes.wait_in_sync(*NODES)
        assert sorted(nodes.read()) == list(range(COUNT))


@pytest.mark.parametrize("acks", [0, 1])
def test_what_others_have_too_survives_whatever_the_acks(acks: int) -> None:
    with simulated_nodes(1) as nodes:
        if acks:
            nodes.append_some(COUNT, acks=acks)
        else:
            nodes.append_unasked(b"unasked", to=1)
        nodes.wait(lambda: bool(nodes.read()), "records that consumers are shown")
        shown = nodes.read()
        nodes.kill(1)
        nodes.wait_leader(2, 3)
        # The next leader knows that all of it is committed once the other follower has fetched.
        nodes.wait(lambda: shown.items() <= nodes.read().items(), "what consumers were shown, from the next leader")


def test_acks_0_to_a_node_that_does_not_lead_is_lost_without_a_word() -> None:
    with simulated_nodes(1) as nodes:
        nodes.append_unasked(b"unasked", to=2)
        nodes.pass_ms(1_000)
        assert nodes.read() == {}
