"""The transcripts that are compared, each taken once a session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NoReturn

import pytest
from differential import brokers
from differential.golden import read_golden
from differential.permissions import brokers as permissions
from differential.permissions.layout import Layout, closed, open_to_all
from differential.permissions.matrix import Matrix
from differential.player import IS_LIVE, Player
from differential.script import Transcript

from penstock.local.apache_kafka.jars import JarsUnavailableError, install

collect_ignore = [] if IS_LIVE else ["test_live.py"]


@pytest.fixture(scope="session")
def penstock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Player]:
    with brokers.penstock(tmp_path_factory.mktemp("penstock")) as target:
        yield Player(target)


@pytest.fixture(scope="session")
def golden() -> Transcript:
    return read_golden()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Player]:
    """A running Apache Kafka."""
    try:
        jars = install()
    except JarsUnavailableError as missing:
        unavailable(str(missing))
    with brokers.apache_kafka(jars, tmp_path_factory.mktemp("kafka")) as target:
        yield Player(target)


@pytest.fixture(scope="session", params=[closed(), open_to_all()], ids=lambda layout: layout.name)
def layout(request: pytest.FixtureRequest) -> Layout:
    """Each recording of the matrix."""
    assert isinstance(request.param, Layout)
    return request.param


@pytest.fixture(scope="session")
def kafka_permissions(tmp_path_factory: pytest.TempPathFactory, layout: Layout) -> Iterator[Matrix]:
    """A running Apache Kafka with an authorizer."""
    try:
        jars = install()
    except JarsUnavailableError as missing:
        unavailable(str(missing))
    with permissions.apache_kafka(jars, tmp_path_factory.mktemp("kafka-permissions"), layout) as matrix:
        yield matrix


def unavailable(sentence: str) -> NoReturn:
    """Leave a test out for want of something on this machine; in CI, where everything is installed, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(sentence)
    pytest.skip(sentence)
