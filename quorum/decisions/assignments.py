"""The replicas of new partitions, given by the request or placed by the controller, and the records they become."""

from collections.abc import Iterable, Sequence

from kio.schema.create_topics.v7.request import CreatableTopic

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import LeaderEpoch, NodeId, PartitionEpoch, TopicId
from ..metadata.image import MetadataImage
from ..metadata.records import PartitionRecord
from .answers import Refusal
from .context import DecisionContext
from .placement import count_usable, default_directory, place

# As many as Kafka takes in one request; it bounds how long one decision holds up the loop.
MAX_PARTITIONS_PER_REQUEST = 10_000


def batch_refusal(partition_counts: Iterable[int]) -> Refusal | None:
    """Return why nothing of a request is done when it asks for too many partitions in all."""
    if sum(max(count, 0) for count in partition_counts) <= MAX_PARTITIONS_PER_REQUEST:
        return None
    return Refusal(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def automatic_assignment(
    image: MetadataImage, num_partitions: int, replication_factor: int, context: DecisionContext
) -> list[tuple[NodeId, ...]]:
    """Place a new topic; -1 stands for the default. Raises KafkaError."""
    if replication_factor < -1 or replication_factor == 0:
        message = "Replication factor must be larger than 0, or -1 to use the default value."
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    if num_partitions < -1 or num_partitions == 0:
        message = "Number of partitions was set to an invalid non-positive value."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
    if num_partitions == -1:
        num_partitions = context.config.num_partitions
    if replication_factor == -1:
        replication_factor = _default_replication_factor(image, context)
    try:
        return place(
            image,
            partition_count=num_partitions,
            replication_factor=replication_factor,
            random=context.random,
        )
    except KafkaError as error:
        message = f"Unable to replicate the partition {replication_factor} time(s): {error.message}"
        raise KafkaError(error.code, message) from error


def manual_assignment(image: MetadataImage, topic: CreatableTopic) -> list[tuple[NodeId, ...]]:
    """Return the replicas that the request gives a new topic. Raises KafkaError."""
    prefix = "A manual partition assignment was specified, but "
    if topic.replication_factor != -1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, prefix + "replication factor was not set to -1.")
    if topic.num_partitions != -1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, prefix + "numPartitions was not set to -1.")
    placed: dict[int, tuple[NodeId, ...]] = {}
    replication_factor = None
    for assignment in topic.assignments:
        index = assignment.partition_index
        if index in placed:
            raise _refused(f"Found multiple manual partition assignments for partition {index}")
        replicas = tuple([NodeId(replica) for replica in assignment.broker_ids])
        check_replicas(image, replicas, replication_factor)
        check_active(image, replicas, index)
        replication_factor = len(replicas)
        placed[index] = replicas
    if placed.keys() != set(range(len(placed))):
        raise _refused("partitions should be a consecutive 0-based integer sequence")
    return [placed[index] for index in range(len(placed))]


def check_replicas(image: MetadataImage, replicas: Sequence[NodeId], replication_factor: int | None) -> None:
    """Check one partition's replicas as a request gives them. Raises KafkaError(INVALID_REPLICA_ASSIGNMENT)."""
    if not replicas:
        raise _refused("The manual partition assignment includes an empty replica list.")
    previous = None
    for broker_id in sorted(replicas):
        if broker_id not in image.brokers:
            raise _refused(
                f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
            )
        if broker_id == previous:
            raise _refused(f"The manual partition assignment includes the broker {broker_id} more than once.")
        previous = broker_id
    if replication_factor not in (None, len(replicas)):
        raise _refused(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )


def check_active(image: MetadataImage, replicas: Sequence[NodeId], index: int) -> None:
    """Raise KafkaError(INVALID_REPLICA_ASSIGNMENT) when no replica could lead the partition."""
    if not any(image.is_active_broker(replica) for replica in replicas):
        raise _refused(
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
            "controlled shutdown."
        )


def new_partition(image: MetadataImage, topic_id: TopicId, index: int, replicas: tuple[NodeId, ...]) -> PartitionRecord:
    """Return the record of a new partition: every replica whose broker is active is in sync.

    The first of them that is not drained leads.
    """
    isr = tuple([replica for replica in replicas if image.is_active_broker(replica)])
    assert isr, f"no replica of {replicas} can lead"
    return PartitionRecord(
        topic_id=topic_id,
        partition_id=index,
        replicas=replicas,
        isr=isr,
        leader=next((replica for replica in isr if replica not in image.configs.drained_brokers), isr[0]),
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
        directories=tuple([default_directory(image, replica) for replica in replicas]),
    )


def _default_replication_factor(image: MetadataImage, context: DecisionContext) -> int:
    replication_factor = context.config.default_replication_factor
    if not context.config.is_replication_factor_capped:
        return replication_factor
    # With no broker at all the refusal speaks of that.
    return min(replication_factor, max(count_usable(image), 1))


def _refused(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
