"""One node of a local cluster: a process, its properties, its log, its data folder."""

import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from .child_processes import start_child
from .errors import NodeFailedError
from .processes import ProcessId, identify, is_running, is_stopped, send_signal, wait_gone

HOST: Final = "127.0.0.1"
# Enough of a node's log to hold the sentence that says why it ended, and the traceback of a bug.
_LOG_TAIL_LINES: Final = 15
_LOG_TAIL_BYTES: Final = 16 * 1024
# After SIGKILL only the kernel is between us and the end; more than this means a process stuck in the disk.
_KILL_TIMEOUT_S: Final = 30.0
# -P: a current folder that happens to hold a `storage` or `client` must not shadow anything.
# How the line begins with which a node ends that cannot be as it is configured.
_SENTENCE_OF_NODE: Final = "penstock: "
_VARIABLE_PREFIX: Final = "PENSTOCK_"
START_COMMAND: Final = (sys.executable, "-P", "-m", "penstock", "start")


class NodeStart(Protocol):
    """Another way to start a node than a command."""

    def start(self, node: "LocalNode", /) -> int:
        """Returns the process id. Raises NodeFailedError."""

    def exit_status(self, pid: int, /) -> int | None:
        """As `LocalNode.exit_status`, of a process that is gone."""


@dataclass(slots=True, kw_only=True)
class LocalNode:
    """A node that runs, or ran, on this machine. Its files are beside its data folder and carry its name."""

    id: int
    port: int
    data: Path
    environment: Mapping[str, str]
    # Where it listens.
    host: str = HOST
    # Of its HTTP administration; None where it is as its properties say.
    admin_port: int | None = None
    process: ProcessId | None = None
    # It was stopped or killed by a command for this node, and is to stay down until it is started.
    is_down: bool = False
    # What is run, with the path of the properties behind it. Apache Kafka as a measure is a node like any other.
    command: tuple[str, ...] = START_COMMAND
    # In place of the command; such a process is reaped elsewhere.
    start_by: "NodeStart | None" = None
    # The process ends when this program does, by SIGKILL too.
    ends_with_parent: bool = False
    # Set only in the program that started the process: the one that can, and must, reap it.
    _child: subprocess.Popen[bytes] | None = None
    # Of a process that was started by `start_by` and has ended: it is asked for once.
    _status: tuple[ProcessId | None, int | None] = (None, None)
    # The process that this program told to end while it ran.
    _told_to_end: ProcessId | None = None

    @property
    def log(self) -> Path:
        return self.data.with_suffix(".log")

    @property
    def properties(self) -> Path:
        return self.data.with_suffix(".properties")

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def admin(self) -> str | None:
        """The address of its HTTP administration."""
        return None if self.admin_port is None else f"http://{self.host}:{self.admin_port}"

    @property
    def is_running(self) -> bool:
        if self._child is not None:
            return self._child.poll() is None
        return self.process is not None and is_running(self.process)

    @property
    def is_paused(self) -> bool:
        return self.process is not None and is_stopped(self.process)

    @property
    def state(self) -> str:
        """For people: `running`, `paused` or `stopped`."""
        return "stopped" if not self.is_running else "paused" if self.is_paused else "running"

    @property
    def exit_status(self) -> int | None:
        """How the process ended; negative: by that signal. None while it runs, or when another program started it."""
        if self._child is not None:
            return self._child.poll()
        if self.process is not None and self._status[0] != self.process and self.start_by is not None:
            if self.is_running:
                return None
            self._status = (self.process, self.start_by.exit_status(self.process.pid))
        return self._status[1]

    def leave_starter(self) -> None:
        """Before `start_by` is gone: how the process ended is asked for, and the next one is started by its command."""
        exit_status = self.exit_status
        self.start_by = None
        if self.process is not None:
            self._status = (self.process, exit_status)

    @property
    def has_ended_by_itself(self) -> bool:
        """Whether its process is gone and this program did not tell it to end: it crashed, or another program did."""
        return self.process is not None and self.process != self._told_to_end and not self.is_running

    def write_properties(self, settings: Mapping[str, str]) -> None:
        """Writes what the node is started with, now and at every restart."""
        values = {
            "node.id": str(self.id),
            "listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": str(self.data),
            **({} if self.admin is None else {"admin.listeners": self.admin}),
            **settings,
        }
        self.properties.parent.mkdir(parents=True, exist_ok=True)
        # There may be a secret in it.
        self.properties.touch(mode=0o600)
        lines = "".join(f"{key}={_escape(value)}\n" for key, value in values.items())
        self.properties.write_text(lines, encoding="utf-8")

    def voter_ids(self) -> tuple[int, ...]:
        """The controllers of its cluster, by its properties; none for a node alone."""
        try:
            lines = self.properties.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return ()
        told = next((line for line in lines if line.startswith("controller.quorum.voters=")), "")
        return parse_voter_ids(told.partition("=")[2])

    def start(self) -> None:
        """Starts the process and returns at once. Raises NodeFailedError when it runs already or cannot be started."""
        if self.is_running:
            raise NodeFailedError(f"node {self.id} is running already")
        if self.start_by is not None:
            self._child = None
            self.is_down = False
            pid = self.start_by.start(self)
            self.process = identify(pid)
            if self.process is None:
                raise self.failure("ended at once")
            return
        try:
            with self.log.open("ab") as log:
                # A session of its own: Ctrl-C in the terminal reaches only the program that looks after the nodes.
                start = start_child if self.ends_with_parent else subprocess.Popen
                self._child = start(
                    [*self.command, str(self.properties)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=dict(self.environment),
                    start_new_session=True,
                )
        except OSError as error:
            raise NodeFailedError(f"node {self.id} could not be started: {error}") from error
        self.is_down = False
        self.process = identify(self._child.pid)
        if self.process is None:
            raise self.failure("ended at once")

    def follow(self, process: ProcessId | None, *, is_down: bool) -> None:
        """Another program did something to this node: it has that process now, or is down."""
        if (is_down or process != self.process) and self._child is not None and self._child.poll() is not None:
            # How it ended is the other program's business.
            self._child = None
        self.process, self.is_down = process, is_down

    def stop(self, *, timeout_s: float) -> None:
        """Lets the node stop in its own order (SIGTERM). After that time it is killed; raises NodeFailedError then."""
        self.begin_stop()
        self.finish_stop(timeout_s=timeout_s)

    def begin_stop(self) -> None:
        """Tells it to stop, and returns at once; `finish_stop` waits as `stop` does."""
        if self.process is not None:
            self._tell_to_end()
            send_signal(self.process, signal.SIGTERM)
            # A paused process would never see it.
            send_signal(self.process, signal.SIGCONT)

    def finish_stop(self, *, timeout_s: float) -> None:
        if self.process is not None and not self._wait_ended(timeout_s):
            self.kill()
            raise self.failure(f"did not stop within {timeout_s:g} s and was killed")

    def kill(self) -> None:
        """SIGKILL: what the node had not synced is the kernel's to write, what it had not answered is lost."""
        if self.process is None:
            return
        self._tell_to_end()
        send_signal(self.process, signal.SIGKILL)
        if not self._wait_ended(_KILL_TIMEOUT_S):
            raise NodeFailedError(
                f"node {self.id} (pid {self.process.pid}) is still there {_KILL_TIMEOUT_S:g} s after SIGKILL"
            )

    def pause(self) -> None:
        """SIGSTOP: the process keeps its connections and locks, and does nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def failure(self, what: str) -> NodeFailedError:
        """The node's own sentence where its log ends with one, else the end of the log and where that is."""
        how = "" if self.exit_status is None else f" (exit status {self.exit_status})"
        tail = self._log_tail()
        last = tail.rpartition("\n")[2].strip()
        if last.startswith(_SENTENCE_OF_NODE):
            return NodeFailedError(f"node {self.id} {what}{how}: {last.removeprefix(_SENTENCE_OF_NODE)}")
        return NodeFailedError(f"node {self.id} {what}{how}", log=self.log, log_tail=tail)

    def _tell_to_end(self) -> None:
        # One that has ended before is told nothing.
        if self.is_running:
            self._told_to_end = self.process

    def _signal(self, signal_number: signal.Signals) -> None:
        if self.process is None or not send_signal(self.process, signal_number):
            raise self.failure("is not running")

    def _wait_ended(self, timeout_s: float) -> bool:
        assert self.process is not None, "there is a process to wait for"
        if not wait_gone(self.process, timeout_s=timeout_s):
            return False
        if self._child is not None:
            # All its threads have ended, so this takes no time; it is what makes the zombie go.
            self._child.wait()
        return True

    def _log_tail(self) -> str:
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, log.seek(0, 2) - _LOG_TAIL_BYTES))
                lines = log.read().decode(errors="replace").splitlines()
        except FileNotFoundError:
            return ""
        return "\n".join(f"  {line}" for line in lines[-_LOG_TAIL_LINES:])


def parse_voter_ids(voters: str) -> tuple[int, ...]:
    """Of a value of `controller.quorum.voters`."""
    return tuple(int(voter.partition("@")[0]) for voter in voters.split(",") if voter)


def variables_of_properties(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that a node takes for properties."""
    return {name: value for name, value in environment.items() if name.startswith(_VARIABLE_PREFIX)}


def variable_of_property(key: str) -> str:
    """The variable that a node takes for this property."""
    return f"{_VARIABLE_PREFIX}{key.upper().replace('.', '_')}"


def environment_without_properties(environment: Mapping[str, str]) -> dict[str, str]:
    """For nodes that are to be as their cluster says, whatever was exported around them."""
    return {name: value for name, value in environment.items() if not name.startswith(_VARIABLE_PREFIX)}


def _escape(value: str) -> str:
    """As java.util.Properties reads it back: a backslash is written twice, a blank in front would be dropped."""
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return "\\" + escaped if escaped.startswith((" ", "\t")) else escaped
