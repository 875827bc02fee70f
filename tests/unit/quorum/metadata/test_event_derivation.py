"""Events from changes of the metadata."""

from collections.abc import Sequence
from random import Random

import pytest
from broker_lives import beat, register, registration
from drained_brokers import drain
from metadata_cluster import Cluster, directory_id
from replicated_topics import make_topic
from typed_ids import node_ids

from penstock.protocol.ids import ControllerEpoch, NodeId, TopicId
from penstock.protocol.structs import replace
from penstock.quorum.decisions.heartbeats import fence_expired
from penstock.quorum.metadata import event_derivation
from penstock.quorum.metadata.cluster_events import (
    BrokerDrained,
    BrokerFenced,
    BrokerRegistered,
    BrokerUndrained,
    BrokerUnfenced,
    BrokerUnregistered,
    ClusterChange,
    ConfigChange,
    ConfigsChanged,
    ControlledShutdownBegun,
    FeatureChanged,
    IsrExpanded,
    IsrShrunk,
    LeaderChanged,
    LogDirectoriesFailed,
    PartitionsAdded,
    QuorumLeaderChanged,
    ReassignmentBegun,
    ReassignmentEnded,
    Summary,
    TopicCreated,
    TopicDeleted,
)
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.event_derivation import UNSEEN_PARTITIONS, derive
from penstock.quorum.metadata.image import EMPTY_IMAGE, MetadataImage
from penstock.quorum.metadata.loader import MetadataLoader
from penstock.quorum.metadata.publishers import Publishers
from penstock.quorum.metadata.record_codec import encode_entry, encode_record
from penstock.quorum.metadata.records import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    UnregisterBrokerRecord,
)

ONE, TWO, THREE, FOUR = node_ids(1, 2, 3, 4)


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster of brokers 1 to 4 with a topic 't' on 1, 2 and 3, led by 1."""
    cluster = Cluster()
    cluster.add_brokers(1, 2, 3, 4)
    make_topic(cluster, "t", (1, 2, 3))
    return cluster


def happen(cluster: Cluster, records: Sequence[MetadataRecord]) -> tuple[ClusterChange, ...]:
    """Replay the records and return their events."""
    delta = MetadataDelta(cluster.image)
    for record in records:
        delta.replay(record)
    image = delta.apply(offset=cluster.image.offset + 1, epoch=cluster.image.epoch, timestamp_ms=2_000)
    cluster.image = image
    return derive(delta, image, leader_id=None)


def events_of(before: MetadataImage, cluster: Cluster) -> tuple[ClusterChange, ...]:
    """Return the events of the cluster's last decision."""
    cluster.image = before
    return happen(cluster, cluster.records)


def change(cluster: Cluster, topic: str, index: int = 0, **fields: object) -> PartitionChangeRecord:
    record = PartitionChangeRecord(topic_id=topic_id(cluster, topic), partition_id=index)
    return replace(record, **fields)  # type: ignore[arg-type]


def topic_id(cluster: Cluster, topic: str) -> TopicId:
    return cluster.image.topics.by_name[topic].topic_id


def test_a_fenced_broker_leaves_its_isr_and_its_leadership(cluster: Cluster) -> None:
    before = cluster.image
    cluster.submit(fence_expired, ONE)
    assert events_of(before, cluster) == (
        BrokerFenced(broker_id=ONE),
        LeaderChanged(topic="t", partition=0, old_leader=ONE, new_leader=TWO, leader_epoch=1),  # type: ignore[arg-type]
        IsrShrunk(topic="t", partition=0, removed=(ONE,), isr=(TWO, THREE)),
    )


def test_the_life_of_a_broker_in_events() -> None:
    cluster = Cluster()
    kinds = []
    before = cluster.image
    epoch = register(cluster, registration(1))
    kinds.append(events_of(before, cluster))
    before = cluster.image
    beat(cluster)
    kinds.append(events_of(before, cluster))
    make_topic(cluster, "t", (1,))
    before = cluster.image
    beat(cluster, wants_shutdown=True)
    kinds.append(events_of(before, cluster)[:1])
    record = UnregisterBrokerRecord(broker_id=ONE, broker_epoch=cluster.image.brokers[1].epoch)
    kinds.append(happen(cluster, [record]))
    assert kinds == [
        (BrokerRegistered(broker_id=ONE, broker_epoch=epoch, rack="r1"),),  # type: ignore[arg-type]
        (BrokerUnfenced(broker_id=ONE),),
        (ControlledShutdownBegun(broker_id=ONE),),
        (BrokerUnregistered(broker_id=ONE),),
    ]


