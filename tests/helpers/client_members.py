"""Members of consumer groups with other people's clients, in processes of their own, which can be killed and paused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from penstock.client.clock import wait_until
from penstock.local.apache_kafka.jars import SHORT_RUN_OPTIONS, KafkaJars

DEADLINE_S: Final = 120.0
PROGRAM: Final = Path(__file__).with_name("member_program.py")
CONSOLE_HEAP_MIB: Final = 128
Place = tuple[int, int]
"""Partition and offset."""


@dataclass(slots=True)
class Holding:
    """Partitions that one member had, from the answer that gave them to the call that took them, by one clock."""

    partition: int
    start_s: float
    end_s: float | None = None


class _Process:
    """A child whose lines are taken in as they come."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.read: list[Place] = []
        self.was_disturbed = False
        """Whether it was ever paused or killed: then it cannot know what it has lost."""
        self._threads = ThreadPoolExecutor(1)
        self._reading = self._threads.submit(self._take_lines)

    def _take_lines(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._on_line(line)

    def _on_line(self, line: str) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        self.was_disturbed = True
        self._process.kill()
        self._end()

    def _end(self) -> int:
        status = self._process.wait(DEADLINE_S)
        self._reading.result(DEADLINE_S)
        self._threads.shutdown()
        assert self._process.stdin is not None
        self._process.stdin.close()
        return status

    def pause(self) -> None:
        self.was_disturbed = True
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._process.poll() is None:
            self.resume()
            self.kill()


class PythonMember(_Process):
    """With one of the Python clients (`member_program.py`); `client` is its name, a colon, and the protocol."""

    def __init__(self, client: str, bootstrap: str, topic: str, group: str, **options: int) -> None:
        name, _, protocol = client.partition(":")
        command = [sys.executable, "-P", "-W", "ignore", str(PROGRAM), "--client", name, "--protocol", protocol]
        command += ["--bootstrap", bootstrap, "--topic", topic, "--group", group]
        for option, value in options.items():
            command += [f"--{option.replace('_', '-')}", str(value)]
        self.holdings: list[Holding] = []
        self._counts: dict[str, int] = {}
        self._last_read: list[Place] = []
        super().__init__(command)

    def _on_line(self, line: str) -> None:
        told: dict[str, Any] = json.loads(line)
        match told["event"]:
            case "read":
                self._last_read = [(partition, offset) for partition, offset in told["records"]]
                self.read += self._last_read
            case "assigned":
                self.holdings += [Holding(partition, told["at_s"]) for partition in told["partitions"]]
            case "revoked" | "lost":
                self._give_up(told["partitions"], told["at_s"])
            case "closed":
                self._give_up([holding.partition for holding in self.holdings], told["at_s"])
        self._counts[told["event"]] = self._counts.get(told["event"], 0) + 1

    def _give_up(self, partitions: Collection[int], at_s: float) -> None:
        for holding in self.holdings:
            if holding.end_s is None and holding.partition in partitions:
                holding.end_s = at_s

    def _order(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _ask(self, line: str, event: str) -> None:
        count = self._counts.get(event, 0)
        self._order(line)
        assert wait_until(lambda: self._counts.get(event, 0) > count, timeout_s=2 * DEADLINE_S, interval_s=0.01), (
            f"no answer to {line}"
        )

    def read_next(self, count: int) -> list[Place]:
        """The next so many records; what it does with them is not said."""
        self._ask(f"read {count}", "read")
        assert len(self._last_read) == count, self._last_read
        return self._last_read

    def commit(self) -> None:
        self._ask("commit", "committed")

    def follow(self) -> None:
        """Read and commit from now on."""
        self._order("follow")

    def leave(self) -> None:
        self._ask("close", "closed")
        assert self._end() == 0


class ConsoleMember(_Process):
    """Apache Kafka's console consumer. It commits by itself."""

    def __init__(self, jars: KafkaJars, client: str, bootstrap: str, topic: str, group: str) -> None:
        protocol = client.partition(":")[2]
        properties = {"group.protocol": protocol, "auto.commit.interval.ms": "300"}
        if protocol == "classic":
            properties |= {
                "heartbeat.interval.ms": "300",
                "session.timeout.ms": "6000",
                "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor",
            }
        command = jars.command(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            heap_mib=CONSOLE_HEAP_MIB,
            log_level="ERROR",
            options=SHORT_RUN_OPTIONS,
        )
        command += ["--bootstrap-server", bootstrap, "--topic", topic, "--group", group, "--from-beginning"]
        for key, value in properties.items():
            command += ["--command-property", f"{key}={value}"]
        for key in ("print.partition", "print.offset"):
            command += ["--formatter-property", f"{key}=true"]
        super().__init__(command)

    def _on_line(self, line: str) -> None:
        partition, offset, _ = line.split("\t")
        self.read.append((int(partition.partition(":")[2]), int(offset.partition(":")[2])))

    def follow(self) -> None:
        """It does nothing else."""

    def leave(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._end()
