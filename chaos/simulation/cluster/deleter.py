"""A client that deletes records: DeleteRecords by `aiokafka`, of what was acknowledged or read, now and then.

Some requests delete a lot, others a record or two at the log start: then followers that are behind, or away, end below
where the leader's log begins.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.records_to_delete import RecordsToDelete
from aiokafka.errors import KafkaError

from .clients import History
from .loop import SimulatedLoop
from .profiles import Profile
from .simulated_client import SimulatedClient

# Between two requests, on average.
_PACE_S = 1.5
_SHARES = {"delete-records": 1.0, "delete-near-start": 0.5}
_NEAR = (1, 1, 2, 5)
_TIMEOUT_MS = 3_000


class Deleter(SimulatedClient):
    """`asked_ends` tells by partition up to where it ever asked to delete, `counts` how often it was answered."""

    def __init__(
        self, name: str, bootstrap: Sequence[str], history: History, *,
        log_start: Callable[[int], int], profile: Profile, loop: SimulatedLoop, random: Random,
    ) -> None:  # fmt: skip
        """`log_start` tells where a partition's log begins."""
        super().__init__(name, "10.0.4.1", loop=loop, random=random)
        self.asked_ends = [0] * history.partition_count
        self.counts: Counter[str] = Counter()
        self._log_start = log_start
        self._weights = {kind: share * profile.weight(kind) for kind, share in _SHARES.items()}
        self._bootstrap = list(bootstrap)
        self._history = history

    @property
    def is_busy(self) -> bool:
        """Whether it does anything at all."""
        return any(self._weights.values())

    async def _run(self) -> None:
        pace_s = _PACE_S * sum(_SHARES.values()) / sum(self._weights.values())
        while not self.is_stopping:
            admin = AIOKafkaAdminClient(
                bootstrap_servers=self._bootstrap, client_id=self._name, request_timeout_ms=_TIMEOUT_MS
            )
            try:
                await admin.start()
                while not self.is_stopping:
                    await asyncio.sleep(self._random.expovariate(1 / pace_s))
                    await self._delete(admin)
            except (KafkaError, OSError, AttributeError) as error:
                # Before it knows a controller, the client fails as it should not.
                self._history.errors[type(error).__name__] += 1
                await asyncio.sleep(0.5)
            finally:
                await admin.close()

    async def _delete(self, admin: AIOKafkaAdminClient) -> None:
        partition = self._random.randrange(self._history.partition_count)
        end = self._history.committed_end(self._history.topic, partition)
        kind = self._random.choices(list(self._weights), list(self._weights.values()))[0]
        if kind == "delete-near-start":
            offset = min(end, self._log_start(partition) + self._random.choice(_NEAR))
        else:
            offset = end if self._random.random() < 0.2 else self._random.randint(end // 2, end)
        self.asked_ends[partition] = max(self.asked_ends[partition], offset)
        place = TopicPartition(self._history.topic, partition)
        await admin.delete_records({place: RecordsToDelete(before_offset=offset)}, timeout_ms=_TIMEOUT_MS)
        self.counts[kind] += 1
