"""Who leads: told by the nodes themselves, asked at addresses that no fault of a link concerns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from ...client.admin import Admin, AdminError
from ...client.connection import connect
from ...client.leaders import NO_LEADER, PartitionLeader, topic_leaders
from ...protocol.errors import CorruptData, KafkaError

_ANSWER_S: Final = 2.0
_NEVER: Final = PartitionLeader(-1, NO_LEADER)


def leader_of(addresses: Iterable[tuple[str, int]], topic: str, partition: int) -> int | None:
    """As the node says that knows the highest leader epoch. None: the partition has no leader, or no node answers."""

    async def ask_all() -> list[PartitionLeader]:
        return await asyncio.gather(*(_ask_leader(host, port, topic, partition) for host, port in addresses))

    leader_id = max(asyncio.run(ask_all()), default=_NEVER).leader_id
    return None if leader_id == NO_LEADER else leader_id


def controller_of(admins: Mapping[int, str]) -> int | None:
    """The active controller, as the node says that knows the highest epoch; `admins` are addresses by HTTP."""
    latest: tuple[int, int | None] = (-1, None)
    for url in admins.values():
        try:
            with Admin(url, timeout_s=_ANSWER_S) as admin:
                quorum = admin.get_quorum()
        except AdminError:
            continue
        if quorum.leader_id is not None and quorum.leader_id >= 0 and quorum.epoch > latest[0]:
            latest = quorum.epoch, quorum.leader_id
    return latest[1]


async def _ask_leader(host: str, port: int, topic: str, partition: int) -> PartitionLeader:
    try:
        async with await connect(host, port, timeout_ms=round(_ANSWER_S * 1000)) as connection:
            told = await topic_leaders(connection, topic)
    except (OSError, CorruptData, KafkaError):
        return _NEVER
    return told.partitions.get(partition, _NEVER)
