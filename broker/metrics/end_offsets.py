"""High watermarks of partitions that others lead, asked of their leaders for one exposition."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Final

from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.list_offsets.v11.response import ListOffsetsResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i32Timedelta, i64

from ...protocol.errors import KafkaError
from ..cluster.peer_channel import PeerChannel

LEADER_TIMEOUT_MS: Final = 1000
"""For all leaders together: scrapes give up after ten seconds, and one broker that hangs must not cost that."""
PARTITIONS_PER_REQUEST: Final = 250
"""A message is encoded, decoded and served in one turn of the event loop each: a few milliseconds."""
LATEST: Final = -1
_NO_REPLICA: Final = BrokerId(-1)
_UNCOMMITTED: Final = i8(0)


async def ask_end_offsets(
    peers: PeerChannel, by_leader: Mapping[int, Iterable[tuple[str, int]]]
) -> dict[tuple[str, int], int]:
    """By topic and partition. Partitions whose leader refuses, or does not answer in time, are left out."""
    found: dict[tuple[str, int], int] = {}

    async def ask(leader_id: int, partitions: Iterable[tuple[str, int]]) -> None:
        wanted = list(partitions)
        for start in range(0, len(wanted), PARTITIONS_PER_REQUEST):
            question = _question(wanted[start : start + PARTITIONS_PER_REQUEST])
            try:
                answer = await peers.request(leader_id, question, timeout_ms=LEADER_TIMEOUT_MS)
            except KafkaError:
                # The leader is away: its partitions are about to have another, and until then their lag is not known.
                return
            assert isinstance(answer, ListOffsetsResponse)
            found.update(_offsets_in(answer))

    try:
        # Connecting has a deadline of its own, which is longer.
        async with asyncio.timeout(LEADER_TIMEOUT_MS / 1000):
            await asyncio.gather(*(ask(leader_id, partitions) for leader_id, partitions in by_leader.items()))
    except TimeoutError:
        pass
    return found


def _offsets_in(answer: ListOffsetsResponse) -> Iterator[tuple[tuple[str, int], int]]:
    for topic in answer.topics:
        for one in topic.partitions:
            if not one.error_code and one.offset >= 0:
                yield (str(topic.name), int(one.partition_index)), int(one.offset)


def _question(partitions: Iterable[tuple[str, int]]) -> ListOffsetsRequest:
    indexes: defaultdict[str, list[int]] = defaultdict(list)
    for topic, index in partitions:
        indexes[topic].append(index)
    return ListOffsetsRequest(
        replica_id=_NO_REPLICA,
        isolation_level=_UNCOMMITTED,
        topics=tuple(
            ListOffsetsTopic(
                name=TopicName(topic),
                partitions=tuple(ListOffsetsPartition(partition_index=i32(one), timestamp=i64(LATEST)) for one in some),
            )
            for topic, some in indexes.items()
        ),
        timeout=i32Timedelta.parse(timedelta(milliseconds=LEADER_TIMEOUT_MS)),
    )
