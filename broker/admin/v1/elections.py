"""`/v1/elections`: leaders elected on request (KIP-460)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32

from ....protocol.errors import ErrorCode, KafkaError, error_info
from ....protocol.rest.elections import ElectionRequest, ElectionResult, PartitionOutcome
from ....quorum.decisions.elections import ElectionType
from ..operation import Call, Operation
from ..rules.kafka_answers import check

LISTED_MAX: Final = 1_000


def outcome(topic: str, partition: int, error_code: int, message: str | None) -> PartitionOutcome:
    """One partition of an answer of Kafka's protocol."""
    code = ErrorCode(int(error_code))
    if code is ErrorCode.NONE:
        return PartitionOutcome(topic=topic, partition=partition, error_code=0, error=None, message=None)
    return PartitionOutcome(
        topic=topic,
        partition=partition,
        error_code=int(code),
        error=code.name,
        message=message or error_info(code).sentence,
    )


def listed(outcomes: Iterable[PartitionOutcome]) -> list[PartitionOutcome]:
    """The first LISTED_MAX, refusals before all others."""
    return sorted(outcomes, key=lambda one: one.error_code == 0)[:LISTED_MAX]


async def _elect(call: Call) -> ElectionResult:
    body: ElectionRequest = ElectionRequest() if call.body is None else call.body
    kind = ElectionType.PREFERRED if body.type == "preferred" else ElectionType.UNCLEAN
    request = ElectLeadersRequest(election_type=i8(kind), topic_partitions=_asked(call, body))
    answer = await call.node.ask(request, ElectLeadersResponse, call.context)
    check(answer.error_code)
    outcomes = [
        outcome(str(topic.topic), int(one.partition_id), one.error_code, one.error_message)
        for topic in answer.replica_election_results
        for one in topic.partition_result
    ]
    elected_count = sum(one.error_code == 0 for one in outcomes)
    return ElectionResult(
        elected_count=elected_count, failed_count=len(outcomes) - elected_count, results=listed(outcomes)
    )


def _asked(call: Call, body: ElectionRequest) -> tuple[TopicPartitions, ...] | None:
    if body.topics is None and body.partitions is None:
        return None
    wanted: dict[str, dict[int, None]] = {}
    for name in body.topics or ():
        topic = call.node.image.topics.by_name.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic {name!r} does not exist.")
        wanted.setdefault(name, {}).update(dict.fromkeys(range(len(topic.partitions))))
    for one in body.partitions or ():
        wanted.setdefault(one.topic, {})[one.partition] = None
    return tuple(
        TopicPartitions(topic=TopicName(topic), partitions=tuple(map(i32, indexes)))
        for topic, indexes in wanted.items()
    )


OPERATIONS: Final = (
    Operation(
        name="electLeaders",
        method="POST",
        path="/v1/elections",
        tag="Partitions",
        summary="Elect the preferred leaders, or any live replica where no in-sync one is left",
        description="Without a list all partitions are looked at, and only those that needed an election are listed.",
        run=_elect,
        body=ElectionRequest,
        is_body_optional=True,
        answer=ElectionResult,
    ),
)
