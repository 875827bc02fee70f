"""High watermarks of partitions that others lead, asked of their leaders for one exposition."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from kio.schema.list_offsets.v11.response import ListOffsetsResponse

from ...protocol.errors import KafkaError
from ..cluster.peer_channel import PeerChannel
from ..cluster.rules.offset_questions import OffsetTime, Place, known_offsets, offsets_question

LEADER_TIMEOUT_MS: Final = 1000
"""For all leaders together: scrapes give up after ten seconds, and one broker that hangs must not cost that."""
PARTITIONS_PER_REQUEST: Final = 250
"""A message is encoded, decoded and served in one turn of the event loop each: a few milliseconds."""


async def ask_end_offsets(peers: PeerChannel, by_leader: Mapping[int, Iterable[Place]]) -> dict[Place, int]:
    """By topic and partition. Partitions whose leader refuses, or does not answer in time, are left out."""
    found: dict[Place, int] = {}

    async def ask(leader_id: int, partitions: Iterable[Place]) -> None:
        wanted = list(partitions)
        for start in range(0, len(wanted), PARTITIONS_PER_REQUEST):
            some = wanted[start : start + PARTITIONS_PER_REQUEST]
            question = offsets_question(some, OffsetTime.LATEST, timeout_ms=LEADER_TIMEOUT_MS)
            try:
                answer = await peers.request(leader_id, question, timeout_ms=LEADER_TIMEOUT_MS)
            except KafkaError:
                # The leader is away: its partitions are about to have another, and until then their lag is not known.
                return
            assert isinstance(answer, ListOffsetsResponse)
            found.update(known_offsets(answer))

    try:
        # Connecting has a deadline of its own, which is longer.
        async with asyncio.timeout(LEADER_TIMEOUT_MS / 1000):
            await asyncio.gather(*(ask(leader_id, partitions) for leader_id, partitions in by_leader.items()))
    except TimeoutError:
        pass
    return found