def test_a_failed_log_directory_is_named(cluster: Cluster) -> None:
    before = cluster.image
    beat(cluster, 1, offline=(directory_id(1),))
    [failed, *moved] = events_of(before, cluster)
    assert failed == LogDirectoriesFailed(broker_id=ONE, directories=(directory_id(1),))
    assert [one.KIND for one in moved] == ["leader-changed", "isr-shrunk"]


def test_a_drain_is_its_own_event_and_no_change_of_configs(cluster: Cluster) -> None:
    before = cluster.image
    drain(cluster, 1)
    assert events_of(before, cluster) == (
        BrokerDrained(broker_id=ONE),
        LeaderChanged(topic="t", partition=0, old_leader=ONE, new_leader=TWO, leader_epoch=1),  # type: ignore[arg-type]
    )
    before = cluster.image
    drain(cluster, 1, is_drained=False)
    assert events_of(before, cluster)[0] == BrokerUndrained(broker_id=ONE)


def test_topics_come_grow_and_go() -> None:
    cluster = Cluster()
    cluster.add_brokers(1, 2)
    before = cluster.image
    make_topic(cluster, "t", (1, 2), (2, 1))
    made = topic_id(cluster, "t")
    configs = [ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="5")]
    cluster.image = before
    assert happen(cluster, [*cluster.records, *configs]) == (
        TopicCreated(topic="t", topic_id=made, partition_count=2, replication_factor=2),
    )
    added = [replace(one, partition_id=2) for one in cluster.records if isinstance(one, PartitionRecord)][:1]
    assert happen(cluster, added) == (PartitionsAdded(topic="t", old_count=2, new_count=3),)
    assert happen(cluster, [RemoveTopicRecord(topic_id=made)]) == (TopicDeleted(topic="t", topic_id=made),)


def test_a_reassignment_begins_and_ends(cluster: Cluster) -> None:
    directories = (directory_id(1),) * 4
    begun = change(
        cluster, "t", replicas=node_ids(4, 2, 3, 1), adding_replicas=(FOUR,), removing_replicas=(ONE,),
        directories=directories,
    )  # fmt: skip
    assert happen(cluster, [begun]) == (ReassignmentBegun(topic="t", partition=0, adding=(FOUR,), removing=(ONE,)),)
    ended = change(
        cluster, "t", replicas=node_ids(4, 2, 3), adding_replicas=(), removing_replicas=(), isr=node_ids(4, 2, 3),
        leader=FOUR, directories=directories[:3],
    )  # fmt: skip
    assert happen(cluster, [ended]) == (
        LeaderChanged(topic="t", partition=0, old_leader=ONE, new_leader=FOUR, leader_epoch=1),  # type: ignore[arg-type]
        IsrShrunk(topic="t", partition=0, removed=(ONE,), isr=node_ids(4, 2, 3)),
        IsrExpanded(topic="t", partition=0, added=(FOUR,), isr=node_ids(4, 2, 3)),
        ReassignmentEnded(topic="t", partition=0, replicas=node_ids(4, 2, 3)),
    )


def test_configs_tell_what_they_became_but_no_password_and_no_novel(cluster: Cluster) -> None:
    values = [
        (2, "t", "retention.ms", "5"),
        (2, "t", "leader.replication.throttled.replicas", "x" * 1_000),
        (4, "1", "ssl.key.password", "secret"),
        (4, "1", "some.plugin.token", "secret"),
    ]
    records = [ConfigRecord(resource_type=kind, resource_name=on, name=name, value=to) for kind, on, name, to in values]
    topic, broker = happen(cluster, records)
    assert isinstance(topic, ConfigsChanged)
    assert topic.changes[1] == ConfigChange(name="retention.ms", value="5")
    assert len(topic.changes[0].value or "") < 300
    assert isinstance(broker, ConfigsChanged)
    assert [one.is_hidden for one in broker.changes] == [True, True]
    assert "secret" not in repr(broker)
    removed = ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value=None)
    [gone] = happen(cluster, [removed])
    assert gone == ConfigsChanged(
        resource_type=2, resource_name="t", count=1, changes=(ConfigChange(name="retention.ms", value=None),)
    )
    # What is written as it was is no change.
    assert happen(cluster, [records[2]]) == ()


