"""Requests to the active controller over voters that the test makes silent, or has answer; in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from itertools import groupby
from typing import Any, cast

import pytest
from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.broker_heartbeat.v2.response import BrokerHeartbeatResponse
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i16, i32, i64
from metadata_cluster import Cluster
from typed_ids import node_ids

from penstock.broker.apis.describe_quorum import describe
from penstock.broker.cluster.metadata_cache import MetadataCache
from penstock.broker.cluster.peers import PeerConnector
from penstock.broker.cluster.remote_controller_channel import RemoteControllerChannel
from penstock.broker.cluster.rules.quorum_view import QuorumView
from penstock.broker.cluster.rules.repeated_change import BARRIER
from penstock.broker.cluster.rules.voter_choice import SilentVoters
from penstock.broker.configuration.quorum_times import QuorumTimes
from penstock.chaos.simulation.virtual_loop import VirtualLoop
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import ControllerEpoch, NodeId
from penstock.protocol.messages import NO_THROTTLE, Request, Response, kio_error
from penstock.protocol.no_quorum import no_quorum
from penstock.protocol.own_apis import ControllerOutcome, encode_outcome_tags, requester_of
from penstock.protocol.primitives import Buffer, read_tags
from penstock.quorum.decisions.heartbeats import BROKER_HEARTBEAT
from penstock.quorum.decisions.topics import CREATE_TOPICS, create_topics
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import EMPTY_IMAGE, MetadataImage
from penstock.quorum.metadata.metadata_log import METADATA_TOPIC
from penstock.quorum.metadata.voters import Voter
from penstock.quorum.permissions.requester import Permission, PermissionsChangedError, Requester, decode_requester
from penstock.quorum.raft.consensus import QuorumStatus

TIMES = QuorumTimes(fetch_timeout_ms=2_000, request_timeout_ms=2_000)
HEARTBEAT = BrokerHeartbeatRequest(
    broker_id=BrokerId(4), broker_epoch=i64(7), current_metadata_offset=i64(0), want_fence=False, want_shut_down=False
)
CREATION = CreateTopicsRequest(topics=())
CREATION_OF_ONE = CreateTopicsRequest(
    topics=(
        CreatableTopic(
            name=TopicName("t"), num_partitions=i32(1), replication_factor=i16(3), assignments=(), configs=()
        ),
    )
)
FOREVER_S = 3_600


class World:
    """Three voters. One that is `silent` answers nothing; the others answer as `leader_id` leads."""

    def __init__(self) -> None:
        self.leader_id: int = 1
        self.named_leader_id: NodeId | None = NodeId(1)
        self.silent: set[int] = set()
        self.refusing: set[int] = set()
        self.asked: list[tuple[int, str]] = []
        self.names: set[str | None] = set()
        self.requesters: list[bytes | None] = []
        self.outcome = ErrorCode.NONE
        self.on_asked: Callable[[int, Request], Awaitable[None]] | None = None
        self.image_offset = -1
        self.has_outcome = True
        # What voters do not reach, by their own account, and what this node says of that.
        self.unreached: set[int] = set()
        self.no_quorum: str | None = None
        self.metadata = MetadataCache(NodeId(4))
        self.channel = RemoteControllerChannel(
            cast(PeerConnector, self),
            self.metadata,
            voters={voter_id: Voter(voter_id, f"voter-{voter_id}", 9093) for voter_id in node_ids(1, 2, 3)},
            leader_id=lambda: self.named_leader_id,
            silent=SilentVoters(TIMES.request_timeout_ms),
            times=TIMES,
            timeout_ms=30_000,
            name="4-0-0",
            no_quorum=lambda: self.no_quorum,
        )

    async def connect(self, host: str, _port: int, *, timeout_ms: int, node_id: int) -> tuple[Connection, None]:
        voter_id = int(host.rpartition("-")[2])
        assert voter_id == node_id
        if voter_id in self.refusing:
            raise ConnectionError("refused")
        if voter_id in self.silent:
            await asyncio.sleep(timeout_ms / 1000)
            raise TimeoutError("no connection")
        return Connection(self, voter_id), None

    def count(self, name: str) -> int:
        return sum(asked == name for _, asked in self.asked)


class Connection:
    is_open = True

    def __init__(self, world: World, voter_id: int) -> None:
        self._world = world
        self._voter_id = voter_id

    async def call(self, message: Request, *, timeout_ms: int) -> Response:
        world = self._world
        world.asked.append((self._voter_id, type(message).__name__))
        if world.on_asked is not None:
            await world.on_asked(self._voter_id, message)
        if self._voter_id in world.silent:
            await asyncio.sleep(timeout_ms / 1000)
            raise TimeoutError("no answer")
        is_leader = self._voter_id == world.leader_id
        code = kio_error(ErrorCode.NONE if is_leader else ErrorCode.NOT_CONTROLLER)
        answer: Any
        match message:
            case BrokerHeartbeatRequest():
                answer = BrokerHeartbeatResponse(
                    throttle_time=NO_THROTTLE,
                    error_code=code,
                    is_caught_up=True,
                    is_fenced=False,
                    should_shut_down=False,
                )
            case DescribeQuorumRequest():
                answer = self._describe(message)
            case _:
                answer = CreateTopicsResponse(throttle_time=NO_THROTTLE, topics=())
        return cast(Response, answer)

    async def call_tagged(
        self, message: Request, *, timeout_ms: int, client_id: str | None = None, header_tags: bytes
    ) -> tuple[Response, Mapping[int, Buffer]]:
        self._world.names.add(client_id)
        self._world.requesters.append(requester_of(read_tags(header_tags, 0)[0]))
        response = await self.call(message, timeout_ms=timeout_ms)
        is_leader = self._voter_id == self._world.leader_id
        code = self._world.outcome if is_leader else ErrorCode.NOT_CONTROLLER
        tags, _ = read_tags(encode_outcome_tags(ControllerOutcome(int(code), self._world.image_offset)), 0)
        return response, tags if self._world.has_outcome else {}

    def _describe(self, message: DescribeQuorumRequest) -> DescribeQuorumResponse:
        world = self._world
        view = QuorumView(
            node_id=NodeId(self._voter_id),
            status=lambda: QuorumStatus(
                leader_id=NodeId(world.leader_id),
                epoch=ControllerEpoch(1),
                high_watermark=0,
                voters=(),
                unreached_ids=frozenset(node_ids(*world.unreached)),
            ),
            observers=lambda: (),
            voters={voter_id: Voter(voter_id, f"voter-{voter_id}", 9093) for voter_id in node_ids(1, 2, 3)},
            listener_name="CONTROLLER",
            wall_clock_ms=lambda: 0,
        )
        return describe(view, message)

    async def close(self) -> None:
        """Nothing is held."""


def run(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(FOREVER_S):
            await scenario(World())

    with VirtualLoop() as loop:
        loop.run(main())


def test_a_heartbeat_that_was_in_flight_to_a_silent_controller_is_sent_to_the_next_whatever_is_said_of_the_leader() -> (
    None
):
    async def scenario(world: World) -> None:
        await world.channel.submit(BROKER_HEARTBEAT, HEARTBEAT)
        world.silent, world.leader_id = {1}, 3
        began_s = asyncio.get_running_loop().time()
        await world.channel.submit(BROKER_HEARTBEAT, HEARTBEAT)
        assert [voter_id for voter_id, _ in world.asked] == [1, 1, 2, 3]
        assert asyncio.get_running_loop().time() - began_s < 3
        # The one that was of use is asked on, though 1 is still said to lead.
        await world.channel.submit(BROKER_HEARTBEAT, HEARTBEAT)
        assert world.asked[-1][0] == 3

    run(scenario)


def test_voters_that_do_not_lead_are_not_asked_in_a_hot_loop_while_the_named_leader_refuses() -> None:
    async def scenario(world: World) -> None:
        world.refusing, world.leader_id = {1}, 0
        asking = asyncio.ensure_future(world.channel.submit(BROKER_HEARTBEAT, HEARTBEAT))
        await asyncio.sleep(1)
        assert 10 < len(world.asked) < 60
        world.leader_id = 2
        await asking

    run(scenario)


def test_a_change_is_answered_when_the_image_of_this_node_has_it() -> None:
    async def scenario(world: World) -> None:
        world.image_offset = 7
        asking = asyncio.ensure_future(world.channel.submit(CREATE_TOPICS, CREATION))
        await asyncio.sleep(1)
        assert not asking.done()
        world.metadata.publish(MetadataDelta(EMPTY_IMAGE), MetadataImage(offset=7))
        await asking
        assert world.asked == [(1, "CreateTopicsRequest")], "the answer itself names the offset"

    run(scenario)


def test_a_voter_without_an_outcome_in_its_answers_is_none_of_this_cluster() -> None:
    async def scenario(world: World) -> None:
        world.has_outcome = False
        with pytest.raises(KafkaError, match="without the offset of its image"):
            await world.channel.submit(CREATE_TOPICS, CREATION)

    run(scenario)


def test_a_change_that_is_committed_is_answered_so_although_it_is_not_seen_here_in_time() -> None:
    async def scenario(world: World) -> None:
        world.image_offset = 99
        answer = await world.channel.submit(CREATE_TOPICS, CREATION)
        assert isinstance(answer, CreateTopicsResponse)
        assert world.count("CreateTopicsRequest") == 1

    run(scenario)


def test_a_new_word_on_the_leader_ends_the_wait_for_a_silent_one() -> None:
    async def scenario(world: World) -> None:
        async def move(voter_id: int, _message: Request) -> None:
            if voter_id == 1:
                world.silent, world.leader_id, world.named_leader_id = {1}, 2, NodeId(2)

        world.on_asked = move
        began_s = asyncio.get_running_loop().time()
        await world.channel.submit(CREATE_TOPICS, CREATION)
        assert asyncio.get_running_loop().time() - began_s < 1
        # The second time it asks first how far the metadata are.
        assert [voter_id for voter_id, name in world.asked if name == "CreateTopicsRequest"] == [1, 2, 2]

    run(scenario)


def test_a_new_word_on_the_leader_ends_the_wait_for_a_connection_to_a_silent_one() -> None:
    async def scenario(world: World) -> None:
        world.silent, world.leader_id = {1}, 2
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        loop.call_later(0.3, setattr, world, "named_leader_id", NodeId(2))
        await world.channel.submit(CREATE_TOPICS, CREATION)
        assert loop.time() - began_s < 1
        # Nothing was sent to the first, so that the second need not ask what that did.
        assert world.asked == [(2, "CreateTopicsRequest")]

    run(scenario)


def test_a_voter_that_is_elected_after_it_was_asked_is_asked_next() -> None:
    async def scenario(world: World) -> None:
        world.leader_id, world.named_leader_id = 0, None

        async def elect(voter_id: int, _message: Request) -> None:
            if voter_id == 2:
                world.leader_id, world.named_leader_id = 1, NodeId(1)

        world.on_asked = elect
        await world.channel.submit(CREATE_TOPICS, CREATION)
        assert [voter_id for voter_id, _ in groupby(world.asked, lambda asked: asked[0])] == [1, 2, 1]

    run(scenario)


def test_a_change_that_the_log_tells_of_is_not_asked_for_again_when_its_answer_was_lost() -> None:
    async def scenario(world: World) -> None:
        cluster = Cluster()
        cluster.add_brokers(1, 2, 3)

        async def commit_and_move(voter_id: int, message: Request) -> None:
            if voter_id == 1:
                assert isinstance(message, CreateTopicsRequest)
                # 1 commits it, and its answer is lost with the leadership.
                cluster.submit(create_topics, message, change=next(iter(world.names)) or "")
                world.silent, world.leader_id, world.named_leader_id = {1}, 2, NodeId(2)
                world.image_offset = cluster.image.offset
            else:
                assert message == BARRIER
                world.metadata.publish(cluster.delta, cluster.image)

        world.on_asked = commit_and_move
        answer = await world.channel.submit(CREATE_TOPICS, CREATION_OF_ONE)
        assert [int(one.error_code) for one in answer.topics] == [ErrorCode.NONE]
        assert [voter_id for voter_id, _ in world.asked] == [1, 2]
        assert len(world.names) == 1

    run(scenario)


def test_a_change_that_the_log_tells_of_is_answered_though_no_answer_comes_in_time() -> None:
    async def scenario(world: World) -> None:
        cluster = Cluster()
        cluster.add_brokers(1, 2, 3)

        async def commit_and_say_nothing(_voter_id: int, message: Request) -> None:
            assert isinstance(message, CreateTopicsRequest)
            cluster.submit(create_topics, message, change=next(iter(world.names)) or "")
            world.metadata.publish(cluster.delta, cluster.image)
            await asyncio.sleep(FOREVER_S / 2)

        world.on_asked = commit_and_say_nothing
        answer = await world.channel.submit(CREATE_TOPICS, CREATION_OF_ONE)
        assert [(one.name, int(one.error_code)) for one in answer.topics] == [("t", ErrorCode.NONE)]

    run(scenario)


def test_a_change_of_which_a_snapshot_does_not_tell_has_an_unknown_outcome() -> None:
    async def scenario(world: World) -> None:
        async def move(voter_id: int, _message: Request) -> None:
            if voter_id == 1:
                world.silent, world.leader_id, world.named_leader_id = {1}, 2, NodeId(2)
                image = MetadataImage(offset=9)
                world.metadata.publish(MetadataDelta.between(EMPTY_IMAGE, image), image)

        world.on_asked = move
        with pytest.raises(KafkaError, match="not known whether it was done") as failed:
            await world.channel.submit(CREATE_TOPICS, CREATION_OF_ONE)
        assert failed.value.code is ErrorCode.REQUEST_TIMED_OUT

    run(scenario)


def test_no_request_waits_longer_than_a_node_that_stops() -> None:
    """Neither the one that a voter has, nor the one that has not had its turn, nor one that comes later."""

    async def scenario(world: World) -> None:
        loop = asyncio.get_running_loop()
        world.silent = {1, 2, 3}
        asking = [asyncio.ensure_future(world.channel.submit(CREATE_TOPICS, CREATION)) for _ in range(2)]
        await asyncio.sleep(0.5)
        began_s = loop.time()
        world.channel.limit_wait()
        asking.append(asyncio.ensure_future(world.channel.submit(CREATE_TOPICS, CREATION)))
        for answer in await asyncio.gather(*asking, return_exceptions=True):
            assert isinstance(answer, KafkaError)
            assert answer.code is ErrorCode.REQUEST_TIMED_OUT
        assert loop.time() - began_s == pytest.approx(1.0, abs=0.01)
        # Said again, it does not give more time.
        world.channel.limit_wait()
        with pytest.raises(KafkaError, match="REQUEST_TIMED_OUT"):
            await world.channel.submit(CREATE_TOPICS, CREATION)
        assert loop.time() - began_s == pytest.approx(2.0, abs=0.01)

    run(scenario)


def test_client_is_told_that_there_is_no_quorum() -> None:
    async def scenario(world: World) -> None:
        world.refusing = {1, 2, 3}
        world.no_quorum = no_quorum((1, 2, 3), (1, 2, 3))
        with pytest.raises(KafkaError) as failed:
            await world.channel.submit(CREATE_TOPICS, CREATION)
        assert failed.value.code is ErrorCode.REQUEST_TIMED_OUT
        assert str(world.no_quorum) in str(failed.value)

    run(scenario)


def test_voter_without_a_quorum_describes_it_when_no_other_can() -> None:
    async def scenario(world: World) -> None:
        world.refusing, world.named_leader_id, world.leader_id = {2, 3}, None, 3
        world.unreached = {2, 3}
        topic = TopicData(topic_name=TopicName(METADATA_TOPIC), partitions=(PartitionData(partition_index=i32(0)),))
        told = await world.channel.describe_quorum(DescribeQuorumRequest(topics=(topic,)))
        (partition,) = told.topics[0].partitions
        assert partition.error_code == kio_error(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert partition.error_message == no_quorum((1, 2, 3), (2, 3))

    run(scenario)


CLIENT = Requester("User:alice", "10.0.0.1", (Permission(5, 2, "t"),))


def test_a_request_of_a_client_names_it_and_what_it_was_allowed() -> None:
    async def scenario(world: World) -> None:
        await world.channel.submit(CREATE_TOPICS, CREATION, requester=CLIENT)
        await world.channel.submit(CREATE_TOPICS, CREATION)
        told, nothing = world.requesters
        assert told is not None
        assert decode_requester(told) == CLIENT
        assert nothing is None

    run(scenario)


def test_what_the_controller_s_acls_deny_is_denied_once_this_node_has_them() -> None:
    async def scenario(world: World) -> None:
        world.outcome, world.image_offset = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, 7
        asking = asyncio.ensure_future(world.channel.submit(CREATE_TOPICS, CREATION_OF_ONE, requester=CLIENT))
        await asyncio.sleep(1)
        assert not asking.done()
        world.metadata.publish(MetadataDelta(EMPTY_IMAGE), MetadataImage(offset=7))
        with pytest.raises(PermissionsChangedError):
            await asking
        assert world.count("CreateTopicsRequest") == 1

    run(scenario)


def test_a_denial_after_an_answer_that_was_lost_leaves_the_outcome_unknown() -> None:
    async def scenario(world: World) -> None:
        world.image_offset = 0
        world.metadata.publish(MetadataDelta(EMPTY_IMAGE), MetadataImage(offset=0))

        async def lose_answer(_voter_id: int, _message: Request) -> None:
            world.on_asked = None
            world.outcome = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            raise ConnectionError("lost")

        world.on_asked = lose_answer
        with pytest.raises(KafkaError, match="not known whether it was done") as failure:
            await world.channel.submit(BROKER_HEARTBEAT, HEARTBEAT, requester=CLIENT)
        assert failure.value.code is ErrorCode.REQUEST_TIMED_OUT

    run(scenario)
