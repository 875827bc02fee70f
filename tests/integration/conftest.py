"""A running broker for every test here, and the clients that need more than Python.

`PENSTOCK_TEST_BOOTSTRAP=host:port` runs the same tests against that broker instead, Apache Kafka for instance: that is
how the tests themselves are tried.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from missing_tools import unavailable

from penstock import cli
from penstock.local.apache_kafka.jars import JarsUnavailableError, KafkaJars, install
from penstock.local.cluster import LocalCluster


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The broker under test: one node with defaults, shared by the session; use topic names of your own."""
    given = os.environ.get("PENSTOCK_TEST_BOOTSTRAP")
    if given:
        yield given
        return
    with LocalCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster.bootstrap


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name of this test's own; the topic is not created."""
    name = "".join(character if character.isalnum() else "-" for character in request.node.name)
    return f"{name[:80]}-{os.getpid()}-{next(_numbers)}"


@pytest.fixture(scope="session")
def kafka_jars() -> KafkaJars:
    try:
        return install()
    except JarsUnavailableError as missing:
        unavailable(str(missing))


@pytest.fixture(scope="session")
def kcat() -> Path:
    found = shutil.which("kcat") or shutil.which("kafkacat")
    if found is None:
        unavailable("kcat is not installed (Debian: apt-get install kcat)")
    return Path(found)


@pytest.fixture
def penstock(bootstrap: str) -> Callable[..., Result]:
    """Runs a subcommand of `penstock` against the broker under test; any exit status but `status` fails the test."""

    def run(*arguments: str | int, stdin: str = "", status: int = 0) -> Result:
        result = CliRunner(env={"KAFKA_BOOTSTRAP_SERVERS": bootstrap}).invoke(
            cli.main, [str(argument) for argument in arguments], input=stdin, prog_name="penstock"
        )
        assert result.exit_code == status, result.output
        return result

    return run


_numbers = iter(range(1_000_000))