def test_features_and_epochs_of_the_quorum(cluster: Cluster) -> None:
    name = "eligible.leader.replicas.version"
    [lowered] = happen(cluster, [FeatureLevelRecord(name=name, feature_level=0)])
    assert lowered == FeatureChanged(name=name, old_level=1, new_level=0)
    delta = MetadataDelta(cluster.image)
    image = delta.apply(offset=cluster.image.offset + 1, epoch=ControllerEpoch(2), timestamp_ms=0)
    assert derive(delta, image, leader_id=TWO) == (QuorumLeaderChanged(epoch=ControllerEpoch(2), leader_id=TWO),)


def test_a_change_of_many_partitions_is_summed_up(cluster: Cluster) -> None:
    count = event_derivation.LISTED_MAX + 1
    make_topic(cluster, "many", *[(1, 2, 3)] * count)
    before = cluster.image
    cluster.submit(fence_expired, ONE)
    assert events_of(before, cluster) == (
        BrokerFenced(broker_id=ONE),
        Summary(of="leader-changed", count=count + 1, brokers={TWO: count + 1}),
        Summary(of="isr-shrunk", count=count + 1, brokers={ONE: count + 1}),
    )


def test_partitions_beyond_the_bound_are_counted(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_derivation, "PARTITIONS_MAX", 2)
    make_topic(cluster, "many", *[(1, 2, 3)] * 5)
    moved = [change(cluster, "many", index, leader=TWO) for index in range(5)]
    *leaders, rest = happen(cluster, moved)
    assert [one.KIND for one in leaders] == ["leader-changed"] * 2
    assert rest == Summary(of=UNSEEN_PARTITIONS, count=3, brokers={})


class Witness:
    """A publisher that keeps the events with their offsets."""

    def __init__(self) -> None:
        self.events: list[tuple[int, tuple[ClusterChange, ...]]] = []
        self.gathered: list[int] = []

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.is_gathered:
            self.gathered.append(image.offset)
            return
        derived = derive(delta, image, leader_id=None)
        if derived:
            self.events.append((image.offset, derived))


def follow(entries: Sequence[bytes], *, caught_up_at: int) -> Witness:
    """Return what a node sees that had so many entries when it started."""
    witness, publishers = Witness(), Publishers()
    publishers.add(witness)
    loader = MetadataLoader(publishers)
    for offset, command in enumerate(entries):
        if offset == caught_up_at:
            loader.catch_up()
        loader.load_entry(offset, ControllerEpoch(1 + offset // 5), command)
    return witness


@pytest.mark.parametrize("caught_up_at", range(12))
def test_nodes_that_started_at_different_times_derive_the_same_events(caught_up_at: int) -> None:
    cluster = Cluster()
    # An entry without records, as a new leader of the quorum writes first.
    groups: list[list[MetadataRecord]] = [[]]
    random = Random(3)
    recorded: list[Sequence[MetadataRecord]] = []
    original = cluster.replay
    cluster.replay = lambda records: (recorded.append(records), original(records))[1]  # type: ignore[func-returns-value,method-assign]
    cluster.add_brokers(1, 2, 3)
    make_topic(cluster, "t", (1, 2, 3), (2, 3, 1))
    drain(cluster, 1)
    for _ in range(3):
        cluster.submit(fence_expired, NodeId(random.choice((1, 2, 3))))
    drain(cluster, 1, is_drained=False)
    groups += [list(records) for records in recorded]
    in_transaction: list[list[MetadataRecord]] = [
        [BeginTransactionRecord(), FeatureLevelRecord(name="a", feature_level=1)],
        [FeatureLevelRecord(name="b", feature_level=1)],
        [FeatureLevelRecord(name="c", feature_level=1), EndTransactionRecord()],
    ]
    entries = [encode_entry(7, [encode_record(one) for one in group]) if group else b"" for group in groups]
    entries += [encode_entry(8, [encode_record(one) for one in group]) for group in in_transaction]
    early, late = follow(entries, caught_up_at=0), follow(entries, caught_up_at=caught_up_at)
    start = max(late.gathered, default=-1)
    assert late.events == [one for one in early.events if one[0] > start]
    assert any(offset == len(entries) - 1 for offset, _ in early.events)
    assert early.gathered == []


def test_the_difference_of_two_images_is_no_event(cluster: Cluster) -> None:
    assert MetadataDelta.between(EMPTY_IMAGE, cluster.image).is_gathered
