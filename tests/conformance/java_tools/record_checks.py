"""Records: in and out with each codec, with keys and headers; offsets, deletion, load."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from .tools import Tools, require, values

VERIFIABLE_COUNT = 20_000
PERFORMANCE_COUNT = 20_000
KEYED_COUNT = 40
KEYED_PARTITIONS = 4


def console_round_trip(codec: str) -> Callable[[Tools], None]:
    """50 records with this codec."""

    def check(tools: Tools) -> None:
        topic = tools.new_topic()
        tools.produce(topic, 50, "--compression-codec", codec)
        consumed = tools.consume(topic, 0, 50)
        require(consumed == values(50), f"{len(consumed)} lines came back", "\n".join(consumed))

    check.__name__ = f"console_{codec}"
    return check


def console_keys_headers_partitions(tools: Tools) -> None:
    topic = tools.new_topic(KEYED_PARTITIONS)
    tools(
        "console-producer",
        *("--topic", topic, "--property", "parse.key=true", "--property", "key.separator=:"),
        *("--property", "parse.headers=true"),
        stdin="".join(f"h1:v{number}\tk{number % 7}:val{number}\n" for number in range(KEYED_COUNT)),
    )
    shown = ("key", "headers", "partition", "timestamp", "offset")
    lines = []
    for partition, count in enumerate(tools.end_offsets(topic)):
        if count:
            properties = [argument for what in shown for argument in ("--property", f"print.{what}=true")]
            lines += tools.consume(topic, partition, count, *properties)
    pattern = re.compile(r"CreateTime:\d+\tPartition:(\d+)\tOffset:\d+\th1:v(\d+)\tk(\d)\tval\2")
    found = [pattern.fullmatch(line) for line in lines]
    require(len(found) == KEYED_COUNT and all(found), "not all records came back whole", "\n".join(lines))
    partitions: dict[str, set[str]] = {}
    for match in found:
        if match:
            partitions.setdefault(match[3], set()).add(match[1])
    require(all(len(one) == 1 for one in partitions.values()), f"a key is in two partitions: {partitions}")


def get_offsets(tools: Tools) -> None:
    topic = tools.new_topic(2)
    tools.produce(topic, 25)
    require(sum(tools.end_offsets(topic)) == 25, "the latest offsets are not those of 25 records")
    earliest = tools("get-offsets", "--topic", topic, "--time", "earliest")
    offsets = set(re.findall(rf"{re.escape(topic)}:\d+:(\d+)", earliest))
    require(offsets == {"0"}, "the earliest offsets are not 0", earliest)
    newest = tools("get-offsets", "--topic", topic, "--time", "max-timestamp")
    require(re.search(rf"{re.escape(topic)}:\d:\d+", newest), "no offset of the highest timestamp", newest)


def delete_records(tools: Tools) -> None:
    topic = tools.new_topic()
    tools.produce(topic, 20)
    wanted = tools.work / f"{tools.name}.json"
    wanted.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 12}]}))
    output = tools("delete-records", "--offset-json-file", str(wanted))
    require("low_watermark: 12" in output, "the low watermark is not 12", output)
    consumed = tools.consume(topic, 0, 8)
    require(consumed == values(20, start=12), "not the records from 12 on", "\n".join(consumed))


def producer_performance(tools: Tools) -> None:
    topic = tools.new_topic(3)
    output = tools.run(
        "producer-perf-test",
        *("--topic", topic, "--num-records", PERFORMANCE_COUNT, "--record-size", 200, "--throughput", -1),
        *("--producer-props", f"bootstrap.servers={tools.bootstrap}", "acks=all", "compression.type=lz4"),
    )
    require(f"{PERFORMANCE_COUNT} records sent" in output, "not all were sent", output)
    require(sum(tools.end_offsets(topic)) == PERFORMANCE_COUNT, "not all are there")


def e2e_latency(tools: Tools) -> None:
    topic = tools.new_topic()
    output = tools(
        "e2e-latency", "--topic", topic, "--num-records", 200, "--producer-acks", "all", "--record-size", 100
    )
    require("Avg latency" in output, "no latency", output)


def verifiable_producer(tools: Tools) -> None:
    topic = tools.new_topic(3)
    acknowledged = send_verifiably(tools, topic)
    require(len(acknowledged) == VERIFIABLE_COUNT, f"acknowledged {len(acknowledged)} of {VERIFIABLE_COUNT}")


def send_verifiably(tools: Tools, topic: str) -> set[tuple[int, int]]:
    """Partitions and offsets of what was acknowledged."""
    output = tools(
        "verifiable-producer",
        *("--topic", topic, "--max-messages", VERIFIABLE_COUNT, "--throughput", -1, "--acks", -1),
    )
    said = events(output)
    require(not any(event["name"] == "producer_send_error" for event in said), "some were not sent", output)
    sent = [event for event in said if event["name"] == "producer_send_success"]
    return {(event["partition"], event["offset"]) for event in sent}


def events(output: str) -> list[dict[str, Any]]:
    """What the verifiable clients say of themselves."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


CHECKS = (
    *(console_round_trip(codec) for codec in ("none", "gzip", "snappy", "lz4", "zstd")),
    console_keys_headers_partitions,
    get_offsets,
    delete_records,
    producer_performance,
    e2e_latency,
    verifiable_producer,
)
