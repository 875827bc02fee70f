"""HTTP administration of three nodes: any of them answers, and hostile clients harm none."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

from penstock.client.clock import wait_until
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
DEADLINE_S = 60
HTTP_API = Path(__file__).parents[2] / "docs" / "http-api-v1.md"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("admin") / "cluster", node_count=3) as running:
        yield running


def ask(address: str | None, path: str, *, method: str = "GET", body: Any = None) -> tuple[int, Any]:
    """The status, and the JSON of the answer."""
    data = None if body is None else json.dumps(body).encode()
    headers = {} if body is None else {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}{path}", data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def addresses(cluster: LocalCluster) -> list[str]:
    return [str(node.admin) for node in cluster.nodes.values()]


def create(cluster: LocalCluster, topic: str, partitions: int, replicas: int = 3) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    [created] = admin.create_topics([NewTopic(topic, partitions, replicas)]).values()
    created.result(DEADLINE_S)


def has_topic(address: str, topic: str) -> bool:
    return ask(address, f"/v1/topics?topic={topic}")[0] == 200


def is_healthy(address: str | None) -> bool:
    try:
        return ask(address, "/health")[0] == 200
    except OSError:
        # There was no place.
        return False


def is_led_by(address: str, leader_id: int) -> bool:
    return bool(ask(address, "/v1/quorum")[1]["leader_id"] == leader_id)


HEARD_MS = 5_000
"""A voter that the leader heard so lately is there."""


def has_whole_quorum(cluster: LocalCluster) -> bool:
    """Whether each node has the answer of the same leader, which hears all voters: other tests stop and kill some."""
    quorums = [ask(address, "/v1/quorum")[1] for address in addresses(cluster)]
    voters = [voter for one in quorums for voter in one["voters"]]
    return (
        len({one["leader_id"] for one in quorums}) == 1
        and all(one["is_known_by_leader"] for one in quorums)
        and all(one["is_leader"] or is_heard(one["last_fetch_age_ms"]) for one in voters)
    )


def is_heard(age_ms: int | None) -> bool:
    return age_ms is not None and age_ms < HEARD_MS


def has_answers_of_all(cluster: LocalCluster, address: str) -> bool:
    """Whether this node has the addresses and the sizes of all nodes, none of which took too long to say them."""
    nodes = ask(address, "/v1/nodes?sizes=true")[1]["nodes"]
    return [node["admin"] for node in nodes] == [[one] for one in addresses(cluster)] and all(
        node["log_dirs"] and node["log_dirs"][0]["log_bytes"] is not None for node in nodes
    )


def has_high_watermarks(address: str, topic: str, expected: list[int]) -> bool:
    """Whether these are said, by partition: None is said of a leader that has to hear of the topic first."""
    _, told = ask(address, f"/v1/topics?topic={topic}")
    return [one["high_watermark"] for one in told["topics"][0]["partitions"]] == expected


def is_moved(address: str, topic: str, brokers: set[int]) -> bool:
    """Whether the replicas are on these brokers, and nothing moves any more."""
    _, told = ask(address, f"/v1/topics?topic={topic}")
    is_there = all(set(one["replicas"]) == brokers for one in told["topics"][0]["partitions"])
    return is_there and ask(address, "/v1/reassignments")[1]["count"] == 0


def test_every_node_tells_of_quorum_nodes_and_topics(cluster: LocalCluster) -> None:
    create(cluster, "seen", 3)
    wait_for(partial(has_whole_quorum, cluster), "all nodes know the same leader")
    for address in addresses(cluster):
        # A change is known to the node that answered it; the others learn it from the log.
        wait_for(partial(has_topic, address, "seen"), "the node has the topic")
        wait_for(partial(has_answers_of_all, cluster, address), "all nodes answer the one that is asked")
        status, told = ask(address, "/v1/nodes?sizes=true")
        assert status == 200
        assert sum(node["leader_count"] for node in told["nodes"]) >= 3
        wait_for(partial(has_high_watermarks, address, "seen", [0, 0, 0]), "the leaders say where the partitions end")
        other = next(node.id for node in cluster.nodes.values() if node.admin != address)
        assert ask(address, f"/v1/configs/broker/{other}?keys=node.id")[1]["configs"][0]["value"] == str(other)


def test_the_quorum_is_handed_over_and_has_snapshots_at_any_node(cluster: LocalCluster) -> None:
    wait_for(partial(has_whole_quorum, cluster), "all nodes know the same leader")
    for address, target_id in zip(addresses(cluster), (2, 3, 1), strict=True):
        assert ask(address, "/v1/quorum/transfer", method="POST", body={"to": target_id}) == (
            200,
            {"leader_id": target_id},
        )
        wait_for(partial(is_led_by, address, target_id), "the node knows")
    _, taken = ask(addresses(cluster)[0], "/v1/quorum/snapshots", method="POST", body={})
    assert ([one["node_id"] for one in taken["snapshots"]], taken["unanswered"]) == ([1, 2, 3], [])
    _, listed = ask(addresses(cluster)[1], "/v1/quorum/snapshots")
    assert {one["node_id"] for one in listed["snapshots"]} == {1, 2, 3}


def test_a_broker_is_drained_by_any_node_and_its_partitions_are_moved(cluster: LocalCluster) -> None:
    create(cluster, "moved", 3, 2)
    # A change is known to the node that answered it; the others learn it from the log, so each is waited for.
    first, second, third = addresses(cluster)
    wait_for(partial(has_topic, second, "moved"), "the node has the topic")
    status, drained = ask(second, "/v1/brokers/3/maintenance", method="PUT", body={})
    assert (status, drained["is_drained"]) == (200, True)

    def may_stop() -> bool:
        state = ask(first, "/v1/brokers/3/maintenance")[1]
        return bool(state["is_drained"] and state["leadership_count"] == 0 and state["may_stop"])

    def kinds() -> list[str]:
        return [one["kind"] for one in ask(third, "/ready")[1]["warnings"]]

    wait_for(may_stop, lambda: f"it may be stopped: {ask(first, '/v1/brokers/3/maintenance')}")
    wait_for(lambda: kinds() == ["drained"], lambda: f"the only warning is that a broker is drained: {kinds()}")
    wanted = {"topics": ["moved"], "brokers": [1, 2]}

    def planned() -> Any:
        return ask(first, "/v1/reassignments", method="POST", body={**wanted, "validate_only": True})[1]

    # A leader tells how much it has once its replica is there.
    wait_for(lambda: planned()["bytes_to_copy"] == 0, lambda: f"nothing is to be copied: {planned()}")
    plan = planned()
    assert plan["move_count"] > 0
    assert plan["begun_count"] == 0
    _, begun = ask(third, "/v1/reassignments", method="POST", body=wanted)
    assert (begun["begun_count"], begun["results"]) == (plan["move_count"], [])
    for address in (first, second, third):
        wait_for(partial(is_moved, address, "moved", {1, 2}), "the moves have ended")
    assert not ask(first, "/v1/brokers/3/maintenance", method="DELETE")[1]["is_drained"]


def status_of(connection: socket.socket) -> bytes:
    """Nothing of one that was closed to make room before the node had read its request."""
    try:
        return connection.recv(12)
    except ConnectionResetError:
        return b""


def test_hostile_clients_are_closed_and_others_are_served(cluster: LocalCluster) -> None:
    node = cluster.nodes[1]
    assert node.admin_port is not None

    def connected(stack: ExitStack, first: bytes) -> socket.socket:
        connection = stack.enter_context(socket.create_connection(("127.0.0.1", node.admin_port or 0), DEADLINE_S))
        connection.sendall(first)
        return connection

    with ExitStack() as stack:
        huge = connected(stack, b"GET / HTTP/1.1\r\nX: " + b"x" * 60_000)
        assert b" 400 " in huge.recv(4096)
        many = connected(stack, b"GET / HTTP/1.1\r\n" + b"".join(b"X%d: 1\r\n" % one for one in range(500)) + b"\r\n")
        assert b" 400 " in many.recv(4096)
        rebound = connected(stack, b"GET /v1/nodes HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert b" 421 " in rebound.recv(4096)
        form = connected(
            stack,
            b"POST /v1/elections HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
        )
        assert b" 415 " in form.recv(4096)
        linked = connected(
            stack,
            b"GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\n\r\n",
        )
        assert b" 403 " in linked.recv(4096)
        large = connected(
            stack,
            b"POST /v1/elections HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 99999999\r\n\r\n" + b" " * 70_000,
        )
        assert b" 413 " in large.recv(4096)
        smuggled = connected(
            stack,
            b"POST /v1/elections HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        )
        assert b" 400 " in smuggled.recv(4096)
        held = [connected(stack, b"GET / HTTP/1.1\r\nX: ") for _ in range(300)]
        # In a moment one that is idle makes room.
        wait_for(partial(is_healthy, node.admin), "one more client is served")
        streams = [connected(stack, b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n") for _ in range(40)]
        statuses = [status_of(one) for one in streams]
        assert b"HTTP/1.1 503" in statuses
        wait_for(partial(is_healthy, node.admin), "one more client is served")
        assert len(held) == 300


def test_every_command_of_the_documentation_works(cluster: LocalCluster) -> None:
    create(cluster, "payments", 3)
    _, told = ask(addresses(cluster)[0], "/v3/clusters")
    environment = {
        **os.environ,
        "ADMIN": addresses(cluster)[0],
        "CLUSTER_ID": told["data"][0]["cluster_id"],
    }
    wait_for(partial(has_whole_quorum, cluster), "all nodes know the same leader")
    wait_for(partial(has_topic, addresses(cluster)[0], "payments"), "the node has the topic")
    wait_for(partial(has_high_watermarks, addresses(cluster)[0], "payments", [0, 0, 0]), "its leaders have it")
    blocks = re.findall(r"^```sh\n(.*?)^```", HTTP_API.read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines() if line.startswith("curl ")]
    assert lines
    for line in lines:
        result = subprocess.run(
            ["bash", "-c", line.replace("curl ", "curl -sS --fail-with-body ", 1)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        # 28: a stream that is followed for so long.
        is_stream = "--max-time" in line
        assert result.returncode == (28 if is_stream else 0), f"{line}\n{result.stdout}{result.stderr}"


def test_voters_that_are_frozen_are_silent_though_they_take_connections(cluster: LocalCluster) -> None:
    address = cluster.nodes[1].admin
    for node_id in (2, 3):
        cluster.pause_node(node_id)
    try:

        def told() -> dict[str, str]:
            _, health = ask(address, "/ready")
            return {one["sentence"]: one["kind"] for one in (*health["reasons"], *health["warnings"])}

        def are_silent() -> bool:
            return sum(kind == "silent-voter" for kind in told().values()) == 2

        wait_for(are_silent, lambda: f"both voters are silent: {told()}")
    finally:
        for node_id in (2, 3):
            cluster.resume_node(node_id)
        cluster.wait_ready()
    wait_for(lambda: "silent-voter" not in told().values(), lambda: f"no voter is silent: {told()}")


def test_without_a_quorum_every_node_says_which_voters_are_missing(cluster: LocalCluster) -> None:
    for node_id in (2, 3):
        cluster.kill_node(node_id)
    try:
        _ask_without_a_quorum(cluster)
    finally:
        # Other tests of this file may come behind it.
        for node_id in (2, 3):
            cluster.start_node(node_id)
        cluster.wait_ready()


def _ask_without_a_quorum(cluster: LocalCluster) -> None:
    address = cluster.nodes[1].admin
    sentence = "No quorum: 1 of 3 voters, 2 needed; nodes 2 and 3 do not answer"
    assert wait_until(
        lambda: str(ask(address, "/v1/quorum")[1]["reason"]).startswith(sentence), timeout_s=DEADLINE_S
    ), ask(address, "/v1/quorum")
    status, told = ask(address, "/ready")
    kinds = {one["kind"] for one in told["warnings"]}
    assert status in (200, 503)
    assert {"no-quorum-leader", "silent-voter"} <= kinds | {one["kind"] for one in told["reasons"]}
    assert ask(address, "/health")[0] == 200
    status, problem = ask(address, "/v1/quorum/transfer", method="POST", body={})
    assert (status, problem["title"]) == (503, "NOT_CONTROLLER")
    assert sentence in problem["detail"]
