"""The coordinators of transactions on this node: where they keep their state, and which of them an id is of.

Kafka: `TransactionCoordinator`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from ...protocol.errors import ErrorCode, KafkaError
from ...quorum.metadata.delta import MetadataDelta
from ...quorum.metadata.features import TRANSACTION_VERSION
from ...quorum.metadata.image import MetadataImage
from ...quorum.raft.recent_times import RecentTimes
from ..configuration.node_config import REQUEST_TIMEOUT_MS
from ..configuration.transaction_config import TransactionConfig
from ..coordination.effects import Effect
from ..replicas.partition import Partition
from ..replicas.replica_manager import ReplicaManager
from ..timing.runtime import Runtime
from .coordinator_context import CoordinatorContext, WaitingRequest
from .coordinator_runtime import CoordinatorRuntime
from .marker_sender import MarkerSender, Peers

if TYPE_CHECKING:
    from ..transactions.markers import MarkerOrder
    from ..transactions.transaction import TransactionPartition
    from ..transactions.transaction_shard import TransactionShard

T = TypeVar("T")

TRANSACTIONS_TOPIC: Final = "__transaction_state"
TransactionPartitionState: TypeAlias = "CoordinatorContext[TransactionShard]"


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
        self.load_times = RecentTimes()
        """Of partitions that were loaded."""
        self._markers = MarkerSender(peers, lambda: partitions.image, runtime.loop)
        self._tasks: set[asyncio.Task[None]] = set()
        self.coordinators: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(
            TRANSACTIONS_TOPIC, partitions.node_id, lambda: partitions.image, self._coordinate, loop=runtime.loop
        )

    @property
    def unled_marker_count(self) -> int:
        return self._markers.unled_count

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
        from ..transactions.transaction_shard import ProducerIdNeededError

        partition = self.get(transactional_id)
        waiting = WaitingRequest(respond, answer_error)
        try:
            _ask(partition, operation, None, waiting)
        except ProducerIdNeededError:
            self.start(self._ask_again(partition, operation, waiting))

    async def _ask_again(
        self,
        partition: TransactionPartitionState,
        operation: Callable[[TransactionShard, int | None], T],
        waiting: WaitingRequest[T],
    ) -> None:
        try:
            producer_id = await self._next_producer_id()
            # It may have gone meanwhile.
            _ask(partition, operation, producer_id, waiting)
        except KafkaError as error:
            waiting.respond(waiting.answer_error(error.code))
        except asyncio.CancelledError:
            waiting.respond(waiting.answer_error(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            raise

    def start(self, work: Awaitable[None]) -> None:
        """Does something that is given up when the node stops."""
        task = asyncio.ensure_future(work, loop=self._runtime.loop)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _coordinate(self, hosted: Partition) -> TransactionPartitionState:
        # A node that coordinates no transaction starts without loading it.
        from ..transactions.transaction_shard import TransactionShard

        def make_shard(partition: TransactionPartitionState) -> TransactionShard:
            return TransactionShard(
                partition,
                config=self._config,
                feature_level=lambda: self._partitions.image.features.get(TRANSACTION_VERSION, 0),
                now_ms=self._runtime.steady_clock_ms,
            )

        return CoordinatorContext(
            hosted,
            make_shard,
            replies=self._partitions.produces,
            runtime=self._runtime,
            on_append=self._partitions.complete_fetches,
            load_bytes=self._config.transaction_state_log_load_buffer_size,
            commit_timeout_ms=REQUEST_TIMEOUT_MS,
            load_times=self.load_times,
            apply_effect=self._apply_effect,
        )

    def _apply_effect(self, partition: TransactionPartitionState, effect: Effect) -> None:
        from ..transactions.effects import AwaitCommit, CancelMarkers, RequestProducerId, WriteMarkers

        match effect:
            case AwaitCommit(records):
                partition.when_committed(lambda: partition.run_when_loaded(lambda shard: shard.on_committed(records)))
            case WriteMarkers(order):
                self._markers.write(order, _MarkerEvents(partition))
            case CancelMarkers(order):
                self._markers.cancel(order)
            case RequestProducerId(transactional_id):
                self.start(self._give_producer_id(partition, transactional_id))
            case _:
                raise AssertionError(f"nothing applies {effect!r}")

    async def _give_producer_id(self, partition: TransactionPartitionState, transactional_id: str) -> None:
        try:
            producer_id = await self._next_producer_id()
        except KafkaError:
            # The next check of timeouts asks again.
            return
        partition.run_when_loaded(lambda shard: shard.on_producer_id(transactional_id, producer_id))


class _MarkerEvents:
    """`MarkerReports` of one partition, as events of its shard."""

    def __init__(self, partition: TransactionPartitionState) -> None:
        self._partition = partition

    def on_written(self, order: MarkerOrder, partitions: Collection[TransactionPartition]) -> None:
        self._partition.run_when_loaded(lambda shard: shard.on_markers_written(order, partitions))

    def on_fenced(self, order: MarkerOrder) -> None:
        self._partition.run_when_loaded(lambda shard: shard.on_markers_fenced(order))


def _ask(
    partition: TransactionPartitionState,
    operation: Callable[[TransactionShard, int | None], T],
    new_producer_id: int | None,
    waiting: WaitingRequest[T],
) -> None:
    """Raises KafkaError, ProducerIdNeededError."""
    with partition.event() as shard:
        shard.effects.reply(waiting, operation(shard, new_producer_id))
