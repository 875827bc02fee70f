"""Which artefacts of Maven repositories a job needs beside the jars of pyspark, for each version of it.

pyspark brings Scala, Hadoop and the codecs: of what the connector depends on, four jars of 10 MB are missing. Without
the exclusions Maven's closure is 63 MB, most of it there already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

CONNECTOR: Final = "kafka"
AVRO: Final = "avro"
PROTOBUF: Final = "protobuf"
DELTA: Final = "delta"
ICEBERG: Final = "iceberg"

EXCLUDED: Final = (
    "com.google.code.findbugs:jsr305",
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.lz4:lz4-java",
    "org.scala-lang.modules:scala-parallel-collections_2.13",
    "org.scala-lang:scala-library",
    "org.slf4j:slf4j-api",
    "org.xerial.snappy:snappy-java",
)
"""In pyspark already."""

_SCALA: Final = "2.13"


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """A coordinate, and the Spark settings without which it is of no use."""

    coordinate: str
    """group:name:version."""
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def file_pattern(self) -> str:
        """The name of its jar; Ivy puts the group in front, Maven does not."""
        _, name, version = self.coordinate.split(":")
        return f"*{name}-{version}.jar"


class UnsuitableSparkError(Exception):
    """This version of Spark cannot run the jobs; the message says which can."""


def check_spark_version(version: str) -> None:
    """Raises UnsuitableSparkError."""
    major, minor = (int(number) for number in re.findall(r"\d+", version)[:2])
    if (major, minor) == (4, 1):
        raise UnsuitableSparkError(
            f"pyspark {version} cannot be used: after a crash in its first batch a query of 4.1 never starts again "
            "(SPARK-55271). Install another one: pip install 'pyspark==4.0.0'."
        )
    if major != 4:
        raise UnsuitableSparkError(f"pyspark {version} is not known here: pip install 'pyspark==4.0.0'.")


def artefact(name: str, spark_version: str) -> Artefact:
    """Raises KeyError for a name that is none."""
    return _artefacts(spark_version)[name]


def artefacts(names: Iterable[str], spark_version: str) -> tuple[Artefact, ...]:
    """The connector's and those of `names`, each once."""
    known = _artefacts(spark_version)
    return tuple(known[name] for name in dict.fromkeys((CONNECTOR, *names)))


def _artefacts(spark_version: str) -> dict[str, Artefact]:
    return {
        CONNECTOR: Artefact(coordinate=f"org.apache.spark:spark-sql-kafka-0-10_{_SCALA}:{spark_version}"),
        AVRO: Artefact(coordinate=f"org.apache.spark:spark-avro_{_SCALA}:{spark_version}"),
        PROTOBUF: Artefact(coordinate=f"org.apache.spark:spark-protobuf_{_SCALA}:{spark_version}"),
        DELTA: Artefact(
            coordinate=f"io.delta:delta-spark_{_SCALA}:4.0.0",
            settings=(
                ("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"),
                ("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"),
            ),
        ),
        ICEBERG: Artefact(
            coordinate=f"org.apache.iceberg:iceberg-spark-runtime-4.0_{_SCALA}:1.11.0",
            settings=(("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"),),
        ),
    }
