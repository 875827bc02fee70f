"""A job whose clusters want TLS and a password: both of its clients, Spark's and librdkafka, prove themselves."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from certificates import Authority
from pipeline_topics import Sent, create_topics, drain, produce

from penstock.local.cluster import LocalCluster
from penstock.local.local_node import LocalNode
from penstock.local.ports import find_free
from penstock.pipeline.config_reading import read_config
from penstock.pipeline.job import JobError
from penstock.pipeline.jobs.catalogue import find_job
from penstock.pipeline.running.runner import StopRequest, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COUNT: Final = 300
_USERS: Final = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="node" password="of-nodes"'
    ' user_node="of-nodes" user_pipeline="of-jobs";'
)
_LOGIN: Final = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="pipeline" password="{}";'


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """The folder of its certificate, and of the node's."""
    authority = Authority()
    (tmp_path / "authority.pem").write_text(authority.certificate)
    (tmp_path / "node.pem").write_text(authority.issue_for_node(1))
    return tmp_path


@pytest.fixture
def secured(authority: Path) -> Iterator[tuple[str, str]]:
    """A node with two listeners: a plain one, for the test, and one with passwords inside TLS."""
    port = find_free(random.Random())

    def rewire(node: LocalNode, told: Mapping[str, str]) -> Mapping[str, str]:
        return {**told, "listeners": f"SECURED://127.0.0.1:{port},PLAINTEXT://127.0.0.1:{node.port}"}

    properties = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURED:SASL_SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.secured.plain.sasl.jaas.config": _USERS,
        "listener.name.secured.ssl.keystore.type": "PEM",
        "listener.name.secured.ssl.keystore.location": str(authority / "node.pem"),
    }
    with LocalCluster(authority / "cluster", properties=properties, rewire=rewire) as cluster:
        yield cluster.bootstrap, f"127.0.0.1:{port}"


def _mirror(spark: SparkSession, bootstrap: str, folder: Path, password: str) -> int:
    """Both sides are the same cluster; what a client needs stands in a file, as passwords should."""
    job = find_job("mirror")
    text = f"""
        bootstrap = "{bootstrap}"
        checkpoint = "{folder / password}"
        topics = ["secret"]
        topic_format = "copy.{{topic}}"
        available_now = true
        [kafka]
        security.protocol = "SASL_SSL"
        sasl.mechanism = "PLAIN"
        sasl.jaas.config = '{_LOGIN.format(password)}'
        ssl.truststore.type = "PEM"
        ssl.truststore.location = "{folder / "authority.pem"}"
        """
    config: Any = read_config(job.config_type, text=text, assignments={})
    return run(spark, job, config, stop=StopRequest(), stop_timeout_s=60)


def test_both_clients_of_a_job_prove_themselves(
    spark: SparkSession, secured: tuple[str, str], authority: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plain, bootstrap = secured
    create_topics(plain, "secret", replica_count=1)
    produce(plain, "secret", (Sent(value=str(number)) for number in range(_COUNT)))
    assert _mirror(spark, bootstrap, authority, "of-jobs") == 0
    copied = sorted(int(message.value() or b"") for message in drain(plain, "copy.secret", count=_COUNT))
    assert copied == [*range(_COUNT)]
    with pytest.raises(JobError) as refused:
        _mirror(spark, bootstrap, authority, "guessed")
    assert "guessed" not in str(refused.value)
    assert "of-jobs" not in caplog.text
