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


HOSTS, CORES = 10, 64
"""A node per core: 640 nodes, whose rack is their host."""


def host_of(node: int) -> int:
    return node // CORES


def spread(counts: Counter[int]) -> int:
    """Of a value of each of the 640 nodes."""
    of_each = [counts[node] for node in range(HOSTS * CORES)]
    return max(of_each) - min(of_each)


@pytest.fixture(scope="module")
def nodes_of_cores() -> MetadataImage:
    return image(*(tuple(range(host * CORES, (host + 1) * CORES)) for host in range(HOSTS)))


@pytest.mark.parametrize("replication_factor", [1, 2, 3, 4])
@pytest.mark.parametrize("partitions", [1, 7, 64, 100, 640, 1000, 6400])
def test_a_topic_is_even_on_the_nodes_of_ten_hosts(
    nodes_of_cores: MetadataImage, partitions: int, replication_factor: int
) -> None:
    placed = place(
        nodes_of_cores, partition_count=partitions, replication_factor=replication_factor, random=Random(partitions)
    )
    assert all(len(set(map(host_of, replicas))) == replication_factor for replicas in placed)
    assert spread(Counter(replicas[0] for replicas in placed)) <= 1
    # The last turn over the hosts may be cut: there some give one more than others, and each is even by itself.
    assert spread(Counter(replica for replicas in placed for replica in replicas)) <= 2


def test_many_topics_are_even_on_the_nodes_of_ten_hosts(nodes_of_cores: MetadataImage) -> None:
    random = Random(5)
    counts = [random.choice((1, 3, 6, 12, 24, 50, 100, 200)) for _ in range(600)]
    placed = [
        replicas
        for count in counts
        for replicas in place(nodes_of_cores, partition_count=count, replication_factor=3, random=random)
    ]
    assert all(len(set(map(host_of, replicas))) == 3 for replicas in placed)
    leaders: Counter[int] = Counter(replicas[0] for replicas in placed)
    replicas_of: Counter[int] = Counter(replica for replicas in placed for replica in replicas)
    mean = len(placed) / len(nodes_of_cores.brokers)
    # Each topic begins where chance says: what is left of it after 600 of them.
    assert all(0.5 * mean < leaders[node] < 1.6 * mean for node in nodes_of_cores.brokers)
    assert all(0.8 * 3 * mean < replicas_of[node] < 1.25 * 3 * mean for node in nodes_of_cores.brokers)
    # When a host fails, what it led is led by all others, not by the next one.
    heirs = Counter(host_of(replicas[1]) for replicas in placed if host_of(replicas[0]) == 0)
    assert len(heirs) == HOSTS - 1
    assert max(heirs.values()) < 1.3 * min(heirs.values())


@pytest.mark.parametrize(("hosts", "cores", "replication_factor"), [(3, 6, 3), (3, 4, 2), (4, 4, 4), (10, 64, 2)])
def test_leaders_do_not_keep_step_with_followers(hosts: int, cores: int, replication_factor: int) -> None:
    members = [tuple(range(host * cores, (host + 1) * cores)) for host in range(hosts)]
    placed = place(
        image(*members), partition_count=hosts * cores, replication_factor=replication_factor, random=Random(5)
    )
    assert Counter(replicas[0] for replicas in placed) == dict.fromkeys(range(hosts * cores), 1)
    replicas = Counter(replica for partition in placed for replica in partition)
    assert replicas == dict.fromkeys(range(hosts * cores), replication_factor)


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
