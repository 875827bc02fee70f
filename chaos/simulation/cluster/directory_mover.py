"""An operator who moves replicas between the log directories of their nodes: AlterReplicaLogDirs (KIP-113).

Any replica goes to any directory, now and then several at once, and is sent elsewhere, or back, while it is on its way.
All of that may be throttled, at a rate that changes meanwhile. What is asked need not come true while nodes crash: in
the end every move is over, one way or another.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, Final

from kio.schema.alter_replica_log_dirs.v2.request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32

from ....client.connection import connect
from ....protocol.errors import CorruptData, KafkaError
from ....quorum.metadata.image import PartitionRegistration
from .loop import SimulatedLoop
from .machine import BROKER_PORT, host_of
from .profiles import Profile
from .simulated_client import SimulatedClient

_MOVE: Final = "directory-move"
_THROTTLE: Final = "move-throttle"
# Between two moves on average, and between two rates.
_PACES_S: Final = {_MOVE: 1.5, _THROTTLE: 6.0}
_RATE_KEY: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
# None is no throttle. At the least a log of these runs takes some seconds.
_RATES: Final = ("0", "2000", "20000", None, None)
_BROKER: Final = i8(4)
_ALL_BROKERS: Final = ""
_SET, _DELETE = i8(0), i8(1)
_RETRY_S: Final = 0.3
_TIMEOUT_MS: Final = 5_000
# That the same replicas are sent somewhere else, before or after they have arrived: a move takes about a second.
_AGAIN_CHANCE: Final = 0.35
_AGAIN_S: Final = (0.0, 0.05, 0.6, 1.2)
# That a node is asked for what it may not have.
_ANY_NODE_CHANCE: Final = 0.1


class DirectoryMover(SimulatedClient):
    """`start` it, and `settle` once all is healed. `counts` tells how often what was asked was answered, of moves by
    partition."""

    def __init__(
        self,
        node_ids: Sequence[int],
        directories: Sequence[str],
        places: Sequence[tuple[str, int]],
        *,
        registration: Callable[[str, int], PartitionRegistration | None],
        profile: Profile,
        loop: SimulatedLoop,
        random: Random,
        trace: Callable[[str], None],
    ) -> None:
        """`directories` are those of each node, `places` the partitions."""
        super().__init__("the mover", "10.0.3.3", loop=loop, random=random)
        self._is_running = False
        self.counts: Counter[str] = Counter()
        self._node_ids = tuple(node_ids)
        self._directories = tuple(directories)
        self._places = tuple(places)
        self._registration = registration
        self._rates_per_s = {kind: profile.weight(kind) / pace_s for kind, pace_s in _PACES_S.items()}
        self._trace = trace

    @property
    def is_busy(self) -> bool:
        """Whether it does anything at all."""
        return bool(self._rates_per_s[_MOVE]) and len(self._directories) > 1

    def start(self) -> None:
        if self.is_busy:
            super().start()

    async def _run(self) -> None:
        self._is_running = True
        try:
            await self._ask()
        finally:
            self._is_running = False

    async def _ask(self) -> None:
        random = self._random
        kinds, rates = list(self._rates_per_s), list(self._rates_per_s.values())
        while True:
            await asyncio.sleep(random.expovariate(sum(rates)))
            if self.is_stopping:
                break
            if random.choices(kinds, rates)[0] == _THROTTLE:
                await self._throttle(random.choice(_RATES))
                continue
            places = random.sample(self._places, min(random.choice((1, 1, 1, 2, 4)), len(self._places)))
            node_id = self._node_with(*places[0])
            await self._move(node_id, places)
            while random.random() < _AGAIN_CHANCE and not self.is_stopping:
                await asyncio.sleep(random.choice(_AGAIN_S) * random.random())
                await self._move(node_id, places)

    def _node_with(self, topic: str, index: int) -> int:
        registration = self._registration(topic, index)
        if registration is None or self._random.random() < _ANY_NODE_CHANCE:
            return self._random.choice(self._node_ids)
        return self._random.choice(registration.replicas)

    async def _move(self, node_id: int, places: Iterable[tuple[str, int]]) -> None:
        """One request, in which each may go to a directory of its own."""
        wanted = [(self._random.choice(self._directories), topic, index) for topic, index in places]
        self._trace(f"mover has node {node_id} move {wanted}")
        request = AlterReplicaLogDirsRequest(
            dirs=tuple(
                AlterReplicaLogDir(
                    path=path, topics=(AlterReplicaLogDirTopic(name=TopicName(topic), partitions=(i32(index),)),)
                )
                for path, topic, index in wanted
            )
        )
        answer = await self._call(node_id, request)
        for result in () if answer is None else answer.results:
            for partition in result.partitions:
                self._count(_MOVE, int(partition.error_code))

    async def _throttle(self, rate: str | None) -> bool:
        """All nodes, by what brokers have by default. Whether that was answered without an error."""
        self._trace(f"mover sets {_RATE_KEY}={rate}")
        operation = _DELETE if rate is None else _SET
        config = AlterableConfig(name=_RATE_KEY, config_operation=operation, value=rate)
        resource = AlterConfigsResource(resource_type=_BROKER, resource_name=_ALL_BROKERS, configs=(config,))
        answer = await self._call(
            self._random.choice(self._node_ids),
            IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False),
        )
        if answer is None:
            return False
        code = int(answer.responses[0].error_code)
        self._count(_THROTTLE, code)
        return code == 0

    async def settle(self) -> None:
        """Nothing is throttled any more."""
        while self.is_busy:
            # What it asks for now may be another throttle.
            if not self._is_running and await self._throttle(None):
                return
            await asyncio.sleep(_RETRY_S)

    async def _call(self, node_id: int, request: Any) -> Any:
        """None when there was no answer."""
        try:
            async with await connect(
                host_of(node_id), BROKER_PORT, client_id="mover", timeout_ms=_TIMEOUT_MS
            ) as connection:
                return await connection.call(request)
        except (KafkaError, ConnectionError, TimeoutError, CorruptData) as error:
            self._trace(f"mover failed {type(error).__name__}")
            return None

    def _count(self, kind: str, code: int) -> None:
        self.counts[kind if code == 0 else f"{kind} refused"] += 1
