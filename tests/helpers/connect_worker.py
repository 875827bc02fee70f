"""Processes of Kafka Connect and MirrorMaker 2, as Apache Kafka ships them, and the REST API of a worker."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from replicated_cluster import DEADLINE_S
from waiting import wait_for

from penstock.client import clock
from penstock.local.apache_kafka.jars import KafkaJars
from penstock.local.local_node import HOST
from penstock.local.ports import find_free

STANDALONE: Final = "org.apache.kafka.connect.cli.ConnectStandalone"
DISTRIBUTED: Final = "org.apache.kafka.connect.cli.ConnectDistributed"
MIRROR_MAKER: Final = "org.apache.kafka.connect.mirror.MirrorMaker"
STRING_CONVERTER: Final = "org.apache.kafka.connect.storage.StringConverter"
START_TIMEOUT_S: Final = 180.0
ASK_TIMEOUT_S: Final = 30.0
HEAP_MIB: Final = 300
LOG_TAIL_LINES: Final = 40
# A task of an exactly-once source begins by asking the worker that leads to fence the last one. It fails for good when
# that worker has just been killed, and an operator starts it again.
LEADER_UNREACHABLE: Final = "IO Error trying to forward REST request"
# A restarted task has another state by then.
RESTART_INTERVAL_S: Final = 5.0


class ConnectProcess:
    """One Java program that is given a file of properties; its log lies beside that."""

    def __init__(
        self,
        jars: KafkaJars,
        folder: Path,
        name: str,
        main_class: str,
        properties: Mapping[str, str],
        arguments: Sequence[str] = (),
    ) -> None:
        """`arguments` follow the path of the properties."""
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / f"{name}.log"
        self.lives = 0
        self._name = name
        settings = write_properties(folder / f"{name}.properties", properties)
        self._command: Sequence[str] = jars.command(main_class, str(settings), *arguments, heap_mib=HEAP_MIB)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begins a life, and returns at once."""
        self.lives += 1
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def check_running(self) -> None:
        """AssertionError with the end of its log when it has ended by itself."""
        assert self.is_running, f"{self._name} has ended:\n{self.log_tail()}"

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None, "it was started"
        self._process.kill()
        self._process.wait(DEADLINE_S)

    def stop(self) -> None:
        """SIGTERM, and wait."""
        if self._process is None or not self.is_running:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def log_tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_running:
            self.kill()


class ConnectWorker(ConnectProcess):
    """A worker, standalone or distributed, that answers its REST API."""

    def __init__(
        self,
        jars: KafkaJars,
        folder: Path,
        name: str,
        main_class: str,
        properties: Mapping[str, str],
        connectors: Sequence[Path] = (),
    ) -> None:
        """`connectors` are files of properties, as a standalone worker takes them."""
        self._restarted_s: dict[int, float] = {}
        self.address = f"http://{HOST}:{find_free(random.Random())}"
        common = {
            "listeners": self.address,
            "key.converter": STRING_CONVERTER,
            "value.converter": STRING_CONVERTER,
            # Plugins name themselves in their jars; else each start looks through all jars for them.
            "plugin.discovery": "service_load",
        }
        super().__init__(jars, folder, name, main_class, {**common, **properties}, [*map(str, connectors)])

    def wait_ready(self) -> None:
        """Until it answers; a distributed worker has joined its group then."""
        wait_for(self._is_ready, lambda: f"the worker answers:\n{self.log_tail()}", timeout_s=START_TIMEOUT_S)

    def wait_running(self, connector: str, *, tasks: int, state: str = "RUNNING") -> None:
        """Until the connector and so many tasks are in this state, failed ones restarted as `restart_failed` does."""

        def is_so() -> bool:
            self.check_running()
            self.restart_failed(connector)
            return [part["state"] for part in self.status(connector)] == [state] * (1 + tasks)

        wait_for(is_so, lambda: f"{connector} is {state}: {self.status(connector)}", timeout_s=START_TIMEOUT_S)

    def restart_failed(self, connector: str) -> None:
        """As an operator does for `LEADER_UNREACHABLE`. AssertionError for what has failed for another reason."""
        for part in self.status(connector):
            if part["state"] != "FAILED":
                continue
            is_of_task = "id" in part
            assert is_of_task, json.dumps(part, indent=1)
            assert LEADER_UNREACHABLE in part["trace"], json.dumps(part, indent=1)
            if clock.monotonic_s() < self._restarted_s.get(part["id"], 0) + RESTART_INTERVAL_S:
                continue
            self._restarted_s[part["id"]] = clock.monotonic_s()
            # It may be refused while the workers agree on who leads: once more later.
            with suppress(RefusedError):
                self.ask("POST", f"/connectors/{connector}/tasks/{part['id']}/restart")

    def status(self, connector: str) -> list[Mapping[str, Any]]:
        """Of the connector and its tasks; empty while no worker has said it."""
        try:
            told = self.ask("GET", f"/connectors/{connector}/status")
        except RefusedError:
            return []
        return [told["connector"], *told["tasks"]]

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The answer's JSON, None for an empty one. Raises RefusedError, or OSError when nothing answers."""
        request = urllib.request.Request(
            self.address + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=ASK_TIMEOUT_S) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                raise RefusedError(error.code, error.read().decode()) from error
        return json.loads(text) if text else None

    def wait_answered(self, method: str, path: str, body: object = None) -> Any:
        """As `ask`, again while the workers agree on who leads (409)."""
        answers: list[Any] = []

        def is_answered() -> bool:
            self.check_running()
            try:
                answers.append(self.ask(method, path, body))
            except RefusedError as refusal:
                if refusal.status != 409:
                    raise
                return False
            return True

        wait_for(is_answered, f"{method} {path}")
        return answers[0]

    def _is_ready(self) -> bool:
        self.check_running()
        try:
            return self.ask("GET", "/connectors") is not None
        except (OSError, RefusedError):
            return False


class RefusedError(Exception):
    """The worker answered with an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


def write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return path
