"""A test that is run with many seeds: each in a fork, and the first that fails once more here, for its traceback."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable

import pytest

from ....local.child_processes import end_with_parent
from .simulation import Simulation


def call_with_seeds(call: Callable[[], object], simulation: Simulation, seeds: Iterable[int]) -> None:
    """Raises what `call` raises with the first seed with which it raises anything."""
    __tracebackhide__ = True
    chosen = tuple(seeds)
    if len(chosen) == 1:
        simulation.seed = chosen[0]
        call()
        return
    for seed in chosen:
        simulation.seed = seed
        error = _error_in_fork(call)
        if error is not None:
            call()
            pytest.fail(
                f"seed {seed} passed when it was run again: something in the test depends on more than the seed. "
                f"The first time it failed:\n{error}",
                pytrace=False,
            )


def _error_in_fork(call: Callable[[], object]) -> str | None:
    """The traceback, or None. What the call does to this process's memory is gone with the fork."""
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    own = os.getpid()
    pid = os.fork()
    if not pid:
        end_with_parent(own)
        os.close(reading)
        text = "it ended"
        try:
            call()
            text = ""
        except BaseException:
            text = traceback.format_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            with os.fdopen(writing, "w") as told:
                told.write(text)
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        text = told.read()
    _, status = os.waitpid(pid, 0)
    return text or (f"it ended with status {status}" if status else None)
