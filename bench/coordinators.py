"""Which node coordinates a group or a transaction: asked of any node, again until one knows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import Coordinator, FindCoordinatorResponse
from kio.static.primitive import i8

from ..client import clock
from ..client.addresses import Address
from ..client.connection import connect
from ..local.errors import ClusterError
from ..protocol.errors import CorruptData, KafkaError

DEADLINE_S: Final = 180.0
_RETRY_S: Final = 0.02
_TIMEOUT_MS: Final = 60_000
GROUP: Final = i8(0)
TRANSACTION: Final = i8(1)


async def coordinator_of(key: str, addresses: Sequence[Address], *, kind: i8 = GROUP) -> Coordinator:
    """Raises ClusterError when no node at these addresses knows one for three minutes."""
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
    deadline_s = clock.monotonic_s() + DEADLINE_S
    while clock.monotonic_s() < deadline_s:
        for address in addresses:
            try:
                async with await connect(address.host, address.port, timeout_ms=_TIMEOUT_MS) as connection:
                    answer = await connection.call(request)
            except (OSError, KafkaError, CorruptData):
                continue
            assert isinstance(answer, FindCoordinatorResponse)
            (found,) = answer.coordinators
            if not found.error_code:
                return found
        await asyncio.sleep(_RETRY_S)
    raise ClusterError(f"{key} has no coordinator after {DEADLINE_S:g} s")
