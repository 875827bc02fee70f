"""Whether a link carries anything, shown by requests on that very link: ApiVersions, which every node answers.

Two on one connection: of a link that is narrow, and was idle, the first answer may come through as ever.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ...client import clock
from ...client.connection import connect
from ...protocol.errors import CorruptData, KafkaError

TIMEOUT_S: Final = 1.0
"""A node answers in milliseconds; with less time than this, one under load would pass for a link that is cut."""


def round_trips_ms(addresses: tuple[tuple[str, int], ...], *, timeout_s: float = TIMEOUT_S) -> tuple[float | None, ...]:
    """For each address, asked at the same time, how long connection and answers took; None: no answer in that time."""

    async def ask_all() -> tuple[float | None, ...]:
        return tuple(await asyncio.gather(*(_ask(host, port, timeout_s) for host, port in addresses)))

    return asyncio.run(ask_all())


async def _ask(host: str, port: int, timeout_s: float) -> float | None:
    begun_s = clock.monotonic_s()
    try:
        # All steps have this limit, and together they have no more.
        async with asyncio.timeout(timeout_s):
            async with await connect(host, port, client_id="canary", timeout_ms=round(timeout_s * 1000)) as connection:
                await connection.negotiate()
                return (clock.monotonic_s() - begun_s) * 1000
    except (OSError, CorruptData, KafkaError):
        return None
