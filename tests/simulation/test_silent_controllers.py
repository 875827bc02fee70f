"""The active controller goes silent (SIGSTOP, no power, a network that drops packets): the living brokers stay in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Final

import pytest
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeleteTopicsResponse
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.schema.types import TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta
from simulated_nodes import CONTROLLERS, NODES, SETTINGS, TOPIC, SimulatedNodes, simulated_nodes

from penstock.broker.node.voter_link import VoterLink
from penstock.chaos.simulation.cluster.machine import host_of
from penstock.protocol.errors import ErrorCode
from penstock.quorum.controller.controller import Controller

# Kafka's defaults, which are those of a node that is told nothing.
DEFAULT_TIMES: Final = {**SETTINGS, "broker.session.timeout.ms": "9000", "broker.heartbeat.interval.ms": "2000"}
SESSION_MS: Final = 9_000
HEARTBEAT_MS: Final = 2_000
STALE_MS_MAX: Final = 3_000
PHASES: Final = 50
# Between two records of the client.
WRITE_PAUSE_MS: Final = 400


@contextmanager
def cluster(seed: int = 1) -> Iterator[SimulatedNodes]:
    """Three controllers and three brokers beside them."""
    with simulated_nodes(2, has_own_controllers=True, settings=DEFAULT_TIMES, seed=seed) as nodes:
        yield nodes


def controller_of(nodes: SimulatedNodes, node_id: int) -> Controller | None:
    node = nodes.machines[node_id].node
    link = None if node is None else node._quorum
    return link.controller if isinstance(link, VoterLink) and link._controller is not None else None


def active_id(nodes: SimulatedNodes, *, but: int | None = None) -> int | None:
    """The active controller, as it knows itself, among those that run."""
    for node_id, machine in nodes.machines.items():
        controller = controller_of(nodes, node_id)
        if node_id != but and not machine.is_paused and controller is not None and controller.is_active:
            return node_id
    return None


def wait_active(nodes: SimulatedNodes) -> int:
    nodes.wait(lambda: active_id(nodes) is not None, "active controller")
    found = active_id(nodes)
    assert found is not None
    return found


def follow(nodes: SimulatedNodes, voter_id: int) -> None:
    """Have every broker follow this voter, by taking the others away for a moment."""
    others = [host_of(one) for one in CONTROLLERS if one != voter_id]
    for broker in map(host_of, NODES):
        for other in others:
            nodes.network.cut(broker, other)
            nodes.network.cut(other, broker)
            nodes.network.break_connections(broker, other)
    nodes.pass_ms(500)
    nodes.heal()


def image_epochs(nodes: SimulatedNodes) -> list[int]:
    found = [nodes.machines[node_id].node for node_id in NODES]
    return [node.metadata.image.epoch for node in found if node is not None]


def are_heard(nodes: SimulatedNodes, controller_id: int) -> bool:
    """Whether every broker's heartbeat has come to this controller in its own time."""
    controller = controller_of(nodes, controller_id)
    return controller is not None and set(controller._sessions.positions()) >= set(NODES)


def fenced(nodes: SimulatedNodes) -> set[int]:
    """According to any node that runs."""
    return {
        broker.id
        for machine in nodes.machines.values()
        if machine.node is not None and not machine.is_paused
        for broker in machine.node.metadata.image.brokers.values()
        if broker.is_fenced
    }


def change(nodes: SimulatedNodes, value: int) -> ErrorCode:
    """Set a config of the topic, through broker 1: the node that asks does not vote."""
    config = AlterableConfig(name="retention.ms", config_operation=i8(0), value=str(value))
    resource = AlterConfigsResource(resource_type=i8(2), resource_name=TOPIC, configs=(config,))

    async def alter() -> ErrorCode:
        async with await nodes._connect(1) as connection:
            answer = await connection.call(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
        assert isinstance(answer, IncrementalAlterConfigsResponse)
        return ErrorCode(int(answer.responses[0].error_code))

    return nodes.ask(alter)


def creation(name: str) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=TopicName(name), num_partitions=i32(1), replication_factor=i16(3), assignments=(), configs=()
    )
    return CreateTopicsRequest(topics=(topic,))


def deletion(name: str) -> DeleteTopicsRequest:
    timeout = i32Timedelta.parse(timedelta(seconds=30))
    return DeleteTopicsRequest(topics=(DeleteTopicState(name=TopicName(name), topic_id=None),), timeout=timeout)


async def ask(nodes: SimulatedNodes, request: CreateTopicsRequest | DeleteTopicsRequest) -> ErrorCode:
    """The outcome for the only topic, by broker 1."""
    async with await nodes._connect(1) as connection:
        answer = await connection.call(request, timeout_ms=30_000)
    if isinstance(answer, DeleteTopicsResponse):
        return ErrorCode(int(answer.responses[0].error_code))
    assert isinstance(answer, CreateTopicsResponse)
    return ErrorCode(int(answer.topics[0].error_code))


