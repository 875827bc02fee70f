"""One test run with a mutant applied, in this process: a pytest of its own for each would take seconds."""

from __future__ import annotations

import gc
import logging
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType
from weakref import WeakSet

import pytest

TESTS = Path(__file__).parents[1]
UNIT = TESTS / "unit"


class _Verdict:
    """Counts by outcome, and what failed tests printed."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.passed = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(f"{report.nodeid} {report.when}: {report.longreprtext}")
        elif report.when == "call" and report.passed:
            self.passed += 1


def failures_with(mutant: AbstractContextManager[None], test: str) -> list[str]:
    """Run a test below `tests/unit` (`storage/log/test_recovery.py::test_x`) with the mutant applied.

    Returns what failed in its call, a text each. AssertionError when the test could not be run at all, or when it has
    left sockets open that nothing closes: some later test would be told of them.
    """
    open_before = _open_sockets()
    # What tests have imported from the module that the mutant patches: they are loaded anew, for this run only.
    loaded = _modules_of_tests()
    for name in loaded:
        del sys.modules[name]
    verdict = _Verdict()
    # Without plugins: some do not load twice in a process, and the deadline is the outer test's.
    arguments = ["--disable-plugin-autoload", "-p", "no:cacheprovider", "--assert=plain", "-q", "--no-header"]
    arguments += ["-o", "addopts=--import-mode=importlib", "-o", "filterwarnings=ignore"]
    try:
        # What a test that fails in the middle leaves open is closed here, not by the collector in a later test.
        with mutant, warnings.catch_warnings(action="ignore"), _logged_to_inner_run_only():
            status = pytest.main([*arguments, f"{UNIT / test}"], plugins=[verdict])
            for name in ("last_exc", "last_type", "last_value", "last_traceback"):
                vars(sys).pop(name, None)
            gc.collect()
    finally:
        for name in _modules_of_tests():
            del sys.modules[name]
        sys.modules.update(loaded)
    assert status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), f"{test}: {status!r}"
    left_open = [one for one in _open_sockets() if one not in open_before]
    assert not left_open, f"{test} leaves {len(left_open)} sockets open"
    return verdict.failed


def _open_sockets() -> WeakSet[socket.socket]:
    return WeakSet(one for one in gc.get_objects() if isinstance(one, socket.socket) and one.fileno() >= 0)


@contextmanager
def _logged_to_inner_run_only() -> Iterator[None]:
    """An exception that the outer run has in its log keeps all that its frames knew: nodes with open sockets."""
    root = logging.getLogger()
    outer, root.handlers = root.handlers, []
    try:
        yield
    finally:
        root.handlers = outer


def _modules_of_tests() -> dict[str, ModuleType]:
    return {
        name: module
        for name, module in sys.modules.items()
        if (file := getattr(module, "__file__", None)) is not None and Path(file).is_relative_to(TESTS)
    }
