"""An operator who changes a cluster under load and faults: reassignments, elections, drains, configurations.

Reassignments go to other nodes and to other replication factors, are replaced while they go on, and are cancelled.
What is asked need not come true: it is the cluster that has to stay right.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Any, Final

from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i32Timedelta

from ....client.connection import Connection, connect
from ....protocol.errors import CorruptData, ErrorCode, KafkaError
from ....quorum.configs.own_keys import BROKER_DRAINED, DRAINED, DRAINED_UNTIL_RESTART
from ....quorum.metadata.image import PartitionRegistration
from .loop import SimulatedLoop
from .machine import BROKER_PORT, host_of
from .profiles import Profile
from .simulated_client import SimulatedClient

# Between two visits, for a share of one, and between two requests of a visit, on average: a new kind slows none down.
_SHARE_S: Final = 24.0
_NEXT_S: Final = 0.1
_RETRY_S: Final = 0.3
_TIMEOUT_MS: Final = 5_000
_TIMEOUT: Final = i32Timedelta.parse(timedelta(milliseconds=_TIMEOUT_MS))
_PREFERRED: Final = i8(0)
_TOPIC: Final = i8(2)
_BROKER: Final = i8(4)
_SET: Final = i8(0)
# Never one: a single replica that loses power loses what was acknowledged, and nothing else is promised.
_FACTORS: Final = (2, 3, 3, 4)
_MIN_ISRS: Final = ("1", "2", "2", "3")
_SEGMENT_SIZES: Final = ("2000", "10000", "1000000")
# With the least a log has many segments that are not synced yet, however little is written.
_SEGMENT_AGES_MS: Final = ("200", "1000", "604800000")
_RETENTIONS: Final = ("1000", "10000", "30000", "-1")
# How often each is done, of 28 requests.
_SHARES: Final = {
    "reassignment": 8,
    "cancelled-reassignment": 3,
    "preferred-election": 4,
    "moved-leader": 2,
    "min-isr": 2,
    "segment-size": 2,
    "segment-age": 2,
    "retention": 1,
    "drain": 2,
    "undrain": 2,
}


class Operator(SimulatedClient):
    """`start` it, and `settle` once all is healed. `counts` tells how often each operation was answered."""

    def __init__(
        self,
        node_ids: Sequence[int],
        topics: Mapping[str, int],
        *,
        min_isr: str,
        has_retention: Callable[[str], bool],
        registration: Callable[[str, int], PartitionRegistration | None],
        profile: Profile,
        loop: SimulatedLoop,
        random: Random,
        trace: Callable[[str], None],
    ) -> None:
        """`topics` have so many partitions each; `min_isr` is what all have in the end; `registration` tells what the
        metadata have of a partition."""
        super().__init__("the operator", "10.0.3.2", loop=loop, random=random)
        self.counts: Counter[str] = Counter()
        self._node_ids = tuple(node_ids)
        self._topics = dict(topics)
        self._min_isr = min_isr
        self._has_retention = has_retention
        self._registration = registration
        self._trace = trace
        self._drain_count = 0
        self._weights = {kind: share * profile.weight(kind) for kind, share in _SHARES.items()}

    @property
    def is_busy(self) -> bool:
        """Whether it does anything at all."""
        return any(self._weights.values())

    def start(self) -> None:
        if self.is_busy:
            super().start()

    async def _run(self) -> None:
        kinds = [kind for kind, weight in self._weights.items() if weight]
        weights = [self._weights[kind] for kind in kinds]
        pace_s = _SHARE_S / sum(weights)
        while not self.is_stopping:
            await asyncio.sleep(self._random.expovariate(1 / pace_s))
            try:
                async with await self._connect() as connection:
                    for _ in range(self._random.choice((1, 1, 2, 3))):
                        await self._act(connection, self._random.choices(kinds, weights)[0])
                        await asyncio.sleep(self._random.expovariate(1 / _NEXT_S))
            except (KafkaError, ConnectionError, TimeoutError, CorruptData) as error:
                self._trace(f"operator failed {type(error).__name__}")

    async def _connect(self) -> Connection:
        node_id = self._random.choice(self._node_ids)
        return await connect(host_of(node_id), BROKER_PORT, client_id="operator", timeout_ms=_TIMEOUT_MS)

    async def _act(self, connection: Connection, kind: str) -> None:
        """Raises as `Connection.call`."""
        topic = self._random.choice(sorted(self._topics))
        index = self._random.randrange(self._topics[topic])
        match kind:
            case "reassignment":
                code = await self._reassign(connection, topic, index, self._replicas())
            case "cancelled-reassignment":
                code = await self._reassign(connection, topic, index, None)
            case "preferred-election":
                code = await self._elect(connection, topic, index)
            case "moved-leader":
                code = await self._move_leader(connection, topic, index)
            case "drain" | "undrain":
                code = await self._drain(self._random.choice(self._node_ids), is_drained=kind == "drain")
            case "min-isr":
                code = await self._configure(connection, topic, "min.insync.replicas", self._random.choice(_MIN_ISRS))
            case "segment-size":
                size = self._random.choice(_SEGMENT_SIZES)
                code = await self._configure(connection, topic, "internal.segment.bytes", size)
            case "segment-age":
                age_ms = self._random.choice(_SEGMENT_AGES_MS)
                code = await self._configure(connection, topic, "segment.ms", age_ms)
            case "retention":
                if not self._has_retention(topic):
                    return
                code = await self._configure(connection, topic, "retention.bytes", self._random.choice(_RETENTIONS))
            case _:
                raise AssertionError(kind)
        self.counts[kind if code == 0 else f"{kind} refused"] += 1

    def _replicas(self) -> tuple[int, ...]:
        count = min(self._random.choice(_FACTORS), len(self._node_ids))
        return tuple(self._random.sample(self._node_ids, count))

    async def _reassign(
        self, connection: Connection, topic: str, index: int, replicas: tuple[int, ...] | None
    ) -> int:  # fmt: skip
        """To these nodes in this order, or, with None, back to what it was."""
        self._trace(f"operator reassigns {topic}-{index} to {replicas}")
        wanted = None if replicas is None else tuple(map(BrokerId, replicas))
        partition = ReassignablePartition(partition_index=i32(index), replicas=wanted)
        answer: Any = await connection.call(
            AlterPartitionReassignmentsRequest(
                timeout=_TIMEOUT, topics=(ReassignableTopic(name=TopicName(topic), partitions=(partition,)),)
            )
        )
        return int(answer.error_code) or int(answer.responses[0].partitions[0].error_code)

    async def _elect(self, connection: Connection, topic: str, index: int) -> int:
        self._trace(f"operator elects the preferred leader of {topic}-{index}")
        wanted = TopicPartitions(topic=TopicName(topic), partitions=(i32(index),))
        answer: Any = await connection.call(
            ElectLeadersRequest(election_type=_PREFERRED, topic_partitions=(wanted,), timeout=_TIMEOUT)
        )
        results = [one for some in answer.replica_election_results for one in some.partition_result]
        return int(answer.error_code) or (int(results[0].error_code) if results else 0)

    async def _move_leader(self, connection: Connection, topic: str, index: int) -> int:
        """To another of its replicas, which is made the preferred one."""
        known = self._registration(topic, index)
        others = () if known is None else [replica for replica in known.replicas if replica != known.leader]
        if known is None or not others:
            return int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        first = self._random.choice(others)
        rest = tuple(replica for replica in known.replicas if replica != first)
        code = await self._reassign(connection, topic, index, (first, *rest))
        return code or await self._elect(connection, topic, index)

    async def _drain(self, node_id: int, *, is_drained: bool) -> int:
        """By way of the broker itself, as Kafka's tools do."""
        async with await connect(
            host_of(node_id), BROKER_PORT, client_id="operator", timeout_ms=_TIMEOUT_MS
        ) as connection:
            value = "false"
            if is_drained:
                # In turns, without a draw: one that lasts, and one that ends when the node has been restarted.
                value = DRAINED_UNTIL_RESTART if self._drain_count % 2 else DRAINED
                self._drain_count += 1
            return await self._configure(connection, str(node_id), BROKER_DRAINED, value, kind=_BROKER)

    async def _configure(self, connection: Connection, of: str, name: str, value: str, kind: i8 = _TOPIC) -> int:
        self._trace(f"operator sets {of} {name}={value}")
        config = AlterableConfig(name=name, config_operation=_SET, value=value)
        resource = AlterConfigsResource(resource_type=kind, resource_name=of, configs=(config,))
        answer: Any = await connection.call(
            IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        )  # fmt: skip
        return int(answer.responses[0].error_code)

    async def settle(self) -> None:
        """Every topic can be written with the replicas that any reassignment left it."""
        for topic in sorted(self._topics):
            await self.set_config(topic, "min.insync.replicas", self._min_isr)

    async def set_config(self, topic: str, name: str, value: str) -> None:
        """Until it is set: the topic may be made later."""
        while True:
            try:
                async with await self._connect() as connection:
                    if await self._configure(connection, topic, name, value) == 0:
                        return
            except (KafkaError, ConnectionError, TimeoutError, CorruptData) as error:
                self._trace(f"operator failed {type(error).__name__}")
            await asyncio.sleep(_RETRY_S)