def silence_active(
    nodes: SimulatedNodes, phase_ms: int, *, silence: Callable[[int], None], has_change: bool = False
) -> int:
    """At `phase_ms` after the brokers' connections settled; returns the node id, once the brokers are past it.

    Past it: another controller has heard every broker within a session, and the brokers have its metadata. With
    `has_change` every broker has just been told a change, so that its next fetch of the metadata has just begun.
    """
    before = wait_active(nodes)
    follow(nodes, before)
    nodes.pass_ms(phase_ms)
    if has_change:
        assert change(nodes, 1_000_000_000 + phase_ms) is ErrorCode.NONE
    assert wait_active(nodes) == before
    epoch = max(image_epochs(nodes))
    silence(before)
    silent_ms = int(nodes.loop.time() * 1000)
    stale_ms: int | None = None

    def passed_ms() -> int:
        return int(nodes.loop.time() * 1000) - silent_ms

    while True:
        assert nodes.append(b"%d after %d" % (passed_ms(), phase_ms)) is ErrorCode.NONE
        assert not fenced(nodes), f"fenced {passed_ms()} ms after node {before} fell silent, phase {phase_ms} ms"
        if stale_ms is None and min(image_epochs(nodes)) > epoch:
            stale_ms = passed_ms()
        assert stale_ms is not None or passed_ms() <= STALE_MS_MAX, f"metadata is stale, phase {phase_ms} ms"
        after = active_id(nodes, but=before)
        if stale_ms is not None and after is not None and are_heard(nodes, after):
            return before
        assert passed_ms() < 2 * SESSION_MS, f"not every broker was heard again, phase {phase_ms} ms"
        nodes.pass_ms(WRITE_PAUSE_MS if stale_ms is not None else 50)


def test_no_broker_is_fenced_and_no_write_fails_when_the_active_controller_stands_still_at_any_phase() -> None:
    with cluster() as nodes:
        for number in range(PHASES):
            phase_ms = number * HEARTBEAT_MS // PHASES
            stopped = silence_active(
                nodes, phase_ms, silence=lambda one: nodes.machines[one].pause(), has_change=number % 2 == 1
            )
            nodes.machines[stopped].resume()
            nodes.pass_ms(200)


def cut_off(nodes: SimulatedNodes, node_id: int) -> None:
    """Its packets are dropped, and those to it: no connection ends."""
    for other in nodes.machines:
        if other != node_id:
            nodes.network.cut(host_of(node_id), host_of(other))
            nodes.network.cut(host_of(other), host_of(node_id))


def lose_power(nodes: SimulatedNodes, node_id: int) -> None:
    """No reset tells of it, and what connects hears nothing."""
    nodes.kill(node_id, has_power=False)


def end_process(nodes: SimulatedNodes, node_id: int) -> None:
    """Connections are reset, and new ones refused."""
    nodes.kill(node_id)


def cut_from_brokers_and_deposed(nodes: SimulatedNodes, node_id: int) -> None:
    """It answers the brokers that follow it, but the other voters, which it does not reach, elect one of them."""
    for other in CONTROLLERS:
        if other != node_id:
            nodes.network.cut(host_of(node_id), host_of(other))
            nodes.network.cut(host_of(other), host_of(node_id))


@pytest.mark.parametrize("silence", [cut_off, lose_power, end_process, cut_from_brokers_and_deposed])
@pytest.mark.parametrize("phase_ms", [0, 700])
def test_no_broker_is_fenced_however_the_active_controller_is_lost(
    silence: Callable[[SimulatedNodes, int], None], phase_ms: int
) -> None:
    with cluster() as nodes:
        silence_active(nodes, phase_ms, silence=lambda one: silence(nodes, one), has_change=True)


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_topic_asked_for_while_the_controller_falls_silent_is_created_once_and_answered_so(seed: int) -> None:
    """At instants at which the request, its commit or the answer is under way, and then its deletion."""
    with cluster(seed) as nodes:
        for number in range(5):
            before = wait_active(nodes)
            follow(nodes, before)
            name = f"asked-for-{number}"
            for request in (creation(name), deletion(name)):
                before = wait_active(nodes)
                task = nodes.client.run(partial(nodes.loop.create_task, ask(nodes, request)))
                nodes.pass_ms(1 + 3 * number + seed)
                nodes.machines[before].pause()
                nodes.wait(task.done, "answer")
                assert task.result() is ErrorCode.NONE
                images = [
                    machine.node.metadata.image
                    for machine in map(nodes.machines.get, NODES)
                    if machine and machine.node
                ]
                assert (name in images[0].topics.by_name) is isinstance(request, CreateTopicsRequest)
                nodes.machines[before].resume()
                nodes.pass_ms(1_000)


def test_the_nodes_that_vote_and_serve_are_not_fenced_with_one_that_stands_still() -> None:
    with simulated_nodes(2, settings=DEFAULT_TIMES) as nodes:
        for phase_ms in range(0, HEARTBEAT_MS, 400):
            before = wait_active(nodes)
            nodes.pass_ms(phase_ms)
            nodes.machines[before].pause()
            nodes.wait(lambda one=before: fenced(nodes) == {one}, "end of its session")  # type: ignore[misc]
            assert nodes.append(b"after %d" % phase_ms, to=nodes.wait_leader()) is ErrorCode.NONE
            nodes.pass_ms(SESSION_MS)
            assert fenced(nodes) == {before}
            nodes.machines[before].resume()
            nodes.wait_in_sync(*NODES)
