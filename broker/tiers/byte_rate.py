"""Waiting until a byte rate allows more (`remote.log.manager.copy.max.bytes.per.second` and the same for fetches).

Kafka: `RLMQuotaManager`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..replication.rules.replication_quota import ReplicationQuota


async def within_quota(quota: ReplicationQuota, now_ms: Callable[[], int]) -> None:
    """Return once the rate has fallen to the quota; others may have moved bytes meanwhile, so it is asked again."""
    while (due_ms := quota.allowed_ms(asked_ms := now_ms())) > asked_ms:  # noqa: ASYNC110 - time alone lowers a rate
        await asyncio.sleep((due_ms - asked_ms) / 1000)
