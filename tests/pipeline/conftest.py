"""One session of Spark and one cluster of three nodes for every test here, which run in one process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from missing_tools import unavailable

from penstock.local.cluster import LocalCluster
from penstock.pipeline.connector.artefacts import artefacts
from penstock.pipeline.connector.jars import JarsMissingError, resolve
from penstock.pipeline.connector.java import JavaMissingError, java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_TIMEOUT_S: Final = 900


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """py4j leaves sockets to the collector of garbage, whenever that comes. A job that is killed and started again
    waits for a JVM each time, which on a busy machine is most of a minute."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(_TIMEOUT_S))


@pytest.fixture(scope="session")
def spark_jars() -> tuple[Path, ...]:
    """The jars of the connector and of the formats of tables, fetched once."""
    pyspark = pytest.importorskip("pyspark")
    try:
        return resolve(artefacts(("delta", "iceberg"), pyspark.__version__), repository=None, java_home=java_home())
    except (JarsMissingError, JavaMissingError) as error:
        unavailable(str(error))


@pytest.fixture(scope="session")
def spark(spark_jars: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from penstock.pipeline.running.session import local_session

    session = local_session(
        "penstock-tests",
        master="local[2]",
        artefacts=(),
        jars=spark_jars,
        java_home=java_home(),
        settings={
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            **_table_formats(tmp_path_factory.mktemp("iceberg")),
        },
    )
    yield session
    session.stop()


def _table_formats(warehouse: Path) -> dict[str, str]:
    """Delta for tables by path, and a catalog `lake` of Iceberg, in one session."""
    return {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(warehouse),
        # A batch has a session of its own, whose commits a cache of this one would not see.
        "spark.sql.catalog.lake.cache-enabled": "false",
        # Delta reads its log in that many tasks, 50 by default.
        "spark.databricks.delta.snapshotPartitions": "2",
    }


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
