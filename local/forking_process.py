"""`python -m penstock.local.forking_process MODULE`: a process that has loaded what nodes need, and forks them.

MODULE has `load()`, which loads the code and begins no thread, and `run(*arguments)`, which is a node and returns its
exit status. A node is a process as any other, in a session of its own, and shows its own command line.

Each line of standard input is an order, as JSON; all but the first kind have one line of standard output as answer:

    {"load": FUNCTION}                                                                 none: MODULE's loads more code
    {"start": [ARGUMENT, …], "log": PATH, "ends_with_this": BOOL, "title": [ARGUMENT, …]}    the process id, or why none
    {"status": PID}                                                                 its exit status, null while it runs

At the end of the input the process ends; nodes that do not end with it go on.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from .child_processes import end_with_parent
from .process_title import set_command_line


class _Children:
    """Their ends are kept until they are asked for."""

    def __init__(self) -> None:
        self._statuses: dict[int, int] = {}

    def status(self, pid: int) -> int | None:
        """Negative: ended by that signal."""
        self.reap()
        return self._statuses.get(pid)

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._statuses[pid] = os.waitstatus_to_exitcode(status)


def run(module_name: str) -> None:
    # There is no garbage in code that is loaded.
    gc.disable()
    module = import_module(module_name)
    module.load()
    own = os.getpid()
    children = _Children()
    for line in sys.stdin:
        order = json.loads(line)
        answer: int | str | None
        if "load" in order:
            getattr(module, order["load"])()
            continue
        if "status" in order:
            answer = children.status(order["status"])
        else:
            children.reap()
            try:
                output = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            except OSError as error:
                _answer(f"{order['log']} cannot be written: {error.strerror}")
                continue
            # No collection touches, and so copies, what nodes share. One before would find nothing worth its time.
            gc.freeze()
            answer = os.fork()
            if answer == 0:
                gc.enable()
                if order["ends_with_this"]:
                    end_with_parent(own)
                os._exit(_run_node(module, order["start"], output, order["title"]))
            os.close(output)
        try:
            _answer(answer)
        except BrokenPipeError:
            # Who asked for the node has ended, and does not know of it.
            if "start" in order and isinstance(answer, int):
                os.kill(answer, signal.SIGKILL)
            return


def _answer(answer: int | str | None) -> None:
    sys.stdout.write(f"{json.dumps(answer)}\n")
    sys.stdout.flush()


def _run_node(module: ModuleType, arguments: Sequence[str], output: int, title: Sequence[str]) -> int:
    """As a process that was started with these; returns the exit status."""
    set_command_line(title)
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(output)
    try:
        return int(module.run(*arguments))
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    # The terminal's Ctrl-C is for the program that looks after the nodes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run(sys.argv[1])
