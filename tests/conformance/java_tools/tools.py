"""What a check of Apache Kafka's tools works with: the tools, topics of its own, records in and out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.local.apache_kafka.jars import KafkaJars
from penstock.local.apache_kafka.tools import run_tool, run_tool_until

CONSUME_TIMEOUT_MS: Final = 20_000
_OUTPUT_SHOWN: Final = 1500


class CheckFailedError(Exception):
    """The tools did not do what they do on Apache Kafka."""


def require(condition: object, what: str, output: str = "") -> None:
    """Raises CheckFailedError with this sentence and the end of the output, unless the condition holds."""
    if not condition:
        raise CheckFailedError(f"{what}\n{output[-_OUTPUT_SHOWN:]}".strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """For one check: its name and `run_id` make the names of its topics, groups and users."""

    jars: KafkaJars
    bootstrap: str
    check: str
    run_id: str
    work: Path
    timeout_s: float

    @property
    def name(self) -> str:
        """A name of this check's own, for topics, groups, users and clients."""
        return f"{self.check.replace('_', '-')}-{self.run_id}"

    def __call__(self, tool: str, *arguments: str | int, stdin: str = "", check: bool = True) -> str:
        """What the tool prints, asked about the broker under test; a failure of the tool fails the check if `check`."""
        return self.run(tool, *arguments, "--bootstrap-server", self.bootstrap, stdin=stdin, check=check)

    def run(self, tool: str, *arguments: str | int, stdin: str = "", check: bool = True) -> str:
        """The same for tools that are told of the broker in another way."""
        result = run_tool(self.jars, tool, *arguments, stdin=stdin, timeout_s=self.timeout_s)
        self._log(tool, arguments, f"{result.output}\n[exit code {result.exit_code}]")
        if check:
            require(result.exit_code == 0, f"{tool} ended with exit code {result.exit_code}", result.output)
        return result.output

    def run_until(self, pattern: re.Pattern[str], tool: str, *arguments: str | int) -> str:
        """What a tool that never ends by itself prints until a line matches; it is ended then, or when time is over."""
        output = run_tool_until(self.jars, tool, *arguments, pattern=pattern, timeout_s=self.timeout_s)
        self._log(tool, arguments, f"{output}\n[ended]")
        return output

    def new_topic(self, partitions: int = 1, *arguments: str, suffix: str = "") -> str:
        topic = self.name + suffix
        self("topics", "--create", "--topic", topic, "--partitions", partitions, *arguments)
        return topic

    def produce(self, topic: str, count: int, *arguments: str) -> None:
        """Records with the values m0, m1 …"""
        self("console-producer", "--topic", topic, *arguments, stdin="".join(f"{line}\n" for line in values(count)))

    def consume(self, topic: str, partition: int, count: int, *arguments: str) -> list[str]:
        """What the console consumer prints of `count` records of one partition, from its start, without a group."""
        output = self(
            "console-consumer",
            *("--topic", topic, "--partition", partition, "--offset", "earliest"),
            *("--max-messages", count, "--timeout-ms", CONSUME_TIMEOUT_MS),
            *arguments,
        )
        return _records(output)

    def consume_in_group(self, topic: str, count: int, group: str, *arguments: str) -> list[str]:
        """The same as a member of a group, from all partitions."""
        output = self(
            "console-consumer",
            *("--topic", topic, "--from-beginning", "--group", group),
            *("--max-messages", count, "--timeout-ms", CONSUME_TIMEOUT_MS),
            *arguments,
        )
        return _records(output)

    def end_offsets(self, topic: str) -> list[int]:
        """By partition."""
        output = self("get-offsets", "--topic", topic)
        found = re.findall(rf"^{re.escape(topic)}:(\d+):(\d+)$", output, re.MULTILINE)
        return [offset for _, offset in sorted((int(partition), int(offset)) for partition, offset in found)]

    def _log(self, tool: str, arguments: Sequence[str | int], output: str) -> None:
        with (self.work / f"{self.check}.log").open("a") as log:
            log.write(f"$ {tool} {' '.join(map(str, arguments))}\n{output}\n\n")

    def node_ids(self) -> list[int]:
        return sorted({int(node) for node in re.findall(r"\(id: (\d+) rack", self("broker-api-versions"))})


def values(count: int, start: int = 0) -> Sequence[str]:
    """What `Tools.produce` writes."""
    return [f"m{number}" for number in range(start, count)]


def _records(output: str) -> list[str]:
    return [line for line in output.splitlines() if re.fullmatch(r"m\d+|CreateTime:.*", line)]
