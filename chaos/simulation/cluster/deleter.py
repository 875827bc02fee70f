"""A client that deletes records: DeleteRecords by `aiokafka`, of what was acknowledged or read, now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.records_to_delete import RecordsToDelete
from aiokafka.errors import KafkaError

from .clients import History
from .loop import SimulatedLoop
from .process import Process

# Between two requests, on average.
_PACE_S = 2.0
_TIMEOUT_MS = 3_000


class Deleter:
    """`asked_ends` tells by partition up to where it ever asked to delete."""

    def __init__(
        self, name: str, bootstrap: Sequence[str], history: History, *, loop: SimulatedLoop, random: Random
    ) -> None:
        self.process = Process(name, "10.0.4.1")
        self.is_stopping = False
        self.asked_ends = [0] * history.partition_count
        self.answered_count = 0
        self._name = name
        self._bootstrap = list(bootstrap)
        self._history = history
        self._loop = loop
        self._random = random

    def start(self) -> None:
        self.process.run(lambda: self._loop.create_task(self._run()))

    async def _run(self) -> None:
        while not self.is_stopping:
            admin = AIOKafkaAdminClient(
                bootstrap_servers=self._bootstrap, client_id=self._name, request_timeout_ms=_TIMEOUT_MS
            )
            try:
                await admin.start()
                while not self.is_stopping:
                    await asyncio.sleep(self._random.expovariate(1 / _PACE_S))
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
        offset = end if self._random.random() < 0.2 else self._random.randint(end // 2, end)
        self.asked_ends[partition] = max(self.asked_ends[partition], offset)
        place = TopicPartition(self._history.topic, partition)
        await admin.delete_records({place: RecordsToDelete(before_offset=offset)}, timeout_ms=_TIMEOUT_MS)
        self.answered_count += 1
