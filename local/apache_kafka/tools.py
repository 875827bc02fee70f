"""Apache Kafka's command line tools, run against any bootstrap address."""

from __future__ import annotations

import re
import shlex
import subprocess
import threading
from pathlib import Path

from msgspec import Struct

from .jars import KafkaJars

TOOL_TIMEOUT_S = 90.0
"""A Java tool needs 2 to 5 s on a quiet machine; the rest is for busy ones."""

MAIN_CLASSES = {
    "acls": "org.apache.kafka.tools.AclCommand",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "storage": "kafka.tools.StorageTool",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "transactional-copier": "org.apache.kafka.tools.TransactionalMessageCopier",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
}


class ToolResult(Struct, frozen=True, kw_only=True):
    """What a tool printed, standard error after standard output, and its exit code."""

    output: str
    exit_code: int

    @property
    def lines(self) -> list[str]:
        return self.output.splitlines()


def run_tool(
    jars: KafkaJars, name: str, *arguments: str | int, stdin: str = "", timeout_s: float = TOOL_TIMEOUT_S
) -> ToolResult:
    """Run one of `MAIN_CLASSES` to its end; raises `subprocess.TimeoutExpired` past the deadline."""
    result = subprocess.run(
        jars.command(MAIN_CLASSES[name], *map(str, arguments)),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return ToolResult(output=result.stdout + result.stderr, exit_code=result.returncode)


def run_tool_until(
    jars: KafkaJars,
    name: str,
    *arguments: str | int,
    pattern: re.Pattern[str],
    timeout_s: float = TOOL_TIMEOUT_S,
) -> str:
    """Run a tool that does not end by itself until a line of its output matches; what it has printed then.

    It is killed after that, and at the deadline.
    """
    command = jars.command(MAIN_CLASSES[name], *map(str, arguments))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        deadline = threading.Timer(timeout_s, process.kill)
        deadline.start()
        lines = []
        try:
            assert process.stdout is not None, "a pipe was asked for"
            for line in process.stdout:
                lines.append(line)
                if pattern.search(line):
                    break
        finally:
            deadline.cancel()
            process.kill()
    return "".join(lines)


def write_scripts(jars: KafkaJars, folder: Path) -> Path:
    """`bin/kafka-NAME.sh` in that folder, as an installed Apache Kafka has them, for programs that call its tools."""
    scripts = folder / "bin"
    scripts.mkdir(parents=True, exist_ok=True)
    for name, main_class in MAIN_CLASSES.items():
        script = scripts / f"kafka-{name}.sh"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(jars.command(main_class))} "$@"\n')
        script.chmod(0o755)
    return folder
