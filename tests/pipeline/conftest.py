"""One session of Spark and one cluster of three nodes for every test here, which run in one process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from missing_tools import unavailable

from penstock.local.cluster import LocalCluster
from penstock.pipeline.connector.artefacts import artefacts
from penstock.pipeline.connector.jars import JarsMissingError, resolve
from penstock.pipeline.connector.java import JavaMissingError, java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """py4j leaves sockets to the collector of garbage, whenever that comes."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(scope="session")
def spark_jars() -> tuple[Path, ...]:
    """The connector's jars, fetched once."""
    pyspark = pytest.importorskip("pyspark")
    try:
        return resolve(artefacts((), pyspark.__version__), repository=None, java_home=java_home())
    except (JarsMissingError, JavaMissingError) as error:
        unavailable(str(error))


@pytest.fixture(scope="session")
def spark(spark_jars: tuple[Path, ...]) -> Iterator[SparkSession]:
    from penstock.pipeline.running.session import local_session

    session = local_session(
        "penstock-tests",
        master="local[2]",
        artefacts=(),
        jars=spark_jars,
        java_home=java_home(),
        settings={"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"},
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three nodes that every test here shares: no test may kill one. Use topic names of your own."""
    with LocalCluster(tmp_path_factory.mktemp("cluster"), node_count=3) as running:
        yield running


@pytest.fixture
def bootstrap(request: pytest.FixtureRequest) -> str:
    """`PENSTOCK_TEST_BOOTSTRAP=host:port` runs the tests against that cluster instead, three nodes of Apache Kafka for
    instance: that is how the tests themselves are tried."""
    given = os.environ.get("PENSTOCK_TEST_BOOTSTRAP")
    if given:
        return given
    cluster: LocalCluster = request.getfixturevalue("cluster")
    return cluster.bootstrap
