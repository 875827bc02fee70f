"""The internal topic of a coordinator, created once, on the first request that needs it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Final

from kio.schema.create_topics.v7.request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32, i32Timedelta

from ...protocol.errors import ErrorCode, KafkaError
from ...quorum.decisions.topics import CREATE_TOPICS
from ...quorum.metadata.image import MetadataImage
from ..cluster.controller_channel import ControllerChannel

logger = logging.getLogger(__name__)

CREATION_TIMEOUT: Final = timedelta(seconds=30)
CREATION_WAIT_S: Final = 1.0
"""So long a client waits for a creation, and so do the requests behind its own on the connection. A creation that goes
well takes a fraction of it; of one that does not, clients ask again."""
SAY_AGAIN_S: Final = 600.0
"""Clients ask many times a second for what cannot be made: a cause has one line in that time."""


class InternalTopic:
    def __init__(
        self,
        name: str,
        image: Callable[[], MetadataImage],
        controller: ControllerChannel,
        *,
        settled: Callable[[], Awaitable[None]],
        partition_count: int,
        replication_factor: int,
        is_replication_factor_capped: bool,
        configs: Callable[[int], Mapping[str, str]],
    ) -> None:
        """`settled` waits for this node to serve what the metadata says. With `is_replication_factor_capped`
        there are no more replicas than brokers; `configs` are those of a topic with so many."""
        self.name = name
        self._image = image
        self._controller = controller
        self._settled = settled
        self._partition_count = partition_count
        self._replication_factor = replication_factor
        self._is_capped = is_replication_factor_capped
        self._configs = configs
        self._creation: asyncio.Task[None] | None = None
        # When each error was logged.
        self._said_s: dict[ErrorCode, float] = {}

    async def ensure(self) -> None:
        """Returns when the topic is there, or could not be made, which the log says, or takes `CREATION_WAIT_S`."""
        if self.name in self._image().topics.by_name:
            return
        if self._creation is None:
            self._creation = asyncio.ensure_future(self._create())
            self._creation.add_done_callback(self._on_created)
        # Others wait for the same creation, which goes on when this client goes or has waited enough.
        await asyncio.wait((self._creation,), timeout=CREATION_WAIT_S)

    def _on_created(self, _creation: asyncio.Task[None]) -> None:
        self._creation = None

    async def _create(self) -> None:
        replication_factor = self._replication_factor
        if self._is_capped:
            replication_factor = min(replication_factor, max(len(self._image().brokers), 1))
        topic = CreatableTopic(
            name=TopicName(self.name),
            num_partitions=i32(self._partition_count),
            replication_factor=i16(replication_factor),
            assignments=(),
            configs=tuple(
                CreatableTopicConfig(name=name, value=value)
                for name, value in self._configs(replication_factor).items()
            ),
        )
        timeout = i32Timedelta.parse(CREATION_TIMEOUT)
        try:
            response = await self._controller.submit(
                CREATE_TOPICS, CreateTopicsRequest(topics=(topic,), timeout=timeout)
            )
        except KafkaError as error:
            self._say(error.code, str(error))
            return
        await self._settled()
        (result,) = response.topics
        code = ErrorCode(int(result.error_code))
        if code is ErrorCode.NONE:
            self._said_s.clear()
            logger.info("Auto topic creation completed: topic=%s replicas=%d", self.name, replication_factor)
        elif code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            self._say(code, f"{code.name}: {result.error_message}")

    def _say(self, code: ErrorCode, reason: str) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._said_s.get(code, -SAY_AGAIN_S) >= SAY_AGAIN_S:
            self._said_s[code] = now_s
            logger.warning("Auto topic creation failed: topic=%s reason=%s", self.name, reason)
