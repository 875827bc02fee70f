"""Permissions that change while clients run: nothing is decided that the committed ACLs of its moment forbid.

A client creates topics through any node, another gives and takes the permission through any node, and nodes are cut off
and killed. The judge follows the metadata log: whether each topic was allowed by the ACLs before it.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from kio.schema.create_acls.v3.request import AclCreation, CreateAclsRequest
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.delete_acls.v3.request import DeleteAclsFilter, DeleteAclsRequest
from kio.schema.types import TopicName
from kio.static.primitive import i8, i16, i32
from simulated_nodes import GONE, NODES, SETTINGS, SimulatedNodes, simulated_nodes

from penstock.chaos.simulation.cluster.machine import BROKER_PORT, host_of
from penstock.chaos.simulation.cluster.process import Process
from penstock.client.connection import connect
from penstock.protocol.acls import CLUSTER_NAME, AclOperation, PatternType, PermissionType, ResourceType
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.quorum.decisions import change
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import MetadataImage
from penstock.quorum.permissions.ruling import AuthorizerSettings, rule

ADMIN, SUBJECT = "10.0.1.1", "10.0.1.2"
PRINCIPAL = "User:ANONYMOUS"
OPEN = AuthorizerSettings(allows_without_acls=True)
AUTHORIZED = {
    **SETTINGS,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Until the first ACL.
    "allow.everyone.if.no.acl.found": "true",
}
PREFIX = "subject-"
SECONDS = 12
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def acl(host: str, resource_type: ResourceType, name: str, operation: AclOperation) -> AclCreation:
    return AclCreation(
        resource_type=i8(resource_type),
        resource_name=name,
        resource_pattern_type=i8(PatternType.LITERAL),
        principal=PRINCIPAL,
        host=host,
        operation=i8(operation),
        permission_type=i8(PermissionType.ALLOW),
    )


GIVEN = acl(SUBJECT, ResourceType.CLUSTER, CLUSTER_NAME, AclOperation.CREATE)
TAKEN = DeleteAclsFilter(
    resource_type_filter=i8(ResourceType.ANY),
    resource_name_filter=None,
    pattern_type_filter=i8(PatternType.ANY),
    principal_filter=None,
    host_filter=SUBJECT,
    operation=i8(AclOperation.ANY),
    permission_type=i8(PermissionType.ANY),
)


class Judge:
    """Sees each entry of the metadata log, and the image before it."""

    def __init__(self) -> None:
        self.offset = -1
        self.forbidden: list[str] = []
        self.created: set[str] = set()

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        names = [topic.name for topic in delta.topics.changed.values() if topic.name.startswith(PREFIX)]
        new = [name for name in names if name not in delta.base.topics.by_name]
        if delta.is_gathered or image.offset <= self.offset:
            return
        self.offset = image.offset
        resource = (ResourceType.CLUSTER, CLUSTER_NAME)
        ruling = rule(delta.base.acls, OPEN, PRINCIPAL, SUBJECT, AclOperation.CREATE, resource)
        self.created.update(new)
        if not ruling.is_allowed:
            self.forbidden += new


class Life:
    """One run."""

    def __init__(self, nodes: SimulatedNodes, seed: int) -> None:
        self.nodes = nodes
        self.random = Random(seed)
        self.judge = Judge()
        self.subject = Process("subject", SUBJECT)
        self.answers: dict[str, ErrorCode] = {}
        self.is_over = False
        nodes._processes.append(self.subject)

    async def call(self, request: Any) -> Any:
        node_id = self.random.choice(NODES)
        try:
            async with await connect(host_of(node_id), BROKER_PORT, timeout_ms=2_000) as connection:
                return await connection.call(request, timeout_ms=4_000)
        except (*GONE, KafkaError):
            return None

    async def administrate(self) -> None:
        while not self.is_over:
            given = self.random.random() < 0.5
            await self.call(CreateAclsRequest(creations=(GIVEN,)) if given else DeleteAclsRequest(filters=(TAKEN,)))
            await asyncio.sleep(self.random.random() * 0.2)

    async def create(self, worker: int) -> None:
        number = 0
        while not self.is_over:
            number += 1
            name = f"{PREFIX}{worker}-{number}"
            topic = CreatableTopic(
                name=TopicName(name), num_partitions=i32(1), replication_factor=i16(1), assignments=(), configs=()
            )
            answer = await self.call(CreateTopicsRequest(topics=(topic,)))
            if answer is not None:
                self.answers[name] = ErrorCode(int(answer.topics[0].error_code))
            await asyncio.sleep(self.random.random() * 0.02)

    def live(self) -> None:
        nodes = self.nodes
        first = (
            acl(ADMIN, ResourceType.CLUSTER, CLUSTER_NAME, AclOperation.ALL),
            acl(ADMIN, ResourceType.TOPIC, "*", AclOperation.ALL),
        )
        assert nodes.ask(lambda: self.call(CreateAclsRequest(creations=first))) is not None
        for machine in nodes.machines.values():
            assert machine.node is not None
            machine.node._publishers.add(self.judge)
        loop = nodes.loop
        tasks = [nodes.client.run(lambda: loop.create_task(self.administrate()))]
        for worker in range(4):
            tasks.append(self.subject.run(lambda worker=worker: loop.create_task(self.create(worker))))  # type: ignore[misc]
        end_s = loop.time() + SECONDS
        while loop.time() < end_s:
            nodes.pass_ms(self.random.randrange(500, 3_000))
            one = self.random.choice(NODES)
            if self.random.random() < 0.5:
                nodes.isolate(one)
                nodes.pass_ms(self.random.randrange(200, 2_000))
                nodes.heal()
        self.is_over = True
        nodes.wait(lambda: all(task.done() for task in tasks), "end of all clients")


@pytest.mark.parametrize("seed", [1])
def test_no_topic_is_created_that_the_acls_before_it_forbid(seed: int) -> None:
    with simulated_nodes(1, settings=AUTHORIZED, seed=seed) as nodes:
        life = Life(nodes, seed)
        life.live()
    assert life.judge.forbidden == []
    created, answered = life.judge.created, life.answers
    assert len(created) > 5
    assert sum(code is DENIED for code in answered.values()) > 5
    assert not created & {name for name, code in answered.items() if code is DENIED}


def test_without_the_controller_s_own_question_some_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The brokers' ACLs are older than the controller's: the judge sees what comes of that."""
    monkeypatch.setattr(change, "check_requester", lambda *_: None)
    for seed in range(1, 9):
        with simulated_nodes(1, settings=AUTHORIZED, seed=seed) as nodes:
            life = Life(nodes, seed)
            life.live()
        if life.judge.forbidden:
            return
    pytest.fail("no run had a topic that was forbidden when it was created")
