"""A client of one group and partition that commits offsets in transactions and beside them: whichever is written later
counts, though a transaction's offset is seen only when that ends.

It does one thing after the other and asks for nothing twice, so it knows what must be committed: only commits without
an answer stay in doubt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from ....protocol.errors import ErrorCode, KafkaError
from ...workloads.bumping_producer import Address
from ...workloads.first_version_producer import FirstVersionProducer
from .consumer_members import Leadership
from .machine import host_of
from .transactional_clients import OverError, TransactionalProducer

GROUP: Final = "mixers"
NOTHING: Final = -1
_RETRY_S: Final = 0.1
_PAUSE_S: Final = 0.2
# Of a round: in the transaction, or beside it.
_COMMIT_COUNTS: Final = (1, 2, 2, 3)
_COMMIT_SHARE: Final = 0.7
_FETCH_SHARE: Final = 0.7


class OffsetMixer(TransactionalProducer):
    """`violations` are sentences."""

    def __init__(self, *arguments: Any, group_coordinator: Callable[[], Leadership | None], **options: Any) -> None:
        super().__init__(*arguments, bumping_share=0.0, **options)
        self.violations: list[str] = []
        self._group_coordinator = group_coordinator
        self._place = self._history.places[0]
        self._offset = 0
        self._committed = NOTHING
        # May be committed, or yet come to be.
        self._lost: set[int] = set()

    def _new_producer(self) -> FirstVersionProducer:
        return self._new_first_version_producer(patience_s=0.0)

    async def _work(self, producer: Any, end_s: float) -> None:
        coordinator = await producer.find_group(GROUP)
        while not self._is_over(end_s):
            await self._round(producer, coordinator)
            if self._random.random() < _FETCH_SHARE:
                await self._look(producer, coordinator)
            await asyncio.sleep(self._random.expovariate(1 / _PAUSE_S))

    async def _round(self, producer: FirstVersionProducer, coordinator: Address) -> None:
        """The first commit is the transaction's, so that what is committed beside it mostly comes behind."""
        tried: list[int] = []
        in_transaction: int | None = None
        latest, is_latest_pending = self._committed, False
        try:
            await producer.add_group(GROUP)
            for number in range(self._random.choice(_COMMIT_COUNTS)):
                self._offset += 1
                tried.append(self._offset)
                if number == 0 or self._random.random() < 0.3:
                    await producer.commit_offset_in_transaction(coordinator, GROUP, self._place, self._offset)
                    in_transaction, is_latest_pending = self._offset, True
                else:
                    await producer.commit_offset(coordinator, GROUP, self._place, self._offset)
                    latest, is_latest_pending = self._offset, False
            is_commit = self._random.random() < _COMMIT_SHARE
            asked_s = self._loop.time()
            await (producer.commit_transaction() if is_commit else producer.abort_transaction())
        except BaseException:
            self._lost |= {*tried, self._committed}
            raise
        if is_commit and is_latest_pending and in_transaction is not None:
            latest = in_transaction
        self._committed = latest
        self._history.operations["mixed commits"] += 1
        self._trace(f"mixed {tried}, {'committed' if is_commit else 'aborted'}: {latest}")
        if self._loop.time() - asked_s >= _RETRY_S:
            raise OverError("it may have asked twice")

    async def _look(self, producer: FirstVersionProducer, coordinator: Address) -> None:
        asked = self._group_coordinator()
        offset = await self._fetch(producer, coordinator)
        is_current = asked is not None and asked == self._group_coordinator()
        # Who has been replaced may answer once more, as in Apache Kafka.
        is_judged = is_current and asked is not None and host_of(asked.node_id) == coordinator[0]
        if is_judged and offset != self._committed and offset not in self._lost:
            self.violations.append(
                f"OFFSET: {GROUP} has {offset} committed, where {self._committed} was committed last, and no answer "
                f"came for {sorted(self._lost)}"
            )

    async def _fetch(self, producer: FirstVersionProducer, coordinator: Address) -> int:
        """Once the transaction has its markers."""
        while True:
            try:
                return await producer.fetch_offset(coordinator, GROUP, self._place)
            except KafkaError as error:
                if error.code is not ErrorCode.UNSTABLE_OFFSET_COMMIT:
                    raise
            await asyncio.sleep(_RETRY_S)
