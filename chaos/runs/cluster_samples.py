"""What a cluster of Penstock looks like while it is broken: leaders, epochs, ISRs, ends, told by its nodes over HTTP.

Nodes are asked directly, not over the links that are broken: what a node that is cut off says of itself is what is
wanted. A node that is paused or dead is left out of a sample, and so is an answer that takes too long. Where a leader
that is cut off would have to be asked, there are leaders and ISRs, and no ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

import msgspec

from ...client import clock
from ...client.admin import AdminError, AsyncAdmin
from ...protocol.rest.partitions import ReplicaStatusList
from ...protocol.rest.quorum import Quorum
from ...protocol.rest.topic_overview import TopicOverviewList

INTERVAL_S: Final = 0.5
_ANSWER_S: Final = 0.4
_ENCODER: Final = msgspec.json.Encoder()

_T = TypeVar("_T")


class PartitionSample(msgspec.Struct, omit_defaults=True):
    """By the newest metadata among the nodes that answered; `ends` are log end offsets by node.

    `hw` is None where the leader did not answer in time, and `ends` lack the nodes that did not.
    """

    leader: int | None
    epoch: int
    isr: list[int]
    hw: int | None = None
    ends: dict[str, int] = msgspec.field(default_factory=dict)


class ClusterSample(msgspec.Struct):
    """`time` as in the history, in nanoseconds; `nodes` are `up`, `paused` or `down`; keys of partitions as `t-0`."""

    time: int
    controller: int | None
    nodes: dict[str, str]
    partitions: dict[str, PartitionSample]


class ClusterSamples:
    """Writes a sample to the file at `path` every half second, from `__enter__` to `__exit__`.

    `admins` are the HTTP addresses of nodes by id, asked anew for each sample, as is `state` of a node.
    """

    def __init__(
        self,
        path: Path,
        *,
        admins: Callable[[], Mapping[int, str]],
        state: Callable[[int], str],
        topics: Sequence[str],
        start_ns: int,
    ) -> None:
        self._path = path
        self._admins = admins
        self._state = state
        self._topics = topics
        self._start_ns = start_ns
        self._is_over = False
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="samples")
        self._done: Future[None] | None = None

    def __enter__(self) -> Self:
        self._done = self._pool.submit(asyncio.run, self._run())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        self._pool.shutdown()
        if self._done is not None and error is None:
            self._done.result()

    async def _run(self) -> None:
        clients: dict[int, tuple[str, AsyncAdmin]] = {}
        try:
            with self._path.open("ab", buffering=0) as file:
                while not self._is_over:
                    begun_s = clock.monotonic_s()
                    sample = await self._sample(clients)
                    file.write(_ENCODER.encode(sample) + b"\n")
                    await asyncio.sleep(max(0.0, begun_s + INTERVAL_S - clock.monotonic_s()))
        finally:
            for _, client in clients.values():
                await client.__aexit__(None, None, None)

    async def _sample(self, clients: dict[int, tuple[str, AsyncAdmin]]) -> ClusterSample:
        time_ns = clock.monotonic_ns() - self._start_ns
        states = {}
        running = {}
        for node, address in self._admins().items():
            states[str(node)] = self._state(node)
            if states[str(node)] == "up":
                if node not in clients or clients[node][0] != address:
                    clients[node] = address, AsyncAdmin(address, timeout_s=_ANSWER_S)
                running[node] = clients[node][1]
        answers = await asyncio.gather(*(self._ask(client) for client in running.values()))
        partitions: dict[str, PartitionSample] = {}
        versions: dict[str, tuple[int, int]] = {}
        controller: tuple[int, int | None] = -1, None
        for answer in answers:
            if answer.quorum is not None and answer.quorum.leader_id is not None:
                controller = max(controller, (answer.quorum.epoch, answer.quorum.leader_id))
            for overview in answer.overviews:
                _take_overview(partitions, versions, overview)
        # After all of them: what leaders and replicas tell belongs to the newest metadata.
        for answer in answers:
            for overview in answer.offsets:
                _take_high_watermarks(partitions, overview)
            for statuses in answer.statuses:
                _take_ends(partitions, statuses)
        return ClusterSample(time_ns, controller[1], states, partitions)

    async def _ask(self, client: AsyncAdmin) -> _Answers:
        """Each question for itself: one that has to wait for a node that is cut off takes only its own answer away.
        What a node has in its own metadata it answers at once."""
        quorum, overviews, offsets, statuses = await asyncio.gather(
            _answered(client.get_quorum()),
            self._of_topics(lambda topic: client.list_topic_overviews(topic=topic, offsets=False)),
            self._of_topics(lambda topic: client.list_topic_overviews(topic=topic)),
            self._of_topics(client.list_replica_statuses_of_topic),
        )
        return _Answers(quorum, overviews, offsets, statuses)

    async def _of_topics(self, ask: Callable[[str], Awaitable[_T]]) -> list[_T]:
        answers = await asyncio.gather(*(_answered(ask(topic)) for topic in self._topics))
        return [answer for answer in answers if answer is not None]


@dataclass(frozen=True, slots=True)
class _Answers:
    """Of one node, as far as it answered in time. `offsets` are overviews with what leaders told."""

    quorum: Quorum | None
    overviews: Sequence[TopicOverviewList]
    offsets: Sequence[TopicOverviewList]
    statuses: Sequence[ReplicaStatusList]


async def _answered(question: Awaitable[_T]) -> _T | None:
    try:
        async with asyncio.timeout(_ANSWER_S):
            return await question
    except (TimeoutError, AdminError):
        return None


def _take_overview(
    partitions: dict[str, PartitionSample], versions: dict[str, tuple[int, int]], overview: TopicOverviewList
) -> None:
    """The newest metadata of each partition win, by leader epoch and partition epoch: a node that is cut off has old
    ones."""
    for topic in overview.topics:
        for told in topic.partitions or ():
            key = f"{topic.name}-{told.partition}"
            version = told.leader_epoch, told.partition_epoch
            if version > versions.get(key, (-1, -1)):
                versions[key] = version
                leader = told.leader if told.leader is not None and told.leader >= 0 else None
                partitions[key] = PartitionSample(leader, told.leader_epoch, list(told.isr))


def _take_high_watermarks(partitions: dict[str, PartitionSample], overview: TopicOverviewList) -> None:
    for topic in overview.topics:
        for told in topic.partitions or ():
            sample = partitions.get(f"{topic.name}-{told.partition}")
            if sample is not None and told.leader_epoch == sample.epoch and told.high_watermark is not None:
                sample.hw = max(sample.hw or 0, told.high_watermark)


def _take_ends(partitions: dict[str, PartitionSample], statuses: ReplicaStatusList) -> None:
    for status in statuses.data:
        sample = partitions.get(f"{status.topic_name}-{status.partition_id}")
        if sample is not None and status.log_end_offset is not None:
            known = sample.ends.get(str(status.broker_id), -1)
            sample.ends[str(status.broker_id)] = max(known, status.log_end_offset)


def read_samples(path: Path) -> list[ClusterSample]:
    """A line that is cut off at the end is left out."""
    decode = msgspec.json.Decoder(ClusterSample).decode
    data = path.read_bytes()
    return [decode(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]


def wire_state(is_running: bool, is_paused: bool) -> str:
    return "down" if not is_running else "paused" if is_paused else "up"
