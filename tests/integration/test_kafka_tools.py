"""Apache Kafka's own command line tools do their work here as they do on Apache Kafka."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.bench.anchor.jars import KafkaJars
from penstock.bench.anchor.tools import ToolResult, run_tool

Tool = Callable[..., ToolResult]
pytestmark = pytest.mark.integration


def create(kafka_tool: Tool, topic: str, partitions: int = 1, *arguments: str) -> str:
    kafka_tool("topics", "--create", "--topic", topic, "--partitions", partitions, *arguments)
    return topic


def produce_lines(kafka_tool: Tool, topic: str, count: int, *arguments: str) -> None:
    kafka_tool("console-producer", "--topic", topic, *arguments, stdin="".join(f"m{i}\n" for i in range(count)))


def consume_lines(kafka_tool: Tool, topic: str, partition: int, count: int, *arguments: str) -> list[str]:
    """The values of `count` records of one partition, without a group."""
    result = kafka_tool(
        "console-consumer",
        *("--topic", topic, "--partition", partition, "--offset", "earliest"),
        *("--max-messages", count, "--timeout-ms", 20000),
        *arguments,
    )
    return [line for line in result.lines if re.fullmatch(r"m\d+", line)]


def test_broker_api_versions_lists_what_is_served(kafka_tool: Tool) -> None:
    output = kafka_tool("broker-api-versions").output
    for api in ("Produce(0)", "Fetch(1)", "Metadata(3)", "ApiVersions(18)", "CreateTopics(19)"):
        assert api in output


def test_cluster_tool_prints_the_cluster_id(kafka_jars: KafkaJars, bootstrap: str) -> None:
    result = run_tool(kafka_jars, "cluster", "cluster-id", "--bootstrap-server", bootstrap)
    assert re.search(r"Cluster ID: [\w-]{22}", result.output), result.output


def test_features_tool_knows_our_feature_levels(kafka_jars: KafkaJars, bootstrap: str) -> None:
    result = run_tool(kafka_jars, "features", "--bootstrap-server", bootstrap, "describe")
    assert "Feature: metadata.version" in result.output, result.output


def test_topics_tool_creates_describes_alters_lists_and_deletes(kafka_tool: Tool, topic: str) -> None:
    create(kafka_tool, topic, 3, "--config", "retention.ms=3600000")
    described = kafka_tool("topics", "--describe", "--topic", topic).output
    assert "PartitionCount: 3" in described
    assert "retention.ms=3600000" in described
    assert len(re.findall(r"Leader: \d+", described)) == 3
    kafka_tool("topics", "--alter", "--topic", topic, "--partitions", 5)
    assert "PartitionCount: 5" in kafka_tool("topics", "--describe", "--topic", topic).output
    assert topic in kafka_tool("topics", "--list").lines
    assert "already exists" in kafka_tool("topics", "--create", "--topic", topic, check=False).output
    kafka_tool("topics", "--delete", "--topic", topic)
    assert topic not in kafka_tool("topics", "--list").lines


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--replication-factor", "99"), "InvalidReplicationFactor"),
        (("--replica-assignment", "99999"), "InvalidReplicaAssignment"),
    ],
)
def test_topics_tool_shows_why_a_topic_is_refused(
    kafka_tool: Tool, topic: str, arguments: tuple[str, ...], error: str
) -> None:
    result = kafka_tool("topics", "--create", "--topic", topic, *arguments, check=False)
    assert error in result.output
    assert topic not in kafka_tool("topics", "--list").lines


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_console_producer_and_consumer_round_trip(kafka_tool: Tool, topic: str, codec: str) -> None:
    create(kafka_tool, topic)
    produce_lines(kafka_tool, topic, 50, "--compression-codec", codec)
    assert consume_lines(kafka_tool, topic, 0, 50) == [f"m{i}" for i in range(50)]


def test_console_clients_carry_keys_headers_and_timestamps(kafka_tool: Tool, topic: str) -> None:
    create(kafka_tool, topic, 4)
    kafka_tool(
        "console-producer",
        *("--topic", topic, "--property", "parse.key=true", "--property", "key.separator=:"),
        *("--property", "parse.headers=true"),
        stdin="".join(f"h1:v{i}\tk{i % 7}:val{i}\n" for i in range(40)),
    )
    seen: dict[str, set[int]] = {}
    total = 0
    for partition in range(4):
        count = int(kafka_tool("get-offsets", "--topic-partitions", f"{topic}:{partition}").output.rsplit(":", 1)[1])
        if count == 0:
            continue
        result = kafka_tool(
            "console-consumer",
            *("--topic", topic, "--partition", partition, "--offset", "earliest", "--max-messages", count),
            *("--timeout-ms", 20000, "--property", "print.key=true", "--property", "print.headers=true"),
            *("--property", "print.timestamp=true"),
        )
        for line in result.lines:
            match = re.fullmatch(r"CreateTime:\d+\th1:v\d+\t(k\d)\tval\d+", line)
            if match:
                total += 1
                seen.setdefault(match[1], set()).add(partition)
    assert total == 40
    assert all(len(partitions) == 1 for partitions in seen.values()), seen


def test_get_offsets_tool_answers_latest_earliest_and_max_timestamp(kafka_tool: Tool, topic: str) -> None:
    create(kafka_tool, topic, 2)
    produce_lines(kafka_tool, topic, 25)
    latest = kafka_tool("get-offsets", "--topic", topic).output
    assert sum(map(int, re.findall(rf"{re.escape(topic)}:\d+:(\d+)", latest))) == 25
    earliest = kafka_tool("get-offsets", "--topic", topic, "--time", "earliest").output
    assert set(re.findall(rf"{re.escape(topic)}:\d+:(\d+)", earliest)) == {"0"}
    assert re.search(rf"{re.escape(topic)}:\d:\d+", kafka_tool("get-offsets", "--topic", topic, "--time", "-3").output)


def test_delete_records_tool_moves_the_log_start(kafka_tool: Tool, topic: str, tmp_path: Path) -> None:
    create(kafka_tool, topic)
    produce_lines(kafka_tool, topic, 20)
    wanted = tmp_path / "delete.json"
    wanted.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 12}]}))
    assert "low_watermark: 12" in kafka_tool("delete-records", "--offset-json-file", str(wanted)).output
    assert consume_lines(kafka_tool, topic, 0, 8) == [f"m{i}" for i in range(12, 20)]


def test_configs_tool_alters_a_topic_and_the_broker_obeys(kafka_tool: Tool, topic: str) -> None:
    create(kafka_tool, topic)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    kafka_tool("configs", "--alter", *entity, "--add-config", "max.message.bytes=1234,cleanup.policy=[compact,delete]")
    described = kafka_tool("configs", "--describe", *entity).output
    assert "max.message.bytes=1234" in described
    assert "cleanup.policy=compact,delete" in described
    kafka_tool("configs", "--alter", *entity, "--delete-config", "cleanup.policy")
    refused = kafka_tool("console-producer", "--topic", topic, stdin="k" * 3000 + "\n", check=False).output
    assert "RecordTooLarge" in refused or "larger than" in refused
    kafka_tool("configs", "--alter", *entity, "--delete-config", "max.message.bytes")
    assert "max.message.bytes=1234" not in kafka_tool("configs", "--describe", *entity).output


def test_configs_tool_describes_and_alters_brokers(kafka_tool: Tool) -> None:
    brokers = re.findall(r"\(id: (\d+) rack", kafka_tool("broker-api-versions").output)
    everything = kafka_tool("configs", "--describe", "--entity-type", "brokers", "--entity-name", brokers[0], "--all")
    assert "log.retention.hours=168" in everything.output
    default = ("--entity-type", "brokers", "--entity-default")
    kafka_tool("configs", "--alter", *default, "--add-config", "log.retention.ms=7200000")
    assert "log.retention.ms=7200000" in kafka_tool("configs", "--describe", *default).output
    kafka_tool("configs", "--alter", *default, "--delete-config", "log.retention.ms")
    assert "log.retention.ms=7200000" not in kafka_tool("configs", "--describe", *default).output


def test_log_dirs_tool_reports_sizes(kafka_tool: Tool, topic: str) -> None:
    create(kafka_tool, topic)
    produce_lines(kafka_tool, topic, 10)
    output = kafka_tool("log-dirs", "--describe", "--topic-list", topic).output
    described = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
    partitions = described["brokers"][0]["logDirs"][0]["partitions"]
    assert [entry["partition"] for entry in partitions] == [f"{topic}-0"]
    assert partitions[0]["size"] > 0


def test_verifiable_producer_has_every_record_acknowledged(kafka_tool: Tool, topic: str) -> None:
    create(kafka_tool, topic, 3)
    result = kafka_tool("verifiable-producer", "--topic", topic, "--max-messages", 5000, "--acks", -1)
    events = [json.loads(line) for line in result.lines if line.startswith("{")]
    sent = {(event["partition"], event["offset"]) for event in events if event["name"] == "producer_send_success"}
    assert len(sent) == 5000
    assert not [event for event in events if event["name"] == "producer_send_error"]


def test_producer_performance_tool_sends_all(
    kafka_jars: KafkaJars, bootstrap: str, kafka_tool: Tool, topic: str
) -> None:
    create(kafka_tool, topic, 3)
    result = run_tool(
        kafka_jars,
        "producer-perf-test",
        *("--topic", topic, "--num-records", 20000, "--record-size", 200, "--throughput", -1),
        *("--producer-props", f"bootstrap.servers={bootstrap}", "acks=all", "compression.type=lz4"),
    )
    assert "20000 records sent" in result.output, result.output
