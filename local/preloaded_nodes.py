"""Nodes that are forked from a process which has loaded their code: they are there in a fraction of the time.

`penstock up` begins such a process before it loads its own code, so that this module loads little.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from .errors import NodeFailedError

if TYPE_CHECKING:
    from pathlib import Path

    from .local_node import LocalNode

NODE: Final = "penstock.broker.node.preloaded"
FOR_SEVERAL: Final = "load_for_several"
"""The function of `NODE` that loads what nodes of a cluster need, and a single one does not."""
_ENTRY_POINT: Final = "penstock.local.forking_process"
# Its output has ended: so will it.
_END_TIMEOUT_S: Final = 5.0
_SAID_BYTES: Final = 2_000
# An argument for the command line of the process: its nodes write theirs over it.
_ROOM: Final = " " * 512


class PreloadedNodes:
    """The process, begun at once; the first node waits until the code is loaded.

    Safe to share between threads.
    """

    def __init__(self, module: str, environment: Mapping[str, str], *, ends_with_parent: bool = False) -> None:
        """`module` is what `forking_process` describes; `environment` is that of all nodes. With `ends_with_parent` the
        process ends when this program does, by SIGKILL too. Raises NodeFailedError."""
        self.environment = dict(environment)
        self._turn = Lock()
        # No pipe: it could be full, and is read only when the process has ended.
        self._said = _unnamed_file()
        start: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen
        if ends_with_parent:
            from .child_processes import start_child as start
        try:
            self._process = start(
                [sys.executable, "-P", "-m", _ENTRY_POINT, module, _ROOM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                env=self.environment,
                start_new_session=True,
            )
        except OSError as error:
            raise NodeFailedError(f"no process could be started for nodes: {error}") from error

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def load(self, function: str) -> None:
        """Has the process call this function of its module, before the next node. Raises NodeFailedError."""
        with self._turn:
            self._say({"load": function})

    def start(self, arguments: Sequence[str], log: Path, *, title: Sequence[str], ends_with_this: bool) -> int:
        """Returns the process id of a new node, which `ps` shows with this `title`. Raises NodeFailedError."""
        answer = self._ask(
            {"start": list(arguments), "log": str(log), "ends_with_this": ends_with_this, "title": list(title)}
        )
        if isinstance(answer, str):
            raise NodeFailedError(f"a node could not be started: {answer}")
        assert answer is not None, "a process has an id"
        return answer

    def exit_status(self, pid: int) -> int | None:
        """How a node ended that was started here; negative: by that signal. None while it runs, and where it is not
        known any more."""
        try:
            answer = self._ask({"status": pid})
        except NodeFailedError:
            return None
        assert not isinstance(answer, str), "a status is a number"
        return answer

    def end(self) -> None:
        """And the nodes that end with it."""
        with self._turn:
            # It may still load, and has nothing to finish.
            self._process.kill()
            for stream in (self._process.stdin, self._process.stdout, self._said):
                if stream is not None:
                    # An order that did not reach it is still there to be written.
                    with suppress(BrokenPipeError):
                        stream.close()
            self._process.wait()

    def _ask(self, order: Mapping[str, object]) -> int | str | None:
        assert self._process.stdout is not None
        with self._turn:
            self._say(order)
            line = self._process.stdout.readline()
            if not line:
                raise self._failure()
        answer: int | str | None = json.loads(line)
        return answer

    def _say(self, order: Mapping[str, object]) -> None:
        """Holding the turn."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failure() from None
        except (OSError, ValueError) as error:
            raise NodeFailedError(f"the process that starts nodes has ended: {error}") from error

    def _failure(self) -> NodeFailedError:
        """With what it said before it ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_TIMEOUT_S)
        descriptor = self._said.fileno()
        size = os.fstat(descriptor).st_size
        said = os.pread(descriptor, _SAID_BYTES, max(0, size - _SAID_BYTES)).decode(errors="replace")
        return NodeFailedError(f"the process that starts nodes has ended: {said}")


def _unnamed_file() -> BinaryIO:
    """Gone with the last process that has it."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("penstock-nodes"), "w+b")
    from tempfile import TemporaryFile

    return TemporaryFile()


class PreloadedStart(NamedTuple):
    """The `NodeStart` of nodes of one kind."""

    preloaded: PreloadedNodes
    ends_with_this: bool
    arguments_of: Callable[[LocalNode], Sequence[str]] = lambda node: (str(node.properties),)
    """Of `run`."""

    def start(self, node: LocalNode) -> int:
        return self.preloaded.start(
            self.arguments_of(node),
            node.log,
            title=("penstock", "start", str(node.properties)),
            ends_with_this=self.ends_with_this,
        )

    def exit_status(self, pid: int) -> int | None:
        return self.preloaded.exit_status(pid)
