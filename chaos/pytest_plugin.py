"""The fixtures that `pip install penstock-broker` brings.

    def test_order(penstock_cluster):
        topic = penstock_cluster.topic()
        producer = Producer({"bootstrap.servers": penstock_cluster.bootstrap})

Every pytest run on a machine with Penstock loads this module, so it imports nothing but pytest: fixtures import
what they need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from .simulation.application.item_process import ItemProcess
    from .simulation.application.simulation import Simulation
    from .testing.async_chaos_cluster import AsyncChaosCluster
    from .testing.chaos_cluster import ChaosCluster
    from .testing.session_clusters import SessionClusters

_FIXTURE = "penstock_cluster"
_SIMULATED = "penstock_sim"
_SECTION = "penstock: what happened"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("penstock").addoption(
        "--penstock-seed", type=int, metavar="N", help="The only seed that tests with penstock_sim are run with."
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "penstock(nodes=3, config={}, client_slots=1): the cluster that penstock_cluster is in this test: how many "
        "nodes, broker properties of Kafka, groups of clients. Tests that ask for the same share one.",
    )
    config.addinivalue_line(
        "markers",
        "penstock_sim(seeds=1, nodes=3, config={}, limit_s=7200): with how many seeds the test is run, how many nodes "
        "its simulated clusters have, broker properties of Kafka, and how much virtual time a scenario has.",
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


@pytest.fixture
def penstock_sim(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Simulation | ItemProcess:
    """Runs asyncio code with aiokafka and a whole cluster in virtual time, from a seed: `penstock_sim.run(scenario)`.

    The body of the test runs in an interpreter of its own.
    """
    from .simulation.application.item_process import ItemProcess, is_needed

    if is_needed():
        return ItemProcess(request.node, tmp_path_factory.mktemp(_SIMULATED), [])
    from .simulation.application.simulation import Simulation

    return Simulation(**{name: value for name, value in _sim_options(request.node).items() if name != "seeds"})


def _sim_options(item: pytest.Item) -> dict[str, Any]:
    marker = item.get_closest_marker(_SIMULATED)
    if marker is not None and marker.args:
        pytest.fail("@pytest.mark.penstock_sim takes seeds=…, nodes=… and config=…, by name", pytrace=False)
    return {} if marker is None else dict(marker.kwargs)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    simulated = pyfuncitem.funcargs.get(_SIMULATED)
    if simulated is None:
        return None
    from .simulation.application.item_process import ItemProcess

    if isinstance(simulated, ItemProcess):
        simulated.run()
        return True
    from .simulation.application.item_seeds import call_with_seeds
    from .simulation.application.simulation import Simulation

    __tracebackhide__ = True
    assert isinstance(simulated, Simulation), "another fixture has this name"

    seed = pyfuncitem.config.getoption("penstock_seed")
    seeds = range(_sim_options(pyfuncitem).get("seeds", 1)) if seed is None else (seed,)
    names = pyfuncitem._fixtureinfo.argnames
    call_with_seeds(lambda: pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}), simulated, seeds)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows what happened to the cluster: faults, leaders, and the requests of the test's clients."""
    report = yield
    if not report.failed or report.when != "call":
        return report
    arguments = getattr(item, "funcargs", {})
    if (cluster := arguments.get(_FIXTURE)) is not None:
        report.sections.append((_SECTION, cluster.story()))
    if (simulated := arguments.get(_SIMULATED)) is not None:
        from .simulation.application.item_process import sections_of

        report.sections += sections_of(item, simulated)
    return report
