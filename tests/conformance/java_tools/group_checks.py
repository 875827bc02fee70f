"""Groups: consumers of both protocols, share consumers, what the tools tell of them and change in them."""

from __future__ import annotations

import re
from collections.abc import Callable

from .record_checks import PERFORMANCE_COUNT, VERIFIABLE_COUNT, events, send_verifiably
from .tools import Tools, require


def console_protocol_consumer(tools: Tools) -> None:
    topic, group = tools.new_topic(2), tools.name
    tools.produce(topic, 20)
    consumed = tools.consume_in_group(topic, 20, group, "--consumer-property", "group.protocol=consumer")
    require(len(consumed) == 20, f"{len(consumed)} records came back", "\n".join(consumed))
    state = tools("consumer-groups", "--describe", "--group", group, "--state", check=False)
    require("Stable" in state or "Empty" in state, "no state", state)


def consumer_groups(tools: Tools) -> None:
    topic, group = tools.new_topic(2), tools.name
    tools.produce(topic, 30)
    require(len(tools.consume_in_group(topic, 30, group)) == 30, "not all records came")
    require(group in tools("consumer-groups", "--list").split(), "not listed")
    described = tools("consumer-groups", "--describe", "--group", group, check=False)
    committed = re.findall(rf"{re.escape(topic)}\s+\d+\s+(\d+)\s+\d+\s+\d+", described)
    require(sum(map(int, committed)) == 30, "not all offsets were committed", described)
    reset = ("--group", group, "--topic", topic, "--reset-offsets", "--execute")
    output = tools("consumer-groups", *reset, "--to-earliest")
    zeros = re.findall(rf"{re.escape(group)}\s+{re.escape(topic)}\s+\d\s+0", output)
    require(len(zeros) == 2, "not reset to the start", output)
    require(len(tools.consume_in_group(topic, 30, group)) == 30, "not all records came again")
    tools("consumer-groups", *reset, "--shift-by", -5)
    tools("consumer-groups", *reset, "--to-datetime", "2020-01-01T00:00:00.000")
    tools("consumer-groups", "--group", group, "--delete-offsets", "--topic", topic)
    tools("consumer-groups", "--group", group, "--delete", check=False)
    require(group not in tools("consumer-groups", "--list").split(), "still listed")


def groups_list(tools: Tools) -> None:
    tools("groups", "--list")


def share_consumer(tools: Tools) -> None:
    topic, group = tools.new_topic(), tools.name
    entity = ("--entity-type", "groups", "--entity-name", group)
    tools("configs", "--alter", *entity, "--add-config", "share.auto.offset.reset=earliest")
    tools.produce(topic, 20)
    output = tools(
        "console-share-consumer",
        *("--topic", topic, "--group", group, "--max-messages", 20, "--timeout-ms", 30000),
    )
    require(len(re.findall(r"^m\d+$", output, re.MULTILINE)) == 20, "not all records came", output)
    require(group in tools("share-groups", "--list").split(), "not listed")
    tools("share-groups", "--describe", "--group", group)


def consumer_performance(tools: Tools) -> None:
    topic = tools.new_topic(3)
    tools.run(
        "producer-perf-test",
        *("--topic", topic, "--num-records", PERFORMANCE_COUNT, "--record-size", 200, "--throughput", -1),
        *("--producer-props", f"bootstrap.servers={tools.bootstrap}"),
    )
    output = tools("consumer-perf-test", "--topic", topic, "--num-records", PERFORMANCE_COUNT, "--timeout", 30000)
    require(re.search(rf", {PERFORMANCE_COUNT}, ", output), "not all records came", output)


def verifiable(protocol: str) -> Callable[[Tools], None]:
    """The verifiable consumer of this protocol reads and commits what the verifiable producer was acknowledged."""

    def check(tools: Tools) -> None:
        topic = tools.new_topic(3)
        acknowledged = send_verifiably(tools, topic)
        require(len(acknowledged) == VERIFIABLE_COUNT, f"acknowledged {len(acknowledged)} of {VERIFIABLE_COUNT}")
        output = tools(
            "verifiable-consumer",
            *("--topic", topic, "--group-id", tools.name, "--group-protocol", protocol),
            *("--reset-policy", "earliest", "--max-messages", VERIFIABLE_COUNT),
        )
        total = sum(event["count"] for event in events(output) if event["name"] == "records_consumed")
        require(total == VERIFIABLE_COUNT, f"consumed {total} of {VERIFIABLE_COUNT}", output)
        committed = [event for event in events(output) if event["name"] == "offsets_committed" and event["success"]]
        require(committed, "nothing was committed", output)

    check.__name__ = f"verifiable_{protocol}"
    return check


CHECKS = (
    console_protocol_consumer,
    consumer_groups,
    groups_list,
    share_consumer,
    consumer_performance,
    verifiable("classic"),
    verifiable("consumer"),
)
