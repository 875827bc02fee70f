"""The Spark session of a job."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..connector.artefacts import Artefact
from ..connector.java import DEEP_STACKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGING: Final = Path(__file__).with_name("log4j2.properties")


def local_session(
    name: str,
    *,
    master: str,
    artefacts: Sequence[Artefact],
    jars: Sequence[Path],
    java_home: str | None,
    settings: Mapping[str, str],
) -> SparkSession:
    """A session whose JVM is a child of this process. Executors of `local[…]` are threads of that JVM; another master
    finds its workers by itself, and gets the jars sent. `settings` win over all others."""
    from pyspark.sql import SparkSession

    # Without this, workers run whatever `python3` is first on the PATH.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    if java_home is not None:
        os.environ["JAVA_HOME"] = java_home
    builder = SparkSession.builder.appName(name).master(master)
    here = _of_one_machine(master) if master.startswith("local") else {}
    options = f"{DEEP_STACKS} -Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    java = {"spark.driver.extraJavaOptions": options}
    for key, value in {
        **_defaults(artefacts),
        **here,
        **java,
        "spark.jars": ",".join(map(str, jars)),
        **settings,
    }.items():
        builder = builder.config(key, value)
    return _quiet(builder.getOrCreate())


def submitted_session(name: str, *, artefacts: Sequence[Artefact]) -> SparkSession:
    """The session that spark-submit has set up: master, jars and resources are its own."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    for key, value in _defaults(artefacts).items():
        builder = builder.config(key, value)
    return _quiet(builder.getOrCreate())


def _of_one_machine(master: str) -> dict[str, str]:
    threads = re.match(r"local\[(\d+)", master)
    count = int(threads[1]) if threads else (os.cpu_count() or 1) if "[" in master else 1
    return {
        # Threads of one JVM have nothing to say to other machines.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # The most that the heap may grow to. Of Spark's gigabyte a thousand partitions fill half with records of 1 KiB
        # that were fetched for the next batch, up to 500 of each.
        "spark.driver.memory": "2g",
        # Spark's own default is 200: as many stores of state, each written in every batch.
        "spark.sql.shuffle.partitions": str(count),
    }


def _defaults(artefacts: Sequence[Artefact]) -> dict[str, str]:
    return {
        # Event dates are UTC's on every machine.
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        # Of Spark's 64 none is left when a hundred partitions come round again: all would connect anew in each batch.
        # Each holds up to two fetches of a megabyte.
        "spark.kafka.consumer.cache.capacity": "128",
        # The state of a stateful query that outgrows the heap lies in RocksDB.
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        **{key: value for artefact in artefacts for key, value in artefact.settings},
    }


def _quiet(session: SparkSession) -> SparkSession:
    session.sparkContext.setLogLevel("ERROR")
    return session
