"""The lists of what cannot pass yet name tests that there are, and that pass on Apache Kafka."""

from __future__ import annotations

import pytest
from conformance.expectations import NOT_YET_FACTOR, NOT_YET_GRACE_S, read_expectations
from conformance.suites import SUITES


@pytest.mark.parametrize("suite", [suite.name for suite in SUITES])
def test_what_cannot_pass_yet_passes_on_apache_kafka(suite: str) -> None:
    expectations = read_expectations(suite)
    assert expectations.baseline, f"{suite} has no baseline"
    others = [test for test in expectations.not_yet if test not in expectations.baseline]
    assert not others, "not in the baseline"
    assert all(expectations.baseline[test].status == "passed" for test in expectations.not_yet)


def test_a_test_that_is_expected_to_fail_gets_less_time() -> None:
    expectations = read_expectations("java-tools")
    listed = "share_consumer"
    other = "acls"
    usual_s = expectations.baseline[listed].seconds
    assert expectations.limit_s(listed, 300) == NOT_YET_GRACE_S + NOT_YET_FACTOR * usual_s
    assert expectations.limit_s(other, 300) == 300
