"""In which log directory of its broker each replica is.

AssignReplicasToDirs, version 0 (KIP-858). What happens when a directory fails is in `heartbeats.py`.
"""

from collections.abc import Iterator
from typing import Final
from uuid import UUID

from kio.schema.assign_replicas_to_dirs.v0.request import AssignReplicasToDirsRequest
from kio.schema.assign_replicas_to_dirs.v0.response import (
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)
from kio.static.primitive import i32

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode
from ...protocol.ids import BrokerEpoch, NodeId, TopicId
from ...protocol.messages import NO_THROTTLE
from ...protocol.structs import replace
from ..metadata.image import BrokerRegistration, MetadataImage, PartitionRegistration, TopicImage
from ..metadata.records import DIRECTORY_LOST, DIRECTORY_UNASSIGNED, NO_LEADER, NO_LEADER_CHANGE, MetadataRecord
from .answers import ZERO_ID, wire_code
from .broker_epochs import check_broker_epoch
from .context import ControllerResult, DecisionContext
from .controller_request import ControllerRequest, broker_of
from .partition_changes import ElectionRules, PartitionTarget, acceptable_leader, election_rules, partition_change


def assign_replicas_to_dirs(
    image: MetadataImage, request: AssignReplicasToDirsRequest, context: DecisionContext
) -> ControllerResult[AssignReplicasToDirsResponse]:
    """Note where the broker says that its replicas are.

    Those in a directory that is not online leave their ISR. Those that were in a directory which the broker has no more
    leave ISR and ELR: what they had is not in the new one. So does a replica that is lost. One whose directory is known
    is noted as lost only if another leads then: from there on its broker may throw away what it has left of it, and
    only this one may have the records.

    Raises KafkaError(BROKER_ID_NOT_REGISTERED, STALE_BROKER_EPOCH).
    """
    broker = check_broker_epoch(image, NodeId(request.broker_id), BrokerEpoch(request.broker_epoch))
    assigned: dict[tuple[TopicId, int], UUID] = {}
    directories = []
    for directory in request.directories:
        directory_id = directory.id_ or ZERO_ID
        topics = []
        for topic in directory.topics:
            found = image.topics.by_id.get(topic.topic_id or ZERO_ID)
            partitions = []
            for partition in topic.partitions:
                index = int(partition.partition_index)
                code = _refusal(found, broker, index)
                if found is not None and code == ErrorCode.NONE:
                    assigned[found.topic_id, index] = directory_id
                partitions.append(PartitionData(partition_index=i32(index), error_code=wire_code(code)))
            topics.append(TopicData(topic_id=topic.topic_id, partitions=tuple(partitions)))
        directories.append(DirectoryData(id_=directory.id_, topics=tuple(topics)))
    return ControllerResult(
        records=tuple(_records(image, broker, assigned, context)),
        response=AssignReplicasToDirsResponse(
            throttle_time=NO_THROTTLE, error_code=wire_code(ErrorCode.NONE), directories=tuple(directories)
        ),
    )


def _refusal(topic: TopicImage | None, broker: BrokerRegistration, index: int) -> ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not 0 <= index < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker.id not in topic.partitions[index].replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE


def _records(
    image: MetadataImage,
    broker: BrokerRegistration,
    assigned: dict[tuple[TopicId, int], UUID],
    context: DecisionContext,
) -> Iterator[MetadataRecord]:
    rules_of: dict[TopicId, ElectionRules] = {}
    for (topic_id, index), directory_id in assigned.items():
        topic = image.topics.by_id[topic_id]
        if topic_id not in rules_of:
            rules_of[topic_id] = election_rules(image, topic, context.config)
        partition, target = topic.partitions[index], PartitionTarget.of(topic.partitions[index])
        is_online = broker.has_online_directory(directory_id)
        # What it had is in a directory that the broker has no more: it begins anew, with nothing.
        is_empty = is_online and not broker.has_online_directory(partition.directory_of(broker.id))
        record = partition_change(
            topic_id,
            index,
            partition,
            replace(
                target,
                isr=tuple([replica for replica in target.isr if replica != broker.id]) if not is_online else target.isr,
                directories={**target.directories, broker.id: directory_id},
                unclean=(broker.id,) if is_empty or directory_id == DIRECTORY_LOST else (),
            ),
            rules=rules_of[topic_id],
            may_lead=acceptable_leader(image, partition, leaving=None if is_online and not is_empty else broker.id),
        )
        if record is None or (directory_id == DIRECTORY_LOST and not _may_be_lost(partition, broker.id, record.leader)):
            continue
        known = partition.last_known_elr if record.last_known_elr is None else record.last_known_elr
        yield replace(record, last_known_elr=()) if is_empty and broker.id in known else record


def _may_be_lost(partition: PartitionRegistration, broker_id: NodeId, elected: NodeId) -> bool:
    if partition.directory_of(broker_id) == DIRECTORY_UNASSIGNED:
        return True
    return (partition.leader if elected == NO_LEADER_CHANGE else elected) not in (NO_LEADER, broker_id)


ASSIGN_REPLICAS_TO_DIRS: Final = ControllerRequest(ApiKey.ASSIGN_REPLICAS_TO_DIRS, assign_replicas_to_dirs, broker_of)
