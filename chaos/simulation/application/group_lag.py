"""How far a group is behind: its committed offsets, against the ends of partitions."""

from __future__ import annotations

from collections.abc import Callable

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError


async def group_lag(bootstrap: str, group: str, end_offset: Callable[[str, int], int | None]) -> int | None:
    """In records, over all partitions in which it has committed; None when it has committed nothing, or a partition has
    no leader, or no coordinator answers."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=5_000)
    try:
        await admin.start()
        committed = await admin.list_consumer_group_offsets(group)
    except (KafkaError, OSError):
        return None
    finally:
        await admin.close()
    ends: list[tuple[int | None, int]] = [
        (end_offset(place.topic, place.partition), told.offset) for place, told in committed.items()
    ]
    if not ends or any(end is None or offset < 0 for end, offset in ends):
        return None
    return sum((end or 0) - offset for end, offset in ends)
