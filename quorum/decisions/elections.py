"""Leader elections on request.

ElectLeaders, versions 0-2 (KIP-183, KIP-460). Checks, codes and sentences are those of Apache Kafka 4.3.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from kio.schema.elect_leaders.v2.request import ElectLeadersRequest
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse, PartitionResult, ReplicaElectionResult
from kio.schema.types import TopicName
from kio.static.primitive import i32

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE
from ..metadata.image import MetadataImage
from ..metadata.records import NO_LEADER, MetadataRecord
from .answers import Refusal, plain_refusal, wire_code
from .context import ControllerResult, DecisionContext
from .controller_request import ControllerRequest
from .partition_changes import requested_election


class ElectionType(IntEnum):
    """What is asked for, by Kafka's numbers."""

    PREFERRED = 0
    UNCLEAN = 1


def elect_leaders(
    image: MetadataImage, request: ElectLeadersRequest, context: DecisionContext
) -> ControllerResult[ElectLeadersResponse]:
    """Elect where it is needed and possible. A request without a list means all partitions; the response then omits
    those that need no election.

    Raises KafkaError when the kind of election is unknown.
    """
    try:
        kind = ElectionType(request.election_type)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}") from None
    records: list[MetadataRecord] = []
    results = []
    for topic, indexes in _asked(image, request):
        partitions = []
        for index in indexes:
            reason = _elect(image, topic, index, kind, context, records)
            if request.topic_partitions is not None or reason.code != ErrorCode.ELECTION_NOT_NEEDED:
                partitions.append(_result(index, reason))
        results.append(ReplicaElectionResult(topic=TopicName(topic), partition_result=tuple(partitions)))
    return ControllerResult(
        records=tuple(records),
        response=ElectLeadersResponse(
            throttle_time=NO_THROTTLE,
            error_code=wire_code(ErrorCode.NONE),
            replica_election_results=tuple(results),
        ),
    )


def _asked(image: MetadataImage, request: ElectLeadersRequest) -> Iterator[tuple[str, tuple[int, ...]]]:
    if request.topic_partitions is None:
        for topic in image.topics.by_id.values():
            yield topic.name, tuple(range(len(topic.partitions)))
        return
    # A partition that is named twice would be elected twice, by records of which the second is wrong after the first.
    asked: dict[str, dict[int, None]] = {}
    for one in request.topic_partitions:
        asked.setdefault(one.topic, {}).update(dict.fromkeys(map(int, one.partitions)))
    for name, indexes in asked.items():
        yield name, tuple(indexes)


def _elect(
    image: MetadataImage,
    name: str,
    index: int,
    kind: ElectionType,
    context: DecisionContext,
    records: list[MetadataRecord],
) -> Refusal:
    topic = image.topics.by_name.get(name)
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = image.topics.partition(name, index)
    if partition is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    is_unclean = kind is ElectionType.UNCLEAN
    is_satisfied = partition.leader != NO_LEADER if is_unclean else partition.leader == partition.replicas[0]
    if is_satisfied:
        return plain_refusal(ErrorCode.ELECTION_NOT_NEEDED)
    record = requested_election(image, context.config, topic, index, is_unclean=is_unclean)
    if record is None:
        return plain_refusal(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE if is_unclean else ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        )
    records.append(record)
    return Refusal(ErrorCode.NONE, None)


def _result(index: int, reason: Refusal) -> PartitionResult:
    return PartitionResult(partition_id=i32(index), error_code=wire_code(reason.code), error_message=reason.message)


ELECT_LEADERS: Final = ControllerRequest(ApiKey.ELECT_LEADERS, elect_leaders)
