"""The HTTP administration of a node that is a controller and no broker, with a broker beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from admin_http import served
from controller_and_broker import BROKER, CONTROLLER, DEADLINE_S, NONE, NOW_MS, controller_and_broker, node, told
from memory_node import create_topic, produce
from waiting import ask_until

from penstock.broker.admin.operations import OPERATIONS
from penstock.broker.node.admin_ports import ports_of
from penstock.client.connection import connect
from penstock.protocol.errors import ErrorCode

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
ACL = {
    "resource_type": "TOPIC",
    "resource_name": "t",
    "pattern_type": "LITERAL",
    "principal": "User:ada",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}


def test_a_controller_tells_that_it_is_well_and_leads() -> None:
    async def scenario() -> None:
        async with controller_and_broker() as (_, _, http):
            for path in ("/health", "/ready", "/ready?caught_up=true"):
                health = await told(http, path)
                assert (health["is_ok"], health["state"], health["node_id"]) == (True, "running", CONTROLLER)
                assert not health["reasons"]
                assert not health["warnings"]
            quorum = await told(http, "/v1/quorum")
            assert (quorum["is_known_by_leader"], quorum["leader_id"]) == (True, CONTROLLER)
            assert [(voter["node_id"], voter["lag"]) for voter in quorum["voters"]] == [(CONTROLLER, 0)]
            observed = await ask_until(
                lambda: told(http, "/v1/quorum"), lambda one: one["observers"], "the broker follows"
            )
            assert [one["node_id"] for one in observed["observers"]] == [BROKER]
            taken = await (await http.post("/v1/quorum/snapshots", json={})).json()
            assert ([one["node_id"] for one in taken["snapshots"]], taken["unanswered"]) == ([CONTROLLER], [])

    asyncio.run(scenario())


def test_metrics_of_a_controller_are_those_of_the_quorum_and_none_of_replicas() -> None:
    async def scenario() -> None:
        async with controller_and_broker() as (_, _, http):
            answer = await http.get("/metrics")
            assert answer.status == 200
            text = await answer.text()
            assert "kafka_controller_kafkacontroller_activebrokercount 1.0" in text
            assert "kafka_server_raftmetrics_" in text
            assert "kafka_server_replicamanager_partitioncount" not in text

    asyncio.run(scenario())


def test_what_brokers_know_is_asked_of_them_and_changes_go_through() -> None:
    async def scenario() -> None:
        async with controller_and_broker() as (_, broker, http):
            async with await connect("127.0.0.1", broker.bound_ports["PLAINTEXT"]) as connection:
                await create_topic(connection, "t", 2)
                assert await produce(connection, "t", b"x", 1) is ErrorCode.NONE
            overview = await told(http, "/v1/topics?topic=t")
            (topic,) = overview["topics"]
            assert overview["unanswered"] == []
            assert [one["high_watermark"] for one in topic["partitions"]] == [0, 1]
            nodes = {one["node_id"]: one for one in (await told(http, "/v1/nodes"))["nodes"]}
            assert nodes[CONTROLLER]["roles"] == ["controller"]
            assert (nodes[BROKER]["roles"], nodes[BROKER]["state"]) == (["broker"], "running")

            changed = await http.patch("/v1/configs/topic/t", json={"set": {"retention.ms": "5000"}})
            assert changed.status == 204, await changed.text()
            (retention,) = (await told(http, "/v1/configs/topic/t?keys=retention.ms"))["configs"]
            assert retention["value"] == "5000"
            drained = await (await http.put(f"/v1/brokers/{BROKER}/maintenance", json={})).json()
            assert drained["is_drained"]
            features = {one["name"]: one for one in (await told(http, "/v1/features"))["features"]}
            assert features["group.version"]["level"] == 1
            supporting = {(one["node_id"], one["role"]) for one in features["group.version"]["nodes"]}
            assert supporting == {(BROKER, "broker"), (CONTROLLER, "controller")}
            elected = await http.post("/v1/elections", json={"type": "preferred"})
            assert elected.status == 200, await elected.text()

    asyncio.run(scenario())


@pytest.mark.parametrize(("properties", "status"), [(NONE, 501), (AUTHORIZER, 201)])
def test_acls_are_had_at_a_controller_as_at_a_broker(properties: Mapping[str, str], status: int) -> None:
    async def scenario() -> None:
        async with controller_and_broker(properties) as (controller, _, http):
            (cluster,) = (await told(http, "/v3/clusters"))["data"]
            acls = cluster["acls"]["related"]
            assert (await http.post(acls, json=ACL)).status == status
            assert len(controller.metadata.image.acls.by_id) == (status == 201)
            assert (await http.get(acls)).status == (200 if status == 201 else status)

    asyncio.run(scenario())


def test_a_controllers_own_loggers_and_configs_are_described_and_set_at_the_controller() -> None:
    async def scenario() -> None:
        async with controller_and_broker() as (_, _, http):
            (own,) = (await told(http, f"/v1/configs/broker/{CONTROLLER}?keys=node.id"))["configs"]
            assert own["value"] == str(CONTROLLER)
            path, logger = f"/v1/configs/broker-logger/{CONTROLLER}", "penstock.broker.node"
            changed = await http.patch(path, json={"set": {logger: "DEBUG"}})
            assert changed.status == 204, await changed.text()
            try:
                (level,) = (await told(http, f"{path}?keys={logger}"))["configs"]
                assert level["value"] == "DEBUG"
            finally:
                assert (await http.patch(path, json={"unset": [logger]})).status == 204

    asyncio.run(scenario())


def test_a_controller_without_a_leader_is_healthy_and_not_ready() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        alone = node(
            {
                "node.id": str(CONTROLLER),
                "process.roles": "controller",
                "listeners": "CONTROLLER://127.0.0.1:0",
                "cluster.id": "4L6g3nShT-eMCtK--X86sw",
            },
            # Nothing listens there.
            f"{CONTROLLER}@127.0.0.1:1,{BROKER}@127.0.0.1:1",
        )
        starting = loop.create_task(alone.start())
        try:
            ports = ports_of(alone, alone.config, loop, lambda: NOW_MS, started_ms=lambda: None)
            async with asyncio.timeout(DEADLINE_S), served(loop, OPERATIONS, ports) as http:
                assert (await told(http, "/health"))["is_ok"]
                health = await ask_until(
                    lambda: told(http, "/ready", 503),
                    lambda one: one["state"] == "running",
                    "a controller has started before there is a quorum",
                )
                assert [reason["sentence"] for reason in health["reasons"]] == [
                    "The metadata quorum has no leader: no quorum: 1 of 2 voters, 2 needed; node 2 does not answer."
                ]
                assert [warning["kind"] for warning in health["warnings"]] == ["silent-voter"]
                assert not (await told(http, "/v1/quorum"))["is_known_by_leader"]
                assert (await http.get("/metrics")).status == 200
        finally:
            await asyncio.wait({starting})
            await alone.stop()

    asyncio.run(scenario())
