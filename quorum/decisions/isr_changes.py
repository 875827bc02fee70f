"""Leaders tell who is in sync.

AlterPartition, versions 2-3 (KIP-497; KIP-704 recovery after unclean elections; KIP-841 and KIP-903: who is fenced, on
its way out or another process than the leader believes is not let in). Checks and codes are those of Apache Kafka 4.3,
and a replica that is lost is not let in either.
"""

from typing import Final

from kio.schema.alter_partition.v3.request import AlterPartitionRequest, PartitionData, TopicData
from kio.schema.alter_partition.v3.response import AlterPartitionResponse
from kio.schema.alter_partition.v3.response import PartitionData as PartitionResult
from kio.schema.alter_partition.v3.response import TopicData as TopicResult
from kio.schema.types import BrokerId
from kio.static.primitive import i8, i32

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode
from ...protocol.ids import BrokerEpoch, NodeId
from ...protocol.messages import NO_THROTTLE
from ...protocol.structs import replace
from ..metadata.image import MetadataImage, PartitionRegistration, TopicImage
from ..metadata.records import (
    DIRECTORY_LOST,
    LEADER_RECOVERED,
    LEADER_RECOVERING,
    NO_LEADER_CHANGE,
    MetadataRecord,
    PartitionChangeRecord,
)
from ..metadata.topics_delta import changed_partition
from .answers import ZERO_ID, wire_code
from .broker_epochs import check_broker_epoch
from .context import ControllerResult, DecisionContext
from .controller_request import ControllerRequest, broker_of
from .partition_changes import PartitionTarget, acceptable_leader, election_rules, partition_change


def alter_partition(
    image: MetadataImage, request: AlterPartitionRequest, context: DecisionContext
) -> ControllerResult[AlterPartitionResponse]:
    """Change the ISR of the partitions that the broker leads, each by itself.

    The change that lets a reassignment end ends it. Raises KafkaError(BROKER_ID_NOT_REGISTERED, STALE_BROKER_EPOCH).
    """
    broker_id = NodeId(request.broker_id)
    check_broker_epoch(image, broker_id, BrokerEpoch(request.broker_epoch))
    records: list[MetadataRecord] = []
    results = [_alter_topic(image, broker_id, asked, context, records) for asked in request.topics]
    return ControllerResult(
        records=tuple(records),
        response=AlterPartitionResponse(
            throttle_time=NO_THROTTLE, error_code=wire_code(ErrorCode.NONE), topics=tuple(results)
        ),
    )


def _alter_topic(
    image: MetadataImage, broker_id: NodeId, asked: TopicData, context: DecisionContext, records: list[MetadataRecord]
) -> TopicResult:
    topic = image.topics.by_id.get(asked.topic_id or ZERO_ID)
    if topic is None:
        results = [_refused(partition, ErrorCode.UNKNOWN_TOPIC_ID) for partition in asked.partitions]
        return TopicResult(topic_id=asked.topic_id, partitions=tuple(results))
    # A partition that is named twice is told the second time what it has become.
    changed: dict[int, PartitionRegistration] = {}
    results = [_alter(image, broker_id, topic, partition, changed, context, records) for partition in asked.partitions]
    return TopicResult(topic_id=asked.topic_id, partitions=tuple(results))


def _alter(
    image: MetadataImage,
    broker_id: NodeId,
    topic: TopicImage,
    asked: PartitionData,
    changed: dict[int, PartitionRegistration],
    context: DecisionContext,
    records: list[MetadataRecord],
) -> PartitionResult:
    index = int(asked.partition_index)
    if not 0 <= index < len(topic.partitions):
        return _refused(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = changed.get(index, topic.partitions[index])
    error = _check(image, broker_id, partition, asked)
    if error is not ErrorCode.NONE:
        return _refused(asked, error)
    isr = tuple([NodeId(member.broker_id) for member in asked.new_isr_with_epochs])
    record = partition_change(
        topic.topic_id,
        index,
        partition,
        replace(PartitionTarget.of(partition), isr=isr, leader_recovery_state=int(asked.leader_recovery_state)),
        rules=election_rules(image, topic, context.config),
        may_lead=acceptable_leader(image, partition),
    )
    if record is None:
        # The partition epoch rises all the same: the leader asks so that earlier requests of its own, which may still
        # be on their way, come too late. Apache Kafka leaves it, and can make a change that it has refused before.
        record = PartitionChangeRecord(topic_id=topic.topic_id, partition_id=index, isr=partition.isr)
    records.append(record)
    partition = changed[index] = changed_partition(partition, record)
    if record.leader not in (NO_LEADER_CHANGE, broker_id):
        # The end of a reassignment moved the leadership: the old leader learns it from the metadata.
        return _refused(asked, ErrorCode.NEW_LEADER_ELECTED)
    return PartitionResult(
        partition_index=asked.partition_index,
        error_code=wire_code(ErrorCode.NONE),
        leader_id=BrokerId(partition.leader),
        leader_epoch=i32(partition.leader_epoch),
        isr=tuple(map(BrokerId, partition.isr)),
        leader_recovery_state=i8(partition.leader_recovery_state),
        partition_epoch=i32(partition.partition_epoch),
    )


def _check(
    image: MetadataImage, broker_id: NodeId, partition: PartitionRegistration, asked: PartitionData
) -> ErrorCode:
    if asked.leader_epoch > partition.leader_epoch or asked.partition_epoch > partition.partition_epoch:
        # The leader knows more than this controller: another one must be active.
        return ErrorCode.NOT_CONTROLLER
    if asked.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if asked.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    members = [NodeId(member.broker_id) for member in asked.new_isr_with_epochs]
    if len(set(members)) != len(members) or not set(members) <= set(partition.replicas) or broker_id not in members:
        return ErrorCode.INVALID_REQUEST
    if asked.leader_recovery_state not in (LEADER_RECOVERED, LEADER_RECOVERING):
        return ErrorCode.INVALID_REQUEST
    if asked.leader_recovery_state == LEADER_RECOVERING and (
        len(members) > 1 or partition.leader_recovery_state == LEADER_RECOVERED
    ):
        return ErrorCode.INVALID_REQUEST
    for member in asked.new_isr_with_epochs:
        replica = NodeId(member.broker_id)
        broker = image.brokers.get(replica)
        if broker is None or not broker.is_active or member.broker_epoch not in (-1, broker.epoch):
            return ErrorCode.INELIGIBLE_REPLICA
        if replica not in partition.isr and partition.directory_of(replica) == DIRECTORY_LOST:
            # It cannot be elected, and is taken for empty when it tells where it is: it may join behind that.
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _refused(asked: PartitionData, error: ErrorCode) -> PartitionResult:
    return PartitionResult(
        partition_index=asked.partition_index,
        error_code=wire_code(error),
        leader_id=BrokerId(0),
        leader_epoch=i32(0),
        partition_epoch=i32(0),
    )


ALTER_PARTITION: Final = ControllerRequest(ApiKey.ALTER_PARTITION, alter_partition, broker_of)
