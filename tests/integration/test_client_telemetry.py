"""Apache Kafka's own client pushes what a subscription of Kafka's own tool asks for (KIP-714)."""

from __future__ import annotations

import asyncio

import pytest
from memory_node import World, create_topic

from penstock.local.apache_kafka.jars import KafkaJars
from penstock.local.apache_kafka.tools import run_tool
from penstock.protocol.errors import ErrorCode

pytestmark = pytest.mark.integration

RECORDS = 100
RECORDS_PER_SECOND = 20
SENT = "org_apache_kafka_producer_record_send_total"
ATTEMPTS = 3


def test_a_java_producer_pushes_the_metrics_that_kafkas_tool_subscribes_to(kafka_jars: KafkaJars) -> None:
    def run(tool: str, *arguments: str | int) -> None:
        result = run_tool(kafka_jars, tool, *arguments)
        assert result.exit_code == 0, result.output

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with World().running() as (node, connection):
            assert await create_topic(connection, "orders") is ErrorCode.NONE
            bootstrap = f"127.0.0.1:{node.bound_ports['PLAINTEXT']}"
            subscription = ("--metrics", "org.apache.kafka.producer.", "--interval", 200)
            match = ("--match", "client_id=shop,client_software_name=apache-kafka-java")
            await loop.run_in_executor(
                None,
                lambda: run(
                    *("client-metrics", "--bootstrap-server", bootstrap, "--alter", "--name", "producers"),
                    *subscription,
                    *match,
                ),
            )

            def produce() -> None:
                run(
                    *("producer-perf-test", "--topic", "orders"),
                    *("--num-records", RECORDS, "--record-size", 10, "--throughput", RECORDS_PER_SECOND),
                    *("--producer-props", f"bootstrap.servers={bootstrap}", "client.id=shop"),
                )

            def sent() -> float:
                families = node.parts.telemetry.collect()
                return sum(one.value for family in families for one in family.samples if one.name == SENT)

            for _ in range(ATTEMPTS):
                await loop.run_in_executor(None, produce)
                # On a busy machine one may take so long to connect that it has to hurry, and is gone before it is told
                # what to push.
                if sent() > 0:
                    break
            # A client collects when it likes, at its end, too: what it sent after its last look is in no push.
            assert RECORDS // 2 < sent() <= RECORDS
            names = {family.name for family in node.parts.telemetry.collect() if "org_apache" in family.name}
            assert all(name.startswith("org_apache_kafka_producer_") for name in names)

    asyncio.run(scenario())
