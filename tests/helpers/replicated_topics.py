"""Topics with several replicas, for tests of the controller's decisions."""

from kio.schema.create_topics.v7.request import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i16, i32
from metadata_cluster import Cluster

from penstock.protocol.ids import NodeId
from penstock.quorum.decisions.topics import create_topics
from penstock.quorum.metadata.records import BrokerRegistrationChangeRecord


def make_topic(cluster: Cluster, name: str, *assignments: tuple[int, ...]) -> None:
    """Make a topic; every assignment is a partition."""
    placed = tuple(
        CreatableReplicaAssignment(partition_index=i32(index), broker_ids=tuple(map(BrokerId, replicas)))
        for index, replicas in enumerate(assignments)
    )
    topic = CreatableTopic(
        name=TopicName(name), num_partitions=i32(-1), replication_factor=i16(-1), assignments=placed, configs=()
    )
    cluster.submit(create_topics, CreateTopicsRequest(topics=(topic,)))


def fence(cluster: Cluster, broker_id: int, *, is_fenced: bool = True) -> None:
    """Say that a broker is shut out, without moving anything."""
    epoch = cluster.image.brokers[broker_id].epoch
    cluster.replay(
        [BrokerRegistrationChangeRecord(broker_id=NodeId(broker_id), broker_epoch=epoch, is_fenced=is_fenced)]
    )
