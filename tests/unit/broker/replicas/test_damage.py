"""When a damaged replica may be repaired, and when what a follower is sent is suspected."""

from uuid import UUID

import pytest
from replica import Replica
from typed_ids import node_ids

from penstock.broker.replicas.rules.damage import is_replaceable, may_repair
from penstock.broker.replicas.rules.follower_progress import SUSPICIOUS_COUNT
from penstock.broker.replicas.rules.repeated_reads import OFFSETS_MAX, RepeatedReads
from penstock.protocol.ids import LeaderEpoch, NodeId, PartitionEpoch
from penstock.protocol.structs import replace
from penstock.quorum.metadata.image import PartitionRegistration
from penstock.quorum.metadata.records import DIRECTORY_LOST, NO_LEADER

HERE = UUID(int=500)
REPAIRABLE = PartitionRegistration(
    replicas=node_ids(1, 2, 3),
    directories=(DIRECTORY_LOST, HERE, HERE),
    isr=node_ids(2),
    leader=NodeId(2),
    leader_epoch=LeaderEpoch(5),
    partition_epoch=PartitionEpoch(9),
)


def test_replica_outside_isr_and_elr_may_be_repaired() -> None:
    assert may_repair(REPAIRABLE, NodeId(1), is_hosted=True)


@pytest.mark.parametrize("differently", [{"leader": NO_LEADER}, {"leader": 1}, {"isr": (2, 1)}, {"elr": (1,)}], ids=str)
def test_replica_that_may_have_what_others_lack_is_left_as_it_is(differently: dict[str, object]) -> None:
    registration = replace(REPAIRABLE, **differently)  # type: ignore[arg-type]
    assert not may_repair(registration, NodeId(1), is_hosted=True)
    assert not may_repair(registration, NodeId(1), is_hosted=False)


def test_replica_that_has_fetched_must_be_known_as_lost() -> None:
    """Its leader may let it join the in-sync replicas for what it had; one that is lost is not elected even then."""
    registration = replace(REPAIRABLE, directories=(HERE, HERE, HERE))
    assert not may_repair(registration, NodeId(1), is_hosted=True)
    assert may_repair(registration, NodeId(1), is_hosted=False)


def test_leader_gives_way_only_to_replicas_that_may_have_everything() -> None:
    led = replace(REPAIRABLE, leader=NodeId(1), isr=node_ids(1))
    assert not is_replaceable(led, NodeId(1))
    assert is_replaceable(replace(led, isr=node_ids(1, 3)), NodeId(1))
    assert is_replaceable(replace(led, elr=node_ids(3)), NodeId(1))


def test_follower_that_asks_for_the_same_again_and_again_makes_its_leader_look() -> None:
    replica = Replica(end=10)
    replica.register()
    sent = [replica.partition.on_follower_sent(NodeId(2), 5) for _ in range(4 * SUSPICIOUS_COUNT)]
    assert [count for count, is_suspicious in enumerate(sent, start=1) if is_suspicious] == [
        SUSPICIOUS_COUNT,
        2 * SUSPICIOUS_COUNT,
        4 * SUSPICIOUS_COUNT,
    ]
    assert not any(replica.partition.on_follower_sent(NodeId(2), offset) for offset in range(4 * SUSPICIOUS_COUNT))


def test_consumers_that_ask_for_the_same_old_records_again_and_again_make_the_leader_look() -> None:
    reads = RepeatedReads(opened_end_offset=10)
    sent = []
    for turn in range(4 * SUSPICIOUS_COUNT):
        # Others read on meanwhile.
        assert not any(reads.on_sent(1_000 * turn + other, 100_000) for other in range(100, 100 + OFFSETS_MAX - 1))
        sent.append(reads.on_sent(5, 100_000))
    assert [count for count, is_suspicious in enumerate(sent, start=1) if is_suspicious] == [
        SUSPICIOUS_COUNT,
        2 * SUSPICIOUS_COUNT,
        4 * SUSPICIOUS_COUNT,
    ]


@pytest.mark.parametrize(
    ("offset", "is_looked_at"),
    [(9, True), (10, True), (19, True), (20, False), (21, False)],
    ids=["before the start", "in a closed segment", "its end", "in the active segment", "behind"],
)
def test_what_was_written_a_moment_ago_is_not_looked_at(offset: int, is_looked_at: bool) -> None:
    reads = RepeatedReads(opened_end_offset=10)
    assert any(reads.on_sent(offset, 20) for _ in range(SUSPICIOUS_COUNT)) is is_looked_at


def test_an_active_segment_from_before_the_start_is_looked_at() -> None:
    reads = RepeatedReads(opened_end_offset=10)
    assert any(reads.on_sent(9, 0) for _ in range(SUSPICIOUS_COUNT))
    assert not any(reads.on_sent(10, 0) for _ in range(SUSPICIOUS_COUNT))
