"""Nodes that are forked from a process which has loaded their code: they are there in a fraction of the time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from .child_processes import start_child
from .errors import NodeFailedError
from .forking_process import ENTRY_POINT
from .process_title import ROOM

if TYPE_CHECKING:
    from .local_node import LocalNode

NODE: Final = "penstock.broker.node.preloaded"


class PreloadedNodes:
    """The process, begun at once; the first node waits until the code is loaded.

    Safe to share between threads.
    """

    def __init__(self, module: str, environment: Mapping[str, str], *, ends_with_parent: bool = False) -> None:
        """`module` is what `forking_process` describes; `environment` is that of all nodes. With `ends_with_parent` the
        process ends when this program does, by SIGKILL too. Raises NodeFailedError."""
        self.environment = dict(environment)
        self._turn = Lock()
        try:
            start = start_child if ends_with_parent else subprocess.Popen
            self._process = start(
                [sys.executable, "-P", "-m", ENTRY_POINT, module, ROOM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
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

    def start(self, arguments: Sequence[str], log: Path, *, title: Sequence[str], ends_with_this: bool) -> int:
        """Returns the process id of a new node, which `ps` shows with this `title`. Raises NodeFailedError."""
        answer = self._ask(
            {"start": list(arguments), "log": str(log), "ends_with_this": ends_with_this, "title": list(title)}
        )
        assert answer is not None, "a process has an id"
        return answer

    def exit_status(self, pid: int) -> int | None:
        """How a node ended that was started here; negative: by that signal. None while it runs, and where it is not
        known any more."""
        try:
            return self._ask({"status": pid})
        except NodeFailedError:
            return None

    def end(self) -> None:
        """And the nodes that end with it."""
        with self._turn:
            # It may still load, and has nothing to finish.
            self._process.kill()
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                if stream is not None:
                    stream.close()
            self._process.wait()

    def _ask(self, order: Mapping[str, object]) -> int | None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._turn:
            try:
                self._process.stdin.write(json.dumps(order).encode() + b"\n")
                self._process.stdin.flush()
                line = self._process.stdout.readline()
            except (OSError, ValueError) as error:
                raise NodeFailedError(f"the process that starts nodes has ended: {error}") from error
            if not line:
                assert self._process.stderr is not None
                said = self._process.stderr.read()[-2000:].decode(errors="replace")
                raise NodeFailedError(f"the process that starts nodes has ended: {said}")
        answer: int | None = json.loads(line)
        return answer


class PreloadedStart(Struct, frozen=True, kw_only=True):
    """The `NodeStart` of nodes of one kind."""

    preloaded: PreloadedNodes
    arguments_of: Callable[[LocalNode], Sequence[str]] = lambda node: (str(node.properties),)
    """Of `run`."""
    ends_with_this: bool

    def start(self, node: LocalNode) -> int:
        return self.preloaded.start(
            self.arguments_of(node),
            node.log,
            title=("penstock", "start", str(node.properties)),
            ends_with_this=self.ends_with_this,
        )

    def exit_status(self, pid: int) -> int | None:
        return self.preloaded.exit_status(pid)
