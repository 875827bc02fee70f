"""Leaders tell who is in sync: AlterPartition (KIP-497, KIP-704, KIP-841, KIP-903)."""

from uuid import UUID

import pytest
from kio.schema.alter_partition.v3.request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from kio.schema.alter_partition.v3.response import PartitionData as PartitionResult
from kio.schema.types import BrokerId
from kio.static.primitive import i8, i32, i64
from metadata_cluster import Cluster
from replicated_topics import fence, make_topic
from typed_ids import node_ids

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import LeaderEpoch, NodeId, PartitionEpoch
from penstock.quorum.decisions.isr_changes import alter_partition
from penstock.quorum.metadata.image import ConfigResourceType
from penstock.quorum.metadata.records import DIRECTORY_LOST, ConfigRecord, FeatureLevelRecord, PartitionChangeRecord


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster of brokers 1 to 4 with a topic 't' on 1, 2 and 3, led by 1."""
    cluster = Cluster()
    cluster.add_brokers(1, 2, 3, 4)
    make_topic(cluster, "t", (1, 2, 3))
    return cluster


def asked(cluster: Cluster, isr: tuple[int, ...], **changes: int) -> PartitionData:
    """A leader's request as it should be, but for the changes."""
    partition = cluster.partition("t")
    epochs = {broker_id: broker.epoch for broker_id, broker in cluster.image.brokers.items()}
    return PartitionData(
        partition_index=i32(changes.get("index", 0)),
        leader_epoch=i32(changes.get("leader_epoch", partition.leader_epoch)),
        new_isr_with_epochs=tuple(
            BrokerState(
                broker_id=BrokerId(member), broker_epoch=i64(changes.get("broker_epoch", epochs.get(member, -1)))
            )
            for member in isr
        ),
        leader_recovery_state=i8(changes.get("leader_recovery_state", 0)),
        partition_epoch=i32(changes.get("partition_epoch", partition.partition_epoch)),
    )


def alter(
    cluster: Cluster, *partitions: PartitionData, sender: int = 1, topic_id: UUID | None = None
) -> list[PartitionResult]:
    known = topic_id or cluster.image.topics.by_name["t"].topic_id
    request = AlterPartitionRequest(
        broker_id=BrokerId(sender),
        broker_epoch=i64(cluster.image.brokers[sender].epoch),
        topics=(TopicData(topic_id=known, partitions=partitions),),
    )
    return list(cluster.submit(alter_partition, request).topics[0].partitions)


def code(result: PartitionResult) -> ErrorCode:
    return ErrorCode(int(result.error_code))


def test_the_isr_follows_its_leader_and_only_the_partition_epoch_rises(cluster: Cluster) -> None:
    before = cluster.partition("t")
    [result] = alter(cluster, asked(cluster, (1, 2)))
    after = cluster.partition("t")
    assert code(result) is ErrorCode.NONE
    assert after.isr == (1, 2) == result.isr
    assert (after.leader_epoch, after.partition_epoch) == (before.leader_epoch, before.partition_epoch + 1)
    assert (LeaderEpoch(result.leader_epoch), PartitionEpoch(result.partition_epoch)) == (
        after.leader_epoch,
        after.partition_epoch,
    )
    [result] = alter(cluster, asked(cluster, (1, 2, 3)))
    assert cluster.partition("t").isr == (1, 2, 3)


def test_a_request_made_on_an_older_partition_epoch_changes_nothing(cluster: Cluster) -> None:
    stale = asked(cluster, (1,))
    alter(cluster, asked(cluster, (1, 2)))
    [result] = alter(cluster, stale)
    assert code(result) is ErrorCode.INVALID_UPDATE_VERSION
    assert cluster.partition("t").isr == (1, 2)


def test_the_isr_as_it_is_makes_earlier_requests_come_too_late(cluster: Cluster) -> None:
    alter(cluster, asked(cluster, (1, 2)))
    held_up = asked(cluster, (1, 2, 3))
    [result] = alter(cluster, asked(cluster, (1, 2)))
    assert (code(result), result.partition_epoch) == (ErrorCode.NONE, held_up.partition_epoch + 1)
    [result] = alter(cluster, held_up)
    assert code(result) is ErrorCode.INVALID_UPDATE_VERSION
    assert cluster.partition("t").isr == (1, 2)


