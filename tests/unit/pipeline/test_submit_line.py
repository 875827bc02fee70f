"""The line of spark-submit."""

from __future__ import annotations

import shlex
from pathlib import Path

from penstock.pipeline.connector.artefacts import artefacts
from penstock.pipeline.submission.submit_line import PROGRAM, secrets_in, submit_line


def _words(
    *, jars: tuple[Path, ...] = (), archive: str | None = None, file: Path | None = None, deploy_mode: str = "client"
) -> list[str]:
    return shlex.split(
        submit_line(
            "lake",
            program="spark-submit",
            master="yarn",
            deploy_mode=deploy_mode,
            python="/here/python",
            artefacts=artefacts(("delta",), "4.0.0"),
            jars=jars,
            archive=archive,
            file=file,
            assignments={"path": "s3a://lake/of ours", "topics": "a,b"},
        )
    )


def test_spark_fetches_jars_unless_they_are_given() -> None:
    fetched = _words()
    assert fetched[fetched.index("--packages") + 1].startswith(
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0,io.delta"
    )
    assert "--exclude-packages" in fetched
    given = _words(jars=(Path("/jars/a.jar"), Path("/jars/b.jar")))
    assert "--packages" not in given
    assert given[given.index("--jars") + 1] == "/jars/a.jar,/jars/b.jar"


def test_what_the_job_is_told_stands_behind_the_program() -> None:
    words = _words(file=Path("/etc/job.toml"))
    assert words[words.index(str(PROGRAM)) + 1 :] == [
        *("lake", "--config", "/etc/job.toml"),
        *("--set", "path=s3a://lake/of ours", "--set", "topics=a,b"),
    ]
    assert words[words.index("--files") + 1] == "/etc/job.toml"


def test_settings_of_a_format_of_tables_are_there() -> None:
    assert "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension" in _words()


def test_an_archive_brings_python() -> None:
    words = _words(archive="environment.tar.gz")
    assert words[words.index("--archives") + 1] == "environment.tar.gz#environment"
    assert "spark.pyspark.python=./environment/bin/python" in words
    # The driver is here, where nothing is unpacked, or there.
    assert "spark.pyspark.driver.python=/here/python" in words
    assert not [word for word in _words(archive="environment.tar.gz", deploy_mode="cluster") if "driver.python" in word]


def test_without_an_archive_python_is_at_the_same_place_everywhere() -> None:
    assert "spark.pyspark.python=/here/python" in _words()


def test_options_that_are_secrets_are_named() -> None:
    told = {
        "topics": "a",
        "kafka.sasl.jaas.config": "…",
        "sink_kafka.ssl.keystore.password": "…",
        "kafka.ssl.keystore.key": "…",
        "value.registry.basic.auth.user.info": "…",
        "kafka.ssl.truststore.location": "a.pem",
        "key": "value.id",
    }
    assert secrets_in(told) == (
        "kafka.sasl.jaas.config",
        "kafka.ssl.keystore.key",
        "sink_kafka.ssl.keystore.password",
        "value.registry.basic.auth.user.info",
    )
