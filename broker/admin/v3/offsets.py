"""Offsets of partitions, asked of the brokers that have them. Kafka: `KafkaAdminClient.listOffsets`."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeAlias

from kio.schema.list_offsets.v11.response import ListOffsetsResponse

from ....protocol.errors import ErrorCode, KafkaError
from ....quorum.metadata.image import MetadataImage
from ...cluster.rules.offset_questions import (
    CONSUMER,
    READ_UNCOMMITTED,
    Place,
    answered_offsets,
    offsets_question,
)
from ..broker_answers import PARTITIONS_ASKED_MAX
from ..operation import Call
from .answers import REQUEST_TIMEOUT_MS, gather
from .lookups import NO_LEADER

Found: TypeAlias = "int | KafkaError"
"""An offset, -1 where no record has one, or why it is not known."""


async def of_leaders(
    call: Call, image: MetadataImage, places: Sequence[Place], timestamp_ms: int, *, isolation: int = READ_UNCOMMITTED
) -> Mapping[Place, Found]:
    """The offset of each partition at that timestamp, an OffsetTime among them, as its leader knows it."""
    found: dict[Place, Found] = {}
    by_leader: defaultdict[int, list[Place]] = defaultdict(list)
    for name, index in places:
        partition = image.topics.partition(name, index)
        if partition is None:
            found[name, index] = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif partition.leader == NO_LEADER:
            found[name, index] = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"Partition {name}-{index} has no leader.")
        else:
            by_leader[partition.leader].append((name, index))
    answers = await gather(
        [
            partial(of_broker, call, leader, some, timestamp_ms, replica_id=CONSUMER, isolation=isolation)
            for leader, some in by_leader.items()
        ]
    )
    for some, answer in zip(by_leader.values(), answers, strict=True):
        found.update(dict.fromkeys(some, answer) if isinstance(answer, KafkaError) else answer)
    return found


async def of_broker(
    call: Call,
    broker_id: int,
    places: Sequence[Place],
    timestamp_ms: int,
    *,
    replica_id: int,
    isolation: int = READ_UNCOMMITTED,
) -> Mapping[Place, Found]:
    """The same as one broker knows it. Raises KafkaError where it does not answer."""
    found: dict[Place, Found] = {}
    for start in range(0, len(places), PARTITIONS_ASKED_MAX):
        some = places[start : start + PARTITIONS_ASKED_MAX]
        found |= await _ask(call, broker_id, some, timestamp_ms, replica_id=replica_id, isolation=isolation)
        # A broker that is this node answers within the turn.
        await asyncio.sleep(0)
    return found


async def _ask(
    call: Call, broker_id: int, places: Sequence[Place], timestamp_ms: int, *, replica_id: int, isolation: int
) -> Mapping[Place, Found]:
    request = offsets_question(
        places, timestamp_ms, timeout_ms=REQUEST_TIMEOUT_MS, replica_id=replica_id, isolation=isolation
    )
    answer = await call.node.ask_broker(broker_id, request, ListOffsetsResponse, call.context)
    found: dict[Place, Found] = dict.fromkeys(places, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
    for one in answered_offsets(answer):
        found[one.place] = KafkaError(one.error_code) if one.error_code else one.offset
    return found
