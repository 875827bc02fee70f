"""`python -m penstock.chaos.faults.preloaded_nodes`: a process that has loaded what a node needs, and forks nodes.

Most of what a node does before it serves is to load its code, which takes a second of CPU. A cluster of a test has
several nodes and starts some of them again and again: here the code is loaded once, and a node is there in a fraction
of that. It is the same node otherwise, in a session of its own.

Each line of standard input starts one, `[ORDERS, PROPERTIES, LOG]` as JSON; a line of standard output has its process
id. At the end of the input, and so when the process ends that began it, the process ends, and with it what it started.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from threading import Lock
from typing import Final

from ...local.errors import NodeFailedError

ENTRY_POINT: Final = "penstock.chaos.faults.preloaded_nodes"
# What `local.local_node` calls variables of properties, without loading it: this module is loaded before all else.
_PROPERTY: Final = "PENSTOCK_"
_NODE: Final = "penstock.chaos.faults.faulty_node"
_HANDLERS: Final = "penstock.broker.node.handlers"
# What a node loads while it starts, and not before: nodes that do without it would only be larger.
_LATER: Final = (
    "encodings.idna",
    "penstock.broker.cluster.peers",
    "penstock.broker.groups.group_shard",
    "penstock.broker.node.controller_listener",
    "penstock.broker.node.controller_registration",
    "penstock.broker.node.heartbeat_connections",
    "penstock.broker.node.observer_link",
    "penstock.broker.node.voter_link",
    "penstock.broker.replication.fetcher_link",
    "penstock.broker.replication.replica_fetcher",
    "penstock.quorum.controller.broker_probes",
    "penstock.quorum.links.stream_links",
    "penstock.quorum.metadata.event_derivation",
    "penstock.quorum.metadata.event_ring",
    "uvloop",
)


class PreloadedNodes:
    """The process, begun at once; the first node waits until the code is loaded. `end` ends it and its nodes.

    Safe to share between threads.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        """`environment` is that of all nodes. Raises NodeFailedError."""
        self._turn = Lock()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", ENTRY_POINT],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(environment),
                start_new_session=True,
                text=True,
            )
        except OSError as error:
            raise NodeFailedError(f"no process could be started for nodes: {error}") from error

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self, orders: Path, properties: Path, log: Path) -> int:
        """Returns the process id of a new node. Raises NodeFailedError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._turn:
            try:
                self._process.stdin.write(json.dumps([str(orders), str(properties), str(log)]) + "\n")
                self._process.stdin.flush()
                answer = self._process.stdout.readline()
            except (OSError, ValueError) as error:
                raise NodeFailedError(f"the process that starts nodes has ended: {error}") from error
        if not answer:
            assert self._process.stderr is not None
            raise NodeFailedError(f"the process that starts nodes has ended: {self._process.stderr.read()[-2000:]}")
        return int(answer)

    def end(self) -> None:
        with self._turn:
            # It may still load, and has nothing to finish.
            self._process.kill()
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                if stream is not None:
                    stream.close()
            self._process.wait()


def preload() -> PreloadedNodes:
    """For nodes with this program's environment, but for variables that nodes take for properties."""
    return PreloadedNodes({name: value for name, value in os.environ.items() if not name.startswith(_PROPERTY)})


def run() -> None:
    # A library of types looks for it to test itself, which would be a twentieth of all that is loaded.
    sys.modules["hypothesis"] = None  # type: ignore[assignment]
    import_module(_NODE)
    handlers = import_module(_HANDLERS)
    for module in (*_LATER, *(f"{_HANDLERS}.{found.name}" for found in iter_modules(handlers.__path__))):
        with suppress(ImportError):
            # Without uvloop a node takes asyncio's own loop.
            import_module(module)
    # Not before all else, where this module is loaded.
    from ...local.child_processes import end_with_parent

    own = os.getpid()
    # Nodes that end are reaped by the system; and no collection touches, and so copies, what nodes share.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            end_with_parent(own)
            os._exit(_run_node(*json.loads(line)))
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()


def _run_node(orders: str, properties: str, log: str) -> int:
    """As a process that was started with these; returns the exit status."""
    from .faulty_node import run as run_node

    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(output)
    try:
        return run_node(orders, properties)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    run()
