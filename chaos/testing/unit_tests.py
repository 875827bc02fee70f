"""The cluster for tests of `unittest`.

class OrdersTest(ClusterTests, unittest.TestCase):
    penstock_nodes = 3

    def test_order(self):
        topic = self.cluster.topic()
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from ...local.errors import ClusterError
from .chaos_cluster import ChaosCluster

_SHOWN: Final = "penstock: what happened"


class ClusterTests:
    """Mixed into a TestCase, in front of it: `self.cluster` is one of the class, with fresh topics for each test.

    A test that fails prints the time line of the cluster. `penstock_nodes` and `penstock_config` are as of
    `ChaosCluster`.
    """

    penstock_nodes: ClassVar[int] = 3
    penstock_config: ClassVar[Mapping[str, object]] = {}
    cluster: ClassVar[ChaosCluster]

    @classmethod
    def setUpClass(cls) -> None:
        cls.cluster = ChaosCluster(nodes=cls.penstock_nodes, config=cls.penstock_config)
        # A cleanup is made even where what is set up behind this fails.
        cls.addClassCleanup(cls.cluster.close)  # type: ignore[attr-defined]
        cls.cluster.start()
        super().setUpClass()  # type: ignore[misc]

    def run(self, result: Any = None) -> Any:
        """One test: what the TestCase does, between the beginning and the end of it for the cluster."""
        if not hasattr(self, "cluster"):
            # The class is skipped: it was not set up.
            return super().run(result)  # type: ignore[misc]
        self.cluster.begin_test(str(getattr(self, "_testMethodName", "test")))
        failures = _failures(result)
        try:
            outcome = super().run(result)  # type: ignore[misc]
            if _failures(result) > failures:
                sys.stderr.write(f"{_SHOWN}\n{self.cluster.story()}\n")
            return outcome
        finally:
            self._end_test(result)

    def _end_test(self, result: Any) -> None:
        try:
            self.cluster.end_test()
        except ClusterError:
            if result is None:
                raise
            # An error of this test; raised here it would end the whole run.
            result.addError(self, sys.exc_info())


def _failures(result: Any) -> int:
    return 0 if result is None else len(getattr(result, "failures", ())) + len(getattr(result, "errors", ()))
