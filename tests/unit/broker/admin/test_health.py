"""/health and /ready of a whole node, and which findings count for what."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from admin_http import asked, puppet_ports, served
from memory_node import World, create_topic, run

from penstock.broker.admin.operations import OPERATIONS
from penstock.broker.admin.rules.health import (
    NAMED_MAX,
    PartitionProblems,
    not_ready,
    note_topic,
    quorum_sentence,
    unhealthy,
    warnings,
)
from penstock.broker.admin.rules.node_facts import DirectoryFacts, NodeFacts
from penstock.broker.configuration.node_config import load
from penstock.broker.node.admin_ports import ports_of
from penstock.protocol.ids import BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicId
from penstock.protocol.structs import replace
from penstock.quorum.metadata.image import (
    BrokerRegistration,
    ConfigsImage,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
    TopicsImage,
)
from penstock.quorum.metadata.persistent_map import PersistentMap

OWN, OTHER = NodeId(1), NodeId(2)


def broker(**changes: Any) -> BrokerRegistration:
    values: dict[str, Any] = {"id": OWN, "epoch": BrokerEpoch(3), "incarnation_id": UUID(int=1), "is_fenced": False}
    return BrokerRegistration(**{**values, **changes})


def image(*partitions: PartitionRegistration, **changes: Any) -> MetadataImage:
    topic = TopicImage(name="t", topic_id=TopicId(UUID(int=9)), partitions=partitions)
    topics = TopicsImage(by_name=PersistentMap({"t": topic}), by_id=PersistentMap({topic.topic_id: topic}))
    return MetadataImage(topics=topics, brokers={1: broker()}, **changes)


def partition(isr: tuple[int, ...], leader: int, replicas: tuple[int, ...] = (1, 2)) -> PartitionRegistration:
    return PartitionRegistration(
        replicas=tuple(map(NodeId, replicas)),
        directories=(UUID(int=0),) * len(replicas),
        isr=tuple(map(NodeId, isr)),
        leader=NodeId(leader),
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
    )


def kinds(found: Any) -> set[str]:
    return {finding.kind for finding in found}


def test_only_a_failed_node_is_unhealthy() -> None:
    gone = DirectoryFacts(path="/d", is_online=False, has_room=False)
    assert not kinds(unhealthy(NodeFacts(directories=(gone,), offline_replicas=(("t", 0),), loading_coordinators=3)))
    assert [one.sentence for one in unhealthy(NodeFacts(failure="It is broken."))] == ["It is broken."]


@pytest.mark.parametrize(
    ("registered", "kind"),
    [
        (broker(is_fenced=True), "fenced"),
        (broker(in_controlled_shutdown=True), "controlled-shutdown"),
        (None, "not-registered"),
        (broker(), None),
    ],
)
def test_a_broker_that_may_not_lead_is_not_ready(registered: BrokerRegistration | None, kind: str | None) -> None:
    seen = replace(image(), brokers={} if registered is None else {1: registered})
    # A broker goes on serving what it leads without a quorum.
    found = not_ready(seen, OWN, is_broker=True, leader_id=None, voters=(OWN, OTHER), silent=(OTHER,))
    assert kinds(found) == ({kind} - {None})


def test_a_controller_without_a_leader_is_not_ready() -> None:
    (found,) = not_ready(image(), OWN, is_broker=False, leader_id=None, voters=(OWN, OTHER), silent=(OTHER,))
    assert found.kind == "no-quorum-leader"
    assert found.sentence.endswith("no leader: no quorum: 1 of 2 voters, 2 needed; node 2 does not answer.")
    assert not kinds(not_ready(image(), OWN, is_broker=False, leader_id=OTHER, voters=(OWN, OTHER), silent=()))


def test_partitions_of_the_node_are_counted_and_the_first_are_named() -> None:
    seen = image(
        partition((1, 2), 1),
        partition((2,), 2),
        partition((2,), -1),
        partition((2,), 2, replicas=(2, 3)),
        *(partition((1,), 1) for _ in range(NAMED_MAX)),
    )
    problems = PartitionProblems()
    note_topic(problems, seen, "t", OWN, 2)
    assert (problems.offline.count, problems.offline.names) == (1, ["t-2"])
    assert problems.under_min_isr.count == 1 + NAMED_MAX
    assert problems.under_replicated.count == 2 + NAMED_MAX
    assert len(problems.under_replicated.names) == NAMED_MAX
    assert problems.out_of_sync.names == ["t-1", "t-2"]
    (first, *_) = problems.findings()
    assert first.sentence == "1 partition without a leader: t-2."


def test_min_insync_replicas_above_the_replication_factor_counts_as_that() -> None:
    problems = PartitionProblems()
    note_topic(problems, image(partition((1,), 1, replicas=(1,))), "t", OWN, 2)
    assert not problems.under_min_isr.count


def test_what_does_not_change_the_use_of_a_node_is_a_warning() -> None:
    facts = NodeFacts(
        directories=(
            DirectoryFacts(path="/a", is_online=False, has_room=True),
            DirectoryFacts(path="/b", is_online=True, has_room=False),
        ),
        offline_replicas=(("t", 0),),
        loading_coordinators=2,
    )
    seen = image(configs=ConfigsImage(drained_brokers=frozenset({OWN})))
    found = list(warnings(seen, facts, PartitionProblems(), OWN, leader_id=None, silent={OTHER: "it is gone"}))
    assert kinds(found) == {
        "log-dir-offline",
        "disk-full",
        "offline-replicas",
        "loading-coordinators",
        "drained",
        "no-quorum-leader",
        "silent-voter",
    }
    assert found[-1].sentence == "Voter 2 does not answer: it is gone."


@pytest.mark.parametrize(
    ("silent", "sentence"),
    [
        ({2: "x", 3: "x"}, "no quorum: 1 of 3 voters, 2 needed; nodes 2 and 3 do not answer"),
        ({3: "x"}, "no leader yet: 2 of 3 voters, 2 needed; node 3 does not answer"),
        ({}, "no leader yet: 3 of 3 voters, 2 needed"),
    ],
)
def test_a_quorum_says_how_many_voters_are_missing(silent: dict[int, str], sentence: str) -> None:
    missing = {NodeId(voter_id): reason for voter_id, reason in silent.items()}
    assert quorum_sentence([NodeId(1), NodeId(2), NodeId(3)], missing) == sentence


def test_a_node_that_serves_is_healthy_and_ready() -> None:
    async def scenario() -> None:
        async with asked(World()) as (_, connection, http):
            await create_topic(connection, "t")
            for path in ("/health", "/ready", "/ready?caught_up=true"):
                answer = await http.get(path)
                told = await answer.json()
                assert (answer.status, told["is_ok"], told["state"]) == (200, True, "running"), told
                assert not told["reasons"]
                assert not told["warnings"]

    run(scenario)


def test_a_node_that_stops_says_so_from_the_first_moment_to_the_last() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        node = World().node()
        ports = ports_of(node, node.config, loop, lambda: 1, started_ms=lambda: 1)
        async with served(loop, OPERATIONS, ports) as http:

            async def told(path: str) -> tuple[int, str, list[str]]:
                answer = await http.get(path)
                health = await answer.json()
                return answer.status, health["state"], [reason["kind"] for reason in health["reasons"]]

            assert (await told("/ready"))[:2] == (503, "starting")
            await node.start()
            assert await told("/ready") == (200, "running", [])
            stopping = loop.create_task(node.stop())
            await asyncio.sleep(0)
            while not stopping.done():
                assert await told("/ready") == (503, "stopping", ["stopping"])
                assert await told("/health") == (200, "stopping", [])
            await stopping
            assert await told("/ready") == (503, "stopping", ["stopping"])
            problem = await (await http.post("/v1/elections", json={})).json(content_type=None)
            assert "Node 1 is stopping" in problem["detail"]

    run(scenario)


def test_a_node_that_waits_names_the_voters_that_do_not_answer() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()

        async def silent() -> dict[NodeId, str]:
            return {NodeId(2): "connection refused", NodeId(3): "connection refused"}

        ports = replace(
            puppet_ports(loop),
            config=load(
                {
                    "node.id": "1",
                    "process.roles": "broker,controller",
                    "controller.quorum.voters": "1@127.0.0.1:1,2@127.0.0.1:2,3@127.0.0.1:3",
                    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
                    "controller.listener.names": "CONTROLLER",
                    "cluster.secret": "s" * 32,
                }
            ),
            phase=lambda: "It waits.",
            silent_voters=silent,
        )
        async with served(loop, OPERATIONS, ports) as http:
            answer = await http.get("/ready")
            told = await answer.json()
            assert answer.status == 503
            assert [reason["sentence"] for reason in told["reasons"]] == [
                "It waits.",
                "No quorum: 1 of 3 voters, 2 needed; nodes 2 and 3 do not answer.",
                "Voter 2 does not answer: connection refused.",
                "Voter 3 does not answer: connection refused.",
            ]
            assert (await http.get("/health")).status == 200
            quorum = await (await http.get("/v1/quorum")).json()
            assert not quorum["is_known_by_leader"]
            assert quorum["reason"].startswith("No quorum: 1 of 3 voters, 2 needed; nodes 2 and 3 do not answer")
            assert [voter["log_end_offset"] for voter in quorum["voters"]] == [None, None, None]

    run(scenario)
