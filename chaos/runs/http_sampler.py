"""Samples of a cluster of Penstock: leaders, epochs, ISRs, high watermarks and ends, told by its nodes over HTTP.

Nodes are asked directly, not over the links that are broken: what a node that is cut off says of itself is what is
wanted. A node that is paused or dead is left out of a sample, and so is an answer that takes too long. Where a leader
that is cut off would have to be asked, there are leaders and ISRs, and no ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from ...client.admin import AdminError, AsyncAdmin
from ...protocol.rest.partitions import ReplicaStatusList
from ...protocol.rest.quorum import Quorum
from ...protocol.rest.topic_overview import TopicOverviewList
from ..histories.cluster_sample import ClusterSample, PartitionSample
from .sampler import ANSWER_S, Sampler

_T = TypeVar("_T")


class HttpSampler(Sampler):
    """`admins` are the HTTP addresses of nodes by id, asked anew for each sample, as is `state` of a node."""

    def __init__(
        self,
        path: Path,
        *,
        admins: Callable[[], Mapping[int, str]],
        state: Callable[[int], str],
        topics: Sequence[str],
        start_ns: int,
    ) -> None:
        super().__init__(path, start_ns=start_ns)
        self._admins = admins
        self._state = state
        self._topics = topics
        self._clients: dict[int, tuple[str, AsyncAdmin]] = {}

    async def close(self) -> None:
        for _, client in self._clients.values():
            await client.__aexit__(None, None, None)

    async def sample(self, time_ns: int) -> ClusterSample:
        clients = self._clients
        states = {}
        running = {}
        for node, address in self._admins().items():
            states[str(node)] = self._state(node)
            if states[str(node)] == "up":
                if node not in clients or clients[node][0] != address:
                    if node in clients:
                        # One of its id has left, and another one joined.
                        await clients[node][1].__aexit__(None, None, None)
                    clients[node] = address, AsyncAdmin(address, timeout_s=ANSWER_S)
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


class _Answers(Struct, frozen=True):
    """Of one node, as far as it answered in time. `offsets` are overviews with what leaders told."""

    quorum: Quorum | None
    overviews: Sequence[TopicOverviewList]
    offsets: Sequence[TopicOverviewList]
    statuses: Sequence[ReplicaStatusList]


async def _answered(question: Awaitable[_T]) -> _T | None:
    try:
        async with asyncio.timeout(ANSWER_S):
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
