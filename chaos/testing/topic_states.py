"""What nodes say of topics, and topics made: asked over the protocol at addresses that no fault of a link concerns.

Every call runs a loop of its own in a thread, so that it can be made where another loop runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, Final, TypeAlias, TypeVar

from kio.schema.create_topics.v7.request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v13.response import MetadataResponse
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32, i32Timedelta
from msgspec import Struct

from ...client.connection import connect
from ...local.errors import ClusterError
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ..faults.request_faults import HARNESS

Address: TypeAlias = tuple[str, int]
T = TypeVar("T")

_ANSWER_S: Final = 2.0
_CREATE_S: Final = 30.0


class PartitionState(Struct, frozen=True, kw_only=True):
    """As one node knows it. `leader` is None while the partition has no leader."""

    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def is_in_sync(self) -> bool:
        return self.leader is not None and set(self.isr) == set(self.replicas)


class TopicState(Struct, frozen=True, kw_only=True):
    """`topic_id` has 32 hexadecimal digits; `partitions` are by index, none where the topic is not known."""

    topic_id: str | None
    partitions: Mapping[int, PartitionState]


_UNKNOWN: Final = TopicState(topic_id=None, partitions={})


class TopicStates:
    """Safe to share between threads, which wait for each other."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="topic-states")

    def close(self) -> None:
        self._pool.shutdown()

    def of_each(self, addresses: Mapping[int, Address], topic: str) -> dict[int, TopicState]:
        """What each node says; those that do not answer are left out."""

        async def ask_all() -> list[TopicState | None]:
            return await asyncio.gather(*(_describe(address, topic) for address in addresses.values()))

        answers = zip(addresses, self._run(ask_all()), strict=True)
        return {node_id: state for node_id, state in answers if state is not None}

    def latest(self, addresses: Mapping[int, Address], topic: str) -> TopicState:
        """Of each partition what the node says that knows the highest leader epoch."""
        topic_id, partitions = None, dict[int, PartitionState]()
        for state in self.of_each(addresses, topic).values():
            topic_id = topic_id or state.topic_id
            for index, told in state.partitions.items():
                known = partitions.get(index)
                if known is None or told.leader_epoch > known.leader_epoch:
                    partitions[index] = told
        return TopicState(topic_id=topic_id, partitions=partitions)

    def create(
        self, addresses: Sequence[Address], topic: str, *, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None:
        """Raises ClusterError with the reason of the cluster, or when no node answers."""
        self._run(create_topic(addresses, topic, partitions=partitions, replicas=replicas, configs=configs))

    def delete(self, addresses: Sequence[Address], topics: Sequence[str]) -> None:
        """Begins it; a topic that is gone already is left as it is. Raises ClusterError when no node answers."""
        states = tuple(DeleteTopicState(name=TopicName(topic), topic_id=None) for topic in topics)
        self._run(_ask_first(addresses, DeleteTopicsRequest(topics=states, timeout=_milliseconds(_CREATE_S))))

    def _run(self, asking: Coroutine[Any, Any, T]) -> T:
        return self._pool.submit(asyncio.run, asking).result()


async def create_topic(
    addresses: Sequence[Address], topic: str, *, partitions: int, replicas: int, configs: Mapping[str, str]
) -> None:
    """Raises ClusterError with the reason of the cluster, or when no node answers."""
    request = CreateTopicsRequest(
        topics=(
            CreatableTopic(
                name=TopicName(topic),
                num_partitions=i32(partitions),
                replication_factor=i16(replicas),
                assignments=(),
                configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in configs.items()),
            ),
        ),
        timeout=_milliseconds(_CREATE_S),
    )
    answer = await _ask_first(addresses, request)
    assert isinstance(answer, CreateTopicsResponse)
    (created,) = answer.topics
    if created.error_code:
        code = ErrorCode(int(created.error_code))
        raise ClusterError(f"topic {topic} was not created: {code.name}: {created.error_message or ''}")


async def _describe(address: Address, topic: str) -> TopicState | None:
    question = MetadataRequest(
        topics=(MetadataRequestTopic(topic_id=None, name=TopicName(topic)),),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    try:
        async with await connect(*address, client_id=HARNESS, timeout_ms=round(_ANSWER_S * 1000)) as connection:
            answer = await connection.call(question)
    except (OSError, CorruptData, KafkaError):
        return None
    assert isinstance(answer, MetadataResponse)
    (told,) = answer.topics
    if told.error_code:
        return _UNKNOWN
    return TopicState(
        topic_id=None if told.topic_id is None else told.topic_id.hex,
        partitions={
            int(one.partition_index): PartitionState(
                leader=None if one.leader_id < 0 else int(one.leader_id),
                leader_epoch=int(one.leader_epoch),
                replicas=tuple(map(int, one.replica_nodes)),
                isr=tuple(map(int, one.isr_nodes)),
            )
            for one in told.partitions
        },
    )


async def _ask_first(addresses: Sequence[Address], request: Any) -> object:
    """Of the nodes, the first that answers."""
    failures = []
    for host, port in addresses:
        try:
            async with await connect(host, port, client_id=HARNESS, timeout_ms=round(_CREATE_S * 1000)) as connection:
                return await connection.call(request)
        except (OSError, CorruptData, KafkaError) as error:
            failures.append(f"{host}:{port}: {error}")
    raise ClusterError(f"no node answers: {'; '.join(failures) or 'none is running'}")


def _milliseconds(seconds: float) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(seconds=seconds))
