"""A node per core of this machine: forked from one process, which has loaded their code and looks after them.

One node uses one core, so a machine of many runs many (`penstock start --per-core`). They live and end together:

- When one node ends, the others are stopped in order, and the whole ends with the exit status of that one: a service
  manager restarts all. For a node that was killed it is 128 and the number of the signal, as shells have it; for one
  that ended with status 0, but was not told to by this process, it is 1.
- SIGTERM, SIGINT and SIGHUP stop them in order, each by a controlled shutdown: first the brokers, then those that are
  controllers too, which the brokers need for that. A second such signal lets no node wait for another.
- When this process is killed, Linux sends SIGTERM to each node.
"""

from __future__ import annotations

import gc
import io
import logging
import os
import signal
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Final, TextIO

from ...storage.workers.parent_end import signal_at_end_of
from ..configuration.node_config import NodeConfig
from . import node_code
from .log_lines import log_to_standard_error
from .main import run

logger = logging.getLogger(__name__)

STOP_SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
_WAITED: Final = STOP_SIGNALS | {signal.SIGCHLD}
_KILLED_STATUS: Final = 128


def run_all(configs: Sequence[NodeConfig], run_node: Callable[[NodeConfig], int] = run) -> int:
    """Runs the nodes until they are told to stop, or one of them ends; returns the exit status of the whole."""
    node_code.load()
    node_code.load_for_several()
    node_code.load_handlers()
    # No collection touches, and so copies, what nodes share.
    gc.freeze()
    gc.enable()
    # A signal whose default is to be ignored waits only where it has a handler.
    signal.signal(signal.SIGCHLD, _ignore)
    signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED)
    # By nohup; a signal that is blocked waits even so.
    is_hangup_ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    nodes = CoreNodes()
    try:
        for config in configs:
            nodes.start(config, run_node)
    except OSError as error:
        sys.stderr.write(f"penstock: no process could be started for a node: {error.strerror}\n")
        nodes.status = 1
        nodes.stop()
    # Behind the forks: a node has its own.
    log_to_standard_error(configs[0].log_level)
    return nodes.look_after(_WAITED - {signal.SIGHUP} if is_hangup_ignored else _WAITED)


class CoreNodes:
    """The processes, by id. Signals have to be blocked."""

    def __init__(self) -> None:
        self.status = 0
        self._running: dict[int, NodeConfig] = {}
        self._told: set[int] = set()
        self._is_stopping = False

    def start(self, config: NodeConfig, run_node: Callable[[NodeConfig], int]) -> None:
        """Raises OSError."""
        own = os.getpid()
        pid = os.fork()
        if pid == 0:
            os._exit(_run_forked(config, run_node, own))
        self._running[pid] = config

    def look_after(self, waited: Collection[signal.Signals] = _WAITED) -> int:
        """Returns when all have ended, with the exit status of the whole."""
        for pid, config in self._running.items():
            logger.info("Node started: node_id=%d pid=%d", config.node_id, pid)
        while self._running:
            number = signal.sigwait(waited)
            if number == signal.SIGCHLD:
                self._reap()
            else:
                logger.info("Shutting down: reason=%s", signal.Signals(number).name)
                self.stop()
        return self.status

    def stop(self) -> None:
        """In order; asked again, all at once."""
        is_asked_again, self._is_stopping = self._is_stopping, True
        self._tell(is_hurried=is_asked_again)

    def _tell(self, *, is_hurried: bool = False) -> None:
        brokers = [pid for pid, config in self._running.items() if not config.is_controller]
        for pid in self._running if is_hurried or not brokers else brokers:
            if pid not in self._told:
                self._told.add(pid)
                os.kill(pid, signal.SIGTERM)

    def _reap(self) -> None:
        for pid in tuple(self._running):
            ended, wait_status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._on_end(pid, os.waitstatus_to_exitcode(wait_status))
        if self._is_stopping:
            self._tell()

    def _on_end(self, pid: int, exit_code: int) -> None:
        """`exit_code` is negative for a signal."""
        config = self._running.pop(pid)
        # A service manager may tell all processes at once; one that is still to learn how to stop ends by the signal.
        if (exit_code == 0 and self._is_stopping) or (exit_code == -signal.SIGTERM and pid in self._told):
            logger.info("Node stopped: node_id=%d", config.node_id)
            return
        how = f"status={exit_code}" if exit_code >= 0 else f"signal={signal.Signals(-exit_code).name}"
        logger.error("Node ended, all nodes are stopped: node_id=%d pid=%d %s", config.node_id, pid, how)
        self.status = self.status or (exit_code if exit_code >= 0 else _KILLED_STATUS - exit_code) or 1
        self._is_stopping = True


class PrefixedLines(io.TextIOBase):
    """Standard error of a node whose lines lie among those of others: each begins with the name of the node.

    What is written at once goes out at once, so that a line is not torn.
    """

    def __init__(self, target: TextIO, prefix: str) -> None:
        self._target = target
        self._prefix = prefix
        self._is_at_start = True

    def write(self, text: str) -> int:
        lines = text.splitlines(keepends=True)
        marked = "".join(
            line if index == 0 and not self._is_at_start else f"{self._prefix}{line}"
            for index, line in enumerate(lines)
        )
        if lines:
            self._is_at_start = lines[-1].endswith("\n")
        self._target.write(marked)
        return len(text)

    def flush(self) -> None:
        self._target.flush()

    def fileno(self) -> int:
        return self._target.fileno()


def _run_forked(config: NodeConfig, run_node: Callable[[NodeConfig], int], parent: int) -> int:
    try:
        # The terminal's Ctrl-C is for the process that looks after the nodes.
        os.setsid()
        signal_at_end_of(parent, signal.SIGTERM)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAITED)
        sys.stderr = PrefixedLines(sys.stderr, f"node-{config.node_id} ")
        return run_node(config)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _ignore(_number: int, _frame: object) -> None: ...
