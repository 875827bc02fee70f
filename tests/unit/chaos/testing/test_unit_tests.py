"""The cluster of a TestCase is closed whatever fails, and hides no failure of a test."""

from __future__ import annotations

import unittest
from typing import Any

import pytest

from penstock.chaos.testing import unit_tests
from penstock.chaos.testing.unit_tests import ClusterTests
from penstock.local.errors import ClusterError


class FakeCluster:
    """Notes what it is asked; cannot be healed after the test `test_that_breaks`."""

    done: list[str]

    def __init__(self, **_options: Any) -> None:
        FakeCluster.done = []
        self._test = ""

    def start(self) -> None:
        self.done.append("start")

    def close(self) -> None:
        self.done.append("close")

    def begin_test(self, name: str) -> None:
        self._test = name

    def end_test(self) -> None:
        self.done.append(self._test)
        if self._test == "test_that_breaks":
            raise ClusterError("node 2 does not come back")

    def story(self) -> str:
        return "what happened"


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_tests, "ChaosCluster", FakeCluster)


def run(case: type[unittest.TestCase]) -> unittest.TestResult:
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    return result


def test_a_cluster_that_does_not_heal_is_an_error_of_its_test_and_the_others_run() -> None:
    class Orders(ClusterTests, unittest.TestCase):
        def test_that_breaks(self) -> None:
            pass

        def test_then(self) -> None:
            pass

    result = run(Orders)
    assert result.testsRun == 2
    ((failed, sentence),) = result.errors
    assert failed.id().endswith("test_that_breaks")
    assert "node 2 does not come back" in sentence
    assert FakeCluster.done == ["start", "test_that_breaks", "test_then", "close"]


def test_a_setup_that_fails_leaves_no_cluster_behind() -> None:
    class Orders(ClusterTests, unittest.TestCase):
        @classmethod
        def setUpClass(cls) -> None:
            super().setUpClass()
            raise RuntimeError("no database")

        def test_order(self) -> None:
            pass

    assert len(run(Orders).errors) == 1
    assert FakeCluster.done == ["start", "close"]


def test_a_class_that_is_skipped_needs_no_cluster() -> None:
    @unittest.skip("not here")
    class Orders(ClusterTests, unittest.TestCase):
        def test_order(self) -> None:
            pass

    result = run(Orders)
    assert len(result.skipped) == 1
    assert result.errors == []


def test_a_failure_shows_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    class Orders(ClusterTests, unittest.TestCase):
        def test_order(self) -> None:
            self.fail("as it is meant to")

    assert len(run(Orders).failures) == 1
    assert "penstock: what happened\nwhat happened" in capsys.readouterr().err
