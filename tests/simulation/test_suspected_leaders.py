"""Clients that ask who leads, right after a leader has gone, or seems to have gone (decision 29)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from kio.schema.describe_topic_partitions.v0.request import DescribeTopicPartitionsRequest, TopicRequest
from kio.schema.describe_topic_partitions.v0.response import DescribeTopicPartitionsResponse
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse
from kio.schema.metadata.v13.request import MetadataRequestTopic
from kio.schema.metadata.v13.response import MetadataResponse
from kio.schema.types import TopicName
from kio.static.primitive import i8
from simulated_nodes import NODES, SETTINGS, TOPIC, SimulatedNodes, simulated_nodes

from penstock.broker.cluster.rules.recent_departures import LISTED_MS
from penstock.broker.cluster.rules.suspicions import Suspicions
from penstock.chaos.simulation.cluster.machine import host_of
from penstock.client.connection import Connection
from penstock.protocol.ids import NodeId
from penstock.protocol.metadata import MetadataRequest

HOLD_S: Final = 0.25
# On top of that: the way there and back.
WAY_S: Final = 0.1
LEADER, ASKED = 1, 2
CLIENTS: Final = 1_000
WHO_LEADS: Final = MetadataRequest(
    topics=(MetadataRequestTopic(name=TopicName(TOPIC), topic_id=None),),
    allow_auto_topic_creation=False,
    include_topic_authorized_operations=False,
)


async def leader_by_metadata(connection: Connection) -> int:
    answer = await connection.call(WHO_LEADS)
    assert isinstance(answer, MetadataResponse)
    return answer.topics[0].partitions[0].leader_id


async def listed(connection: Connection) -> set[int]:
    answer = await connection.call(WHO_LEADS)
    assert isinstance(answer, MetadataResponse)
    return {int(broker.node_id) for broker in answer.brokers}


async def leader_by_description(connection: Connection) -> int:
    answer = await connection.call(DescribeTopicPartitionsRequest(topics=(TopicRequest(name=TopicName(TOPIC)),)))
    assert isinstance(answer, DescribeTopicPartitionsResponse)
    return answer.topics[0].partitions[0].leader_id


def ask_after(nodes: SimulatedNodes, event: str, *, count: int = 1) -> list[tuple[int, float]]:
    """The leaders that so many clients are told by a node that is not the leader, and after how many seconds each.

    They are connected before, as clients are, and ask once the node has seen the event.
    """

    async def connect() -> list[Connection]:
        return [await nodes._connect(ASKED) for _ in range(count)]

    connections = nodes.ask(connect)
    for connection in connections:
        assert nodes.ask(partial(leader_by_metadata, connection)) == LEADER
    begin(nodes, event)
    nodes.wait(lambda: LEADER in suspicions(nodes), "suspicion")

    async def ask(connection: Connection) -> tuple[int, float]:
        start_s = nodes.loop.time()
        async with connection:
            return await leader_by_metadata(connection), nodes.loop.time() - start_s

    async def ask_all() -> list[tuple[int, float]]:
        return list(await asyncio.gather(*map(ask, connections)))

    return nodes.ask(ask_all)


def begin(nodes: SimulatedNodes, event: str) -> None:
    if event == "kill":
        nodes.kill(LEADER)
    elif event == "partition":
        nodes.isolate(LEADER)
    else:
        assert event == "broken connections"
        nodes.network.break_connections(host_of(LEADER), host_of(ASKED))


def suspicions(nodes: SimulatedNodes) -> Suspicions:
    node = nodes.machines[ASKED].node
    assert node is not None
    return node._suspected.rules


def is_fenced(nodes: SimulatedNodes, node_id: int) -> bool | None:
    """By the metadata of the node that is asked; None while it has none."""
    node = nodes.machines[ASKED].node
    broker = None if node is None else node._metadata.image.brokers.get(NodeId(node_id))
    return None if broker is None else broker.is_fenced


def test_clients_are_not_sent_to_a_leader_that_was_killed() -> None:
    with simulated_nodes(2) as nodes:
        nodes.wait_leader(LEADER)
        ((leader, seconds),) = ask_after(nodes, "kill")
        assert leader in set(NODES) - {LEADER}
        assert seconds <= HOLD_S + WAY_S


def test_a_thousand_clients_that_ask_at_once_are_told_the_next_leader() -> None:
    with simulated_nodes(2) as nodes:
        nodes.wait_leader(LEADER)
        answers = ask_after(nodes, "kill", count=CLIENTS)
        assert len(answers) == CLIENTS
        assert {leader for leader, _ in answers} < set(NODES) - {LEADER}
        assert max(seconds for _, seconds in answers) <= HOLD_S + WAY_S
        node = nodes.machines[ASKED].node
        assert node is not None
        assert node._suspected.held_count == CLIENTS
        assert not node._suspected._waiting


def test_a_leader_that_only_reconnects_is_named_after_a_moment() -> None:
    with simulated_nodes(2) as nodes:
        nodes.wait_leader(LEADER)
        ((leader, seconds),) = ask_after(nodes, "broken connections")
        assert leader == LEADER
        assert seconds <= WAY_S


def test_a_leader_behind_a_partition_is_named_once_the_time_is_over() -> None:
    """Nobody knows better yet: the metadata change when its session ends."""
    with simulated_nodes(2) as nodes:
        nodes.wait_leader(LEADER)
        ((leader, seconds),) = ask_after(nodes, "partition")
        assert leader == LEADER
        assert HOLD_S - WAY_S <= seconds <= HOLD_S + WAY_S


def test_nothing_waits_where_it_is_switched_off() -> None:
    with simulated_nodes(2, settings={**SETTINGS, "broker.suspicion.max.ms": "0"}) as nodes:
        nodes.wait_leader(LEADER)
        connection = nodes.ask(partial(nodes._connect, ASKED))
        nodes.kill(LEADER)
        nodes.pass_ms(2)
        start_s = nodes.loop.time()
        assert nodes.ask(partial(leader_by_metadata, connection)) == LEADER
        assert nodes.loop.time() - start_s <= WAY_S
        nodes.ask(connection.close)


def test_descriptions_and_coordinators_wait_as_well() -> None:
    with simulated_nodes(2, settings={**SETTINGS, "offsets.topic.num.partitions": "9"}) as nodes:
        nodes.wait_leader(LEADER)
        keys = tuple(f"group-{number}" for number in range(30))

        async def coordinators(connection: Connection) -> set[int]:
            answer = await connection.call(FindCoordinatorRequest(key_type=i8(0), coordinator_keys=keys))
            assert isinstance(answer, FindCoordinatorResponse)
            assert not any(one.error_code for one in answer.coordinators)
            return {int(one.node_id) for one in answer.coordinators}

        first, second = (nodes.ask(partial(nodes._connect, ASKED)) for _ in range(2))
        assert nodes.ask(partial(coordinators, first)) == set(NODES)
        nodes.kill(LEADER)
        nodes.wait(lambda: LEADER in suspicions(nodes), "suspicion")

        async def ask_both() -> tuple[int, set[int]]:
            async with first, second:
                return await asyncio.gather(leader_by_description(first), coordinators(second))

        start_s = nodes.loop.time()
        leader, others = nodes.ask(ask_both)
        assert leader in set(NODES) - {LEADER}
        assert others == set(NODES) - {LEADER}
        assert nodes.loop.time() - start_s <= HOLD_S + WAY_S


def test_who_left_a_moment_ago_is_listed_and_who_left_before_this_broker_came_is_not() -> None:
    with simulated_nodes(2) as nodes:
        nodes.wait_leader(LEADER)
        connection = nodes.ask(partial(nodes._connect, ASKED))
        nodes.kill(LEADER)
        nodes.wait(lambda: is_fenced(nodes, LEADER) is True, "end of its session")
        assert nodes.ask(partial(listed, connection)) == set(NODES)
        nodes.pass_ms(LISTED_MS)
        assert nodes.ask(partial(listed, connection)) == set(NODES) - {LEADER}
        nodes.ask(connection.close)
        nodes.kill(ASKED)
        nodes.start(ASKED)
        # It reads its log again, which says that the other was there, and that it left.
        nodes.wait(lambda: is_fenced(nodes, ASKED) is True, "its registration")
        nodes.wait(lambda: is_fenced(nodes, ASKED) is False, "its return")
        connection = nodes.ask(partial(nodes._connect, ASKED))
        assert nodes.ask(partial(listed, connection)) == set(NODES) - {LEADER}
        nodes.ask(connection.close)
