"""One question to several brokers at once: what each answers, or why it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kio.schema.describe_log_dirs.v5.request import DescribableLogDirTopic, DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v5.response import DescribeLogDirsResponse
from kio.schema.types import TopicName
from kio.static.primitive import i32

from ...protocol.errors import KafkaError
from ...protocol.messages import Request, Response
from ..network.request import RequestContext
from .node_ports import ResponseT
from .operation import Call
from .rules.kafka_answers import check

BROKER_TIMEOUT_S: Final = 3.0
"""For one broker: an overview of a cluster is not to wait for a broker that is about to be fenced."""
PARTITIONS_ASKED_MAX: Final = 100
"""Of one request: it is encoded, answered and decoded in one turn where the broker is this node."""


async def ask_brokers(
    call: Call,
    broker_ids: Collection[int],
    message: Request,
    answer: type[ResponseT],
    context: RequestContext | None = None,
) -> tuple[dict[int, ResponseT], dict[int, str]]:
    """The answers, and the reasons of those that gave none. Brokers that are not active are not asked.

    `context` says who asks: the client unless it is given.
    """
    asking = call.context if context is None else context
    active = {broker.id for broker in call.node.active_brokers()}
    wanted = sorted(set(broker_ids))
    found: dict[int, ResponseT] = {}
    failures = {one: "The broker is not active." for one in wanted if one not in active}

    async def ask(broker_id: int) -> None:
        try:
            async with asyncio.timeout(BROKER_TIMEOUT_S):
                response = await call.node.ask_broker(broker_id, message, answer, asking)
            _check(response)
            found[broker_id] = response
        except TimeoutError:
            failures[broker_id] = f"It did not answer within {BROKER_TIMEOUT_S:g} s."
        except KafkaError as error:
            failures[broker_id] = error.message or str(error)

    await asyncio.gather(*(ask(one) for one in wanted if one in active))
    return found, failures


async def ask_log_dirs(
    call: Call, broker_ids: Collection[int], partitions: Mapping[str, Sequence[int]] | None
) -> tuple[dict[int, DescribeLogDirsResponse], dict[int, str]]:
    """The log directories of brokers, with the sizes of these partitions; None: of all."""
    topics = (
        None
        if partitions is None
        else tuple(
            DescribableLogDirTopic(topic=TopicName(topic), partitions=tuple(map(i32, indexes)))
            for topic, indexes in partitions.items()
        )
    )
    return await ask_brokers(call, broker_ids, DescribeLogDirsRequest(topics=topics), DescribeLogDirsResponse)


def sizes_in(answer: DescribeLogDirsResponse | None) -> dict[tuple[str, int], int]:
    """Bytes by partition."""
    return {
        (str(topic.name), int(partition.partition_index)): int(partition.partition_size)
        for directory in (() if answer is None else answer.results)
        for topic in directory.topics
        for partition in topic.partitions
        if not partition.is_future_key
    }


def _check(response: Response) -> None:
    check(getattr(response, "error_code", 0), getattr(response, "error_message", None))
