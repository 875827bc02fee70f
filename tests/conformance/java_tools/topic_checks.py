"""Topics: made, described, altered, listed, refused, deleted."""

from __future__ import annotations

import re

from penstock.client.clock import wait_until

from .tools import Tools, require

# Apache Kafka answers a deletion before every broker has heard of it.
DELETION_TIMEOUT_S = 30.0


def topics_life(tools: Tools) -> None:
    topic = tools.new_topic(3, "--config", "retention.ms=3600000")
    described = tools("topics", "--describe", "--topic", topic)
    require("PartitionCount: 3" in described, "not three partitions", described)
    require("retention.ms=3600000" in described, "the config is not described", described)
    require(len(re.findall(r"Leader: \d+", described)) == 3, "not three leaders", described)
    tools("topics", "--alter", "--topic", topic, "--partitions", 5)
    described = tools("topics", "--describe", "--topic", topic)
    require("PartitionCount: 5" in described, "not five partitions", described)
    require(topic in tools("topics", "--list").splitlines(), "not listed")
    again = tools("topics", "--create", "--topic", topic, check=False)
    require("already exists" in again, "made a second time", again)
    tools("topics", "--delete", "--topic", topic)
    is_gone = wait_until(
        lambda: topic not in tools("topics", "--list").splitlines(), timeout_s=DELETION_TIMEOUT_S, interval_s=0.5
    )
    require(is_gone, "still listed after its deletion")


def topics_bad_requests(tools: Tools) -> None:
    for arguments, error in (
        (("--topic", tools.name, "--replication-factor", 99), "InvalidReplicationFactor"),
        (("--topic", tools.name, "--replica-assignment", 99999), "InvalidReplicaAssignment"),
        (("--topic", f"a b {tools.run_id}"), "InvalidTopic"),
    ):
        output = tools("topics", "--create", *arguments, check=False)
        require(error in output, f"{arguments} was not refused as {error}", output)
    topic = tools.new_topic()
    entity = ("--entity-type", "topics", "--entity-name", topic)
    output = tools("configs", "--alter", *entity, "--add-config", "retention.ms=abc", check=False)
    require("InvalidConfiguration" in output, "retention.ms=abc was not refused", output)


CHECKS = (topics_life, topics_bad_requests)
