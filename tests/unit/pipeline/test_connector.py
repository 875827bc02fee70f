"""What Spark needs beside itself: artefacts, jars, Java, properties of clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.pipeline.config import JobConfig
from penstock.pipeline.connector.artefacts import UnsuitableSparkError, artefacts, check_spark_version
from penstock.pipeline.connector.client_properties import SINK, SOURCE, client_config, spark_options
from penstock.pipeline.connector.jars import JarsMissingError, given
from penstock.pipeline.connector.java import JavaMissingError, java_home


def test_the_connector_has_the_version_of_spark() -> None:
    connector, avro = artefacts(("avro", "kafka"), "4.0.0")
    assert connector.coordinate == "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
    assert avro.coordinate == "org.apache.spark:spark-avro_2.13:4.0.0"


@pytest.mark.parametrize("version", ["4.0.0", "4.0.4", "4.2.0", "4.3.0.dev1"])
def test_versions_that_can_be_used(version: str) -> None:
    check_spark_version(version)


@pytest.mark.parametrize(("version", "why"), [("4.1.1", "SPARK-55271"), ("3.5.1", "not known"), ("5.0.0", "not known")])
def test_versions_that_cannot(version: str, why: str) -> None:
    with pytest.raises(UnsuitableSparkError, match=why):
        check_spark_version(version)


@pytest.mark.parametrize(
    "name",
    ["spark-sql-kafka-0-10_2.13-4.0.0.jar", "org.apache.spark_spark-sql-kafka-0-10_2.13-4.0.0.jar"],
)
def test_jars_that_are_given_have_the_names_of_any_repository(tmp_path: Path, name: str) -> None:
    needed = artefacts((), "4.0.0")
    with pytest.raises(JarsMissingError, match=r"spark-sql-kafka-0-10_2\.13:4\.0\.0"):
        given(needed, tmp_path)
    (tmp_path / name).touch()
    assert given(needed, tmp_path) == (tmp_path / name,)


def test_a_jar_of_another_version_is_not_the_one(tmp_path: Path) -> None:
    (tmp_path / "spark-sql-kafka-0-10_2.13-4.2.0.jar").touch()
    with pytest.raises(JarsMissingError):
        given(artefacts((), "4.0.0"), tmp_path)


def test_a_home_without_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(JavaMissingError, match="JAVA_HOME"):
        java_home({"JAVA_HOME": str(tmp_path)})


def _java(folder: Path, version: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    program.chmod(0o755)
    return folder


def test_a_java_that_spark_cannot_run_on_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JavaMissingError, match="is Java 11"):
        java_home({"JAVA_HOME": str(_java(tmp_path, "11.0.2"))})


def test_java_home_wins_over_the_path(tmp_path: Path) -> None:
    named, found = _java(tmp_path / "a", "17.0.15"), _java(tmp_path / "b", "21")
    assert java_home({"JAVA_HOME": str(named), "PATH": str(found / "bin")}) == str(named)
    assert java_home({"PATH": str(found / "bin")}) is None


def test_each_side_has_its_properties() -> None:
    config = JobConfig(
        bootstrap="source:1",
        sink_bootstrap="sink:2",
        checkpoint="c",
        kafka={"security.protocol": "SSL", "client.id": "both"},
        sink_kafka={"client.id": "sink"},
    )
    options = spark_options(config, SOURCE)
    assert options["kafka.bootstrap.servers"] == "source:1"
    assert options["kafka.security.protocol"] == "SSL"
    assert options["kafka.client.id"] == "both"
    assert spark_options(config, SINK)["kafka.client.id"] == "sink"
    assert client_config(config, SINK)["bootstrap.servers"] == "sink:2"


def test_a_source_has_times_of_its_own_unless_one_is_given() -> None:
    config = JobConfig(bootstrap="b:1", checkpoint="c")
    assert spark_options(config, SOURCE)["kafka.default.api.timeout.ms"] == "20000"
    assert spark_options(config, SOURCE)["kafka.fetch.max.wait.ms"] == "10"
    assert spark_options(config, SINK) == {"kafka.bootstrap.servers": "b:1"}
    # Java refuses a default.api.timeout.ms below request.timeout.ms.
    timed = JobConfig(bootstrap="b:1", checkpoint="c", source_kafka={"request.timeout.ms": "30000"})
    assert spark_options(timed, SOURCE)["kafka.request.timeout.ms"] == "30000"
    assert "kafka.default.api.timeout.ms" not in spark_options(timed, SOURCE)


def test_the_sink_is_the_source_unless_it_is_named() -> None:
    config = JobConfig(bootstrap="source:1", checkpoint="c")
    assert spark_options(config, SINK)["kafka.bootstrap.servers"] == "source:1"
    assert spark_options(config, SOURCE, bootstrap="other:3")["kafka.bootstrap.servers"] == "other:3"


def test_a_password_is_librdkafkas_where_librdkafka_reads() -> None:
    config = JobConfig(
        bootstrap="b:1",
        checkpoint="c",
        kafka={
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": (
                'org.apache.kafka.common.security.plain.PlainLoginModule required username="ada" password="pw";'
            ),
        },
    )
    found = client_config(config, SOURCE)
    assert (found["sasl.username"], found["sasl.password"]) == ("ada", "pw")
