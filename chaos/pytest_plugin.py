"""The fixtures that `pip install penstock-broker` brings.

    def test_order(penstock_cluster):
        topic = penstock_cluster.topic()
        producer = Producer({"bootstrap.servers": penstock_cluster.bootstrap})

Every pytest run on a machine with Penstock loads this module, so it imports nothing but pytest: fixtures import
what they need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from .testing.async_chaos_cluster import AsyncChaosCluster
    from .testing.chaos_cluster import ChaosCluster
    from .testing.session_clusters import SessionClusters

_FIXTURE = "penstock_cluster"
_SECTION = "penstock: what happened"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "penstock(nodes=3, config={}, client_slots=1): the cluster that penstock_cluster is in this test: how many "
        "nodes, broker properties of Kafka, groups of clients. Tests that ask for the same share one.",
    )


@pytest.fixture(scope="session")
def penstock_clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SessionClusters]:
    """The clusters of this session; each is started by the first test that asks for it."""
    from .testing.session_clusters import SessionClusters

    clusters = SessionClusters(tmp_path_factory.mktemp("penstock"))
    yield clusters
    clusters.close()


@pytest.fixture
def penstock_cluster(request: pytest.FixtureRequest, penstock_clusters: SessionClusters) -> Iterator[ChaosCluster]:
    """A running Kafka cluster that the test may break; it is healed before the next test gets it."""
    marker = request.node.get_closest_marker("penstock")
    if marker is not None and marker.args:
        pytest.fail("@pytest.mark.penstock takes nodes=… and config=…, by name", pytrace=False)
    cluster = penstock_clusters.of(**({} if marker is None else marker.kwargs))
    cluster.begin_test(request.node.name)
    yield cluster
    try:
        cluster.end_test()
    except Exception:
        penstock_clusters.drop(cluster)
        raise


@pytest.fixture
def penstock_cluster_async(penstock_cluster: ChaosCluster) -> AsyncChaosCluster:
    """The same for tests that are coroutines, of pytest-asyncio or anyio: its methods are awaited."""
    from .testing.async_chaos_cluster import AsyncChaosCluster

    return AsyncChaosCluster(penstock_cluster)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows what happened to the cluster: faults, leaders, and the requests of the test's clients."""
    report = yield
    cluster = getattr(item, "funcargs", {}).get(_FIXTURE)
    if report.failed and report.when == "call" and cluster is not None:
        report.sections.append((_SECTION, cluster.story()))
    return report
