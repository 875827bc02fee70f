"""Where new partitions go."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metadata_cluster import Cluster

from penstock.protocol.errors import KafkaError
from penstock.quorum.decisions.placement import place
from penstock.quorum.metadata.image import MetadataImage


def image(*racks: tuple[int, ...], fenced: tuple[int, ...] = ()) -> MetadataImage:
    cluster = Cluster()
    for number, brokers in enumerate(racks):
        for broker in brokers:
            cluster.add_brokers(broker, rack=f"r{number}", is_fenced=broker in fenced)
    return cluster.image


@given(
    racks=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    replication_factor=st.integers(1, 6),
    partitions=st.integers(1, 40),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_every_placement_is_striped_and_rack_aware(
    racks: list[int], replication_factor: int, partitions: int, seed: int, data: st.DataObject
) -> None:
    ids = iter(range(100))
    members = [tuple(next(ids) for _ in range(size)) for size in racks]
    brokers = [broker for rack in members for broker in rack]
    fenced = tuple(data.draw(st.sets(st.sampled_from(brokers), max_size=len(brokers) - 1)))
    replication_factor = min(replication_factor, len(brokers))
    placed = place(
        image(*members, fenced=fenced),
        partition_count=partitions,
        replication_factor=replication_factor,
        random=Random(seed),
    )
    assert len(placed) == partitions
    rack_of = {broker: number for number, rack in enumerate(members) for broker in rack}
    for replicas in placed:
        assert len(set(replicas)) == replication_factor
        assert replicas[0] not in fenced
        in_racks = Counter(rack_of[replica] for replica in replicas)
        # No rack gives a second replica before every other one has given one.
        for rack, count in in_racks.items():
            for other in range(len(members)):
                if other != rack and count > 1:
                    assert in_racks[other] >= min(count - 1, len(members[other]))


@pytest.mark.parametrize("brokers", [1, 3, 5])
def test_leaders_are_even_on_one_rack(brokers: int) -> None:
    placed = place(
        image(tuple(range(brokers))), partition_count=brokers * 20, replication_factor=min(3, brokers), random=Random(5)
    )
    leaders = Counter(replicas[0] for replicas in placed)
    assert leaders == dict.fromkeys(range(brokers), 20)


def test_a_broker_s_followers_differ() -> None:
    placed = place(image((0, 1, 2, 3)), partition_count=64, replication_factor=2, random=Random(5))
    assert len({replicas[1] for replicas in placed if replicas[0] == 0}) == 3


def test_the_same_seed_places_the_same_way() -> None:
    first, second = (
        place(image((0, 1), (2, 3)), partition_count=9, replication_factor=3, random=Random(3)) for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize(
    ("replication_factor", "fenced", "message"),
    [
        (0, (), "Invalid replication factor 0: the replication factor must be positive."),
        (1, (1, 2), "All brokers are currently fenced, or have all their log directories cordoned."),
        (
            3,
            (),
            "The target replication factor of 3 cannot be reached because only 2 broker.s. are registered or some "
            "brokers have all their log directories cordoned.",
        ),
    ],
)
def test_what_cannot_be_placed(replication_factor: int, fenced: tuple[int, ...], message: str) -> None:
    with pytest.raises(KafkaError, match=message):
        place(image((1, 2), fenced=fenced), partition_count=1, replication_factor=replication_factor, random=Random(1))
