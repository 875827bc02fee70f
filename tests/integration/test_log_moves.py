"""Real nodes whose logs move between log directories, under load, while nodes are killed; and Kafka's own tool for it.

`PENSTOCK_TEST_MOVES` is how many rounds of moves and kills there are (4; more in a soak).
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kio.schema.alter_replica_log_dirs.v2.request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32
from numbered_load import DEADLINE_S, NumberedLoad, read_all
from waiting import wait_for

from penstock.client.cluster_metadata import ask_metadata
from penstock.client.connection import connect
from penstock.local.apache_kafka.jars import KafkaJars
from penstock.local.apache_kafka.tools import run_tool
from penstock.local.cluster import LocalCluster
from penstock.local.local_node import LocalNode

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TOPIC: Final = "moved"
PARTITIONS: Final = 3
NODES: Final = (1, 2, 3)
ROUNDS: Final = int(os.environ.get("PENSTOCK_TEST_MOVES", "4"))
RECORDS_BETWEEN: Final = 2_000
RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"


def directories(node: LocalNode) -> tuple[str, str]:
    return str(node.data), f"{node.data}-more"


def properties_of(node: LocalNode) -> dict[str, str]:
    return {"log.dirs": ",".join(directories(node))}


def folders(node: LocalNode, index: int) -> dict[str, list[str]]:
    """Of one partition, by its directory: without those that are to be removed."""
    return {
        path: [one.name for one in Path(path).glob(f"{TOPIC}-{index}*") if not one.name.endswith("-delete")]
        for path in directories(node)
    }


def place(node: LocalNode, index: int) -> str | None:
    """Where it is; None while it moves."""
    found = [path for path, names in folders(node, index).items() if names]
    return found[0] if len(found) == 1 and folders(node, index)[found[0]] == [f"{TOPIC}-{index}"] else None


def move(node: LocalNode, targets: dict[int, str]) -> None:
    async def ask() -> None:
        async with await connect(node.host, node.port) as connection:
            wanted = tuple(
                AlterReplicaLogDir(
                    path=path, topics=(AlterReplicaLogDirTopic(name=TopicName(TOPIC), partitions=(i32(index),)),)
                )
                for index, path in targets.items()
            )
            answer: Any = await connection.call(AlterReplicaLogDirsRequest(dirs=wanted))
            assert {one.error_code for topic in answer.results for one in topic.partitions} == {0}

    asyncio.run(ask())


@pytest.mark.parametrize("flush_messages", [None, 1], ids=["page cache", "flush.messages=1"])
def test_moves_and_kills_under_load_lose_nothing(tmp_path: Path, flush_messages: int | None) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
    sys.stdout.write(
        f"replay: PENSTOCK_TEST_SEED={seed} PENSTOCK_TEST_MOVES={ROUNDS} pytest tests/integration/test_log_moves.py\n"
    )
    generator = random.Random(seed)
    config = {"segment.bytes": "1048576", "min.insync.replicas": "2"}
    config |= {"flush.messages": str(flush_messages)} if flush_messages else {}
    with LocalCluster(tmp_path / "cluster", node_count=len(NODES), properties_of=properties_of) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, len(NODES), config=config)])[TOPIC].result(DEADLINE_S)

        def in_sync() -> bool:
            partitions = ask_metadata(admin, TOPIC).topics[TOPIC].partitions
            return [len(one.isrs) for one in partitions.values()] == [len(NODES)] * PARTITIONS

        def are_settled() -> bool:
            return all(place(node, index) for node in cluster.nodes.values() for index in range(PARTITIONS))

        load = NumberedLoad(cluster.bootstrap, TOPIC, PARTITIONS, generator)
        load.send_until(RECORDS_BETWEEN)
        for _ in range(ROUNDS):
            wait_for(in_sync, "all replicas in sync")
            wait_for(are_settled, "no move is under way")
            targets = {}
            for node in cluster.nodes.values():
                first, second = directories(node)
                for index in range(PARTITIONS):
                    targets[node.id, index] = second if place(node, index) == first else first
                move(node, {index: targets[node.id, index] for index in range(PARTITIONS)})
            load.send_until(load.acknowledged_count + generator.randrange(1, 400))
            killed = generator.choice(NODES)
            cluster.kill_node(killed)
            load.send_until(load.acknowledged_count + generator.randrange(1, RECORDS_BETWEEN))
            cluster.start_node(killed)
            for (node_id, index), path in targets.items():
                wait_for(lambda: place(cluster.nodes[node_id], index) == path, "the log where it was to be")  # noqa: B023
        load.finish()
        wait_for(in_sync, "all replicas in sync")
        for index in range(PARTITIONS):
            stored = read_all(cluster.bootstrap, TOPIC, index)
            assert stored == [(number, number) for number in range(load.sent[index])]
            assert set(load.acknowledged[index]) <= set(stored)
        cluster.stop()
        for index in range(PARTITIONS):
            replicas = [stored_bytes(node, index) for node in cluster.nodes.values()]
            assert replicas[0]
            assert all(one == replicas[0] for one in replicas)


def stored_bytes(node: LocalNode, index: int) -> bytes:
    path = place(node, index)
    assert path is not None, folders(node, index)
    return b"".join(one.read_bytes() for one in sorted(Path(path, f"{TOPIC}-{index}").glob("*.log")))


def test_kafka_reassign_partitions_moves_between_directories(tmp_path: Path, kafka_jars: KafkaJars) -> None:
    with LocalCluster(tmp_path / "cluster", properties_of=properties_of) as cluster:
        node = cluster.nodes[1]
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(DEADLINE_S)
        load = NumberedLoad(cluster.bootstrap, TOPIC, 1, random.Random(1))
        load.send_until(20_000)
        load.finish()
        wait_for(lambda: place(node, 0) is not None, "the log")
        target = next(path for path in directories(node) if path != place(node, 0))
        wanted = tmp_path / "wanted.json"
        partition = {"topic": TOPIC, "partition": 0, "replicas": [1], "log_dirs": [target]}
        wanted.write_text(json.dumps({"version": 1, "partitions": [partition]}))

        def reassign(*arguments: str) -> str:
            result = run_tool(
                kafka_jars,
                "reassign-partitions",
                "--bootstrap-server",
                cluster.bootstrap,
                "--reassignment-json-file",
                str(wanted),
                *arguments,
            )
            assert result.exit_code == 0, result.output
            return result.output

        # So slow that it is still under way when the tool looks.
        started = reassign("--execute", "--replica-alter-log-dirs-throttle", "2000")
        assert "Successfully started moving log directory" in started, started
        shown = reassign("--verify")
        assert "is still in progress" in shown, shown
        faster = reassign("--execute", "--additional", "--replica-alter-log-dirs-throttle", "1000000000")
        assert "Successfully started" in faster, faster
        wait_for(lambda: place(node, 0) == target, "the log in its new directory")
        verified = reassign("--verify")
        assert re.search(rf"Reassignment of replica {TOPIC}-0-1 completed successfully", verified), verified
        assert "Clearing broker-level throttles" in verified, verified
        assert read_all(cluster.bootstrap, TOPIC, 0) == [(number, number) for number in range(load.sent[0])]
