"""The coordinators of transactions on this node: where they keep their state, and which of them an id is of."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, TypeVar

from ...protocol.errors import ErrorCode, KafkaError
from ...quorum.metadata.delta import MetadataDelta
from ...quorum.metadata.features import TRANSACTION_VERSION
from ...quorum.metadata.image import MetadataImage
from ..configuration.transaction_config import TransactionConfig
from ..replicas.partition import Partition
from ..replicas.replica_manager import ReplicaManager
from ..timing.runtime import Runtime
from ..transactions.transaction_shard import ProducerIdNeededError, TransactionShard
from .coordinator_context import CoordinatorContext, CoordinatorTimers
from .coordinator_runtime import CoordinatorRuntime
from .marker_sender import MarkerSender, Peers

T = TypeVar("T")

TRANSACTIONS_TOPIC: Final = "__transaction_state"
COMMIT_TIMEOUT_MS: Final = 30_000
"""Kafka's default of request.timeout.ms: as long as a client waits for what its request has changed."""
TransactionPartitionState: TypeAlias = CoordinatorContext[TransactionShard]


class TransactionCoordinator:
    """Follows the metadata (`MetadataPublisher`) behind the partitions."""

    def __init__(
        self,
        partitions: ReplicaManager,
        config: TransactionConfig,
        peers: Peers,
        next_producer_id: Callable[[], Awaitable[int]],
        *,
        runtime: Runtime,
    ) -> None:
        """`next_producer_id` raises KafkaError, as `ProducerIds.next_id`."""
        self._partitions = partitions
        self._config = config
        self._next_producer_id = next_producer_id
        self._runtime = runtime
        self._markers = MarkerSender(peers, lambda: partitions.image, runtime.loop)
        self._tasks: set[asyncio.Task[None]] = set()
        self.coordinators: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(
            TRANSACTIONS_TOPIC, partitions.node_id, lambda: partitions.image, self._coordinate
        )

    async def close(self) -> None:
        """The node stops."""
        self.coordinators.unload_all()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._markers.close()

    def publish(self, _delta: MetadataDelta, _image: MetadataImage) -> None:
        self._markers.on_metadata()

    def get(self, transactional_id: str) -> TransactionPartitionState:
        """For requests that must name a transactional id. Raises KafkaError."""
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        return self.coordinators.get(transactional_id)

    def ask(
        self,
        transactional_id: str,
        operation: Callable[[TransactionShard, int | None], T],
        respond: Callable[[T], None],
        answer_error: Callable[[ErrorCode], T],
    ) -> None:
        """Has `respond` called with what the operation comes to, once that holds. It is given a new producer id when it
        needs one. Raises KafkaError, or calls `respond` with what `answer_error` makes of it."""
        partition = self.get(transactional_id)
        reply = partition.reply_when_committed(respond, answer_error)
        try:
            result = operation(partition.shard, None)
        except ProducerIdNeededError:
            self.start(self._ask_again(partition, operation, reply, lambda error: respond(answer_error(error))))
        else:
            reply(result)

    async def _ask_again(
        self,
        partition: TransactionPartitionState,
        operation: Callable[[TransactionShard, int | None], T],
        reply: Callable[[T], None],
        refuse: Callable[[ErrorCode], None],
    ) -> None:
        try:
            producer_id = await self._next_producer_id()
            # It may have gone meanwhile.
            result = operation(partition.shard, producer_id)
        except KafkaError as error:
            refuse(error.code)
        except asyncio.CancelledError:
            refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            raise
        else:
            reply(result)

    def start(self, work: Awaitable[None]) -> None:
        """Does something that is given up when the node stops."""
        task = asyncio.ensure_future(work, loop=self._runtime.loop)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _coordinate(self, hosted: Partition) -> TransactionPartitionState:
        def make_shard(partition: TransactionPartitionState, timers: CoordinatorTimers) -> TransactionShard:
            return TransactionShard(
                partition,
                timers,
                self._markers,
                config=self._config,
                feature_level=lambda: self._partitions.image.features.get(TRANSACTION_VERSION, 0),
                new_producer_id=lambda on_id: self.start(self._give_producer_id(partition, on_id)),
                now_ms=self._runtime.steady_clock_ms,
            )

        return CoordinatorContext(
            hosted,
            make_shard,
            replies=self._partitions.produces,
            runtime=self._runtime,
            on_append=self._partitions.complete_fetches,
            load_bytes=self._config.transaction_state_log_load_buffer_size,
            commit_timeout_ms=COMMIT_TIMEOUT_MS,
        )

    async def _give_producer_id(self, partition: TransactionPartitionState, on_id: Callable[[int], None]) -> None:
        try:
            producer_id = await self._next_producer_id()
        except KafkaError:
            # Whoever wanted it comes again.
            return
        partition.run_when_loaded(lambda _: on_id(producer_id))