def test_a_partition_named_twice_counts_once(cluster: Cluster) -> None:
    results = alter(cluster, asked(cluster, (1, 2)), asked(cluster, (1, 3)))
    assert [code(result) for result in results] == [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION]
    assert cluster.partition("t").isr == (1, 2)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"leader_epoch": 7}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 7}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"index": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ({"leader_recovery_state": 2}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_does_not_fit_the_partition_is_refused(
    cluster: Cluster, changes: dict[str, int], error: ErrorCode
) -> None:
    [result] = alter(cluster, asked(cluster, (1,), **changes))
    assert code(result) is error
    assert cluster.records == ()


@pytest.mark.parametrize("isr", [(), (2, 3), (1, 1), (1, 4)])
def test_an_isr_is_of_replicas_and_has_its_leader(cluster: Cluster, isr: tuple[int, ...]) -> None:
    [result] = alter(cluster, asked(cluster, isr))
    assert code(result) is ErrorCode.INVALID_REQUEST


def test_only_the_leader_tells_the_isr(cluster: Cluster) -> None:
    [result] = alter(cluster, asked(cluster, (1, 2)), sender=2)
    assert code(result) is ErrorCode.INVALID_REQUEST


def test_who_is_fenced_or_another_process_is_not_let_in(cluster: Cluster) -> None:
    alter(cluster, asked(cluster, (1,)))
    [result] = alter(cluster, asked(cluster, (1, 2), broker_epoch=0))
    assert code(result) is ErrorCode.INELIGIBLE_REPLICA
    fence(cluster, 2)
    [result] = alter(cluster, asked(cluster, (1, 2)))
    assert code(result) is ErrorCode.INELIGIBLE_REPLICA
    [result] = alter(cluster, asked(cluster, (1, 3)))
    assert code(result) is ErrorCode.NONE


def test_a_lost_replica_is_not_let_in_until_its_broker_tells_where_it_is(cluster: Cluster) -> None:
    """It counts as one that has nothing when that is told: as the last of an ISR it would leave no leader to elect."""
    topic_id = cluster.image.topics.by_name["t"].topic_id
    here = cluster.partition("t").directory_of(NodeId(3))
    for directory, error in ((DIRECTORY_LOST, ErrorCode.INELIGIBLE_REPLICA), (here, ErrorCode.NONE)):
        directories = (*cluster.partition("t").directories[:2], directory)
        cluster.replay(
            [PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=node_ids(1, 2), directories=directories)]
        )
        [result] = alter(cluster, asked(cluster, (1, 2, 3)))
        assert code(result) is error
    assert cluster.partition("t").isr == (1, 2, 3)


def test_a_leader_that_recovers_stays_alone_until_it_says_that_it_is_done(cluster: Cluster) -> None:
    topic_id = cluster.image.topics.by_name["t"].topic_id
    cluster.replay([PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=node_ids(1), leader_recovery_state=1)])
    [result] = alter(cluster, asked(cluster, (1, 2), leader_recovery_state=1))
    assert code(result) is ErrorCode.INVALID_REQUEST
    [result] = alter(cluster, asked(cluster, (1, 2)))
    assert code(result) is ErrorCode.NONE
    assert cluster.partition("t").leader_recovery_state == 0


def test_who_leaves_an_isr_that_gets_too_small_stays_eligible_until_it_is_large_enough_again(cluster: Cluster) -> None:
    cluster.replay([FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)])
    two = ConfigRecord(resource_type=ConfigResourceType.TOPIC, resource_name="t", name="min.insync.replicas", value="2")
    cluster.replay([two])
    alter(cluster, asked(cluster, (1, 2)))
    assert cluster.partition("t").elr == ()
    alter(cluster, asked(cluster, (1,)))
    assert cluster.partition("t").elr == (2,)
    alter(cluster, asked(cluster, (1, 3)))
    assert cluster.partition("t").elr == ()


def test_an_unknown_topic_is_told_and_the_others_are_changed(cluster: Cluster) -> None:
    [result] = alter(cluster, asked(cluster, (1,)), topic_id=UUID(int=77))
    assert code(result) is ErrorCode.UNKNOWN_TOPIC_ID


def test_a_broker_that_is_not_registered_so_is_refused_as_a_whole(cluster: Cluster) -> None:
    for broker_id, epoch, error in ((9, 0, "BROKER_ID_NOT_REGISTERED"), (1, 77, "STALE_BROKER_EPOCH")):
        request = AlterPartitionRequest(broker_id=BrokerId(broker_id), broker_epoch=i64(epoch), topics=())
        with pytest.raises(KafkaError, match=error):
            cluster.submit(alter_partition, request)
