"""A sample of each suite: all of it that passes on Apache Kafka passes here."""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance.execution import execute
from conformance.expectations import read_expectations
from conformance.report import complaints
from conformance.samples import SAMPLES, sample
from conformance.suite import Suite, SuiteUnavailableError
from conformance.suites import SUITES
from missing_tools import unavailable

SAMPLED = [suite for suite in SUITES if suite.name in SAMPLES]


@pytest.mark.integration
@pytest.mark.timeout(1800)  # the first run builds librdkafka
@pytest.mark.parametrize("suite", SAMPLED, ids=[suite.name for suite in SAMPLED])
def test_what_passes_on_apache_kafka_passes_here(suite: Suite, tmp_path: Path) -> None:
    wants = sample(suite.name, read_expectations(suite.name))
    try:
        finished = execute(suite, tmp_path / suite.name, wants, jobs=2)
    except SuiteUnavailableError as missing:
        unavailable(str(missing))
    failures = [
        f"{result.test}: {result.detail}"
        for test, result in finished.results.items()
        if test in finished.verdict.failed
    ]
    assert finished.verdict.is_clean, "\n".join([*complaints(finished), *failures])
    assert finished.verdict.passed
