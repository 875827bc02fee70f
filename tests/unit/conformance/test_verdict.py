"""A verdict lets no test that passes on Apache Kafka go unnoticed, and lets the list of exceptions shrink."""

from __future__ import annotations

from conformance.capabilities import Capability
from conformance.expectations import Baseline, Expectations
from conformance.suite import Result, Status
from conformance.verdict import Verdict, judge

PASSES = Baseline(status="passed", seconds=1.0)
FAILS = Baseline(status="failed", seconds=1.0)
EXPECTATIONS = Expectations(
    baseline={"good": PASSES, "listed": PASSES, "bad": FAILS}, not_yet={"listed": Capability.CONSUMER_GROUPS}
)


def verdict(**statuses: Status) -> Verdict:
    results = [Result(test=test, status=status, seconds=0.1) for test, status in statuses.items()]
    return judge(results, EXPECTATIONS, lambda _: True)


def test_what_apache_kafka_does_is_clean() -> None:
    judged = verdict(good=Status.PASSED, listed=Status.FAILED, bad=Status.FAILED)
    assert judged.is_clean
    assert (judged.passed, judged.not_yet, judged.skipped) == (("good",), ("listed",), ("bad",))


def test_a_test_that_passes_on_apache_kafka_may_neither_fail_nor_be_skipped_nor_be_missing() -> None:
    rest = {"listed": Status.FAILED, "bad": Status.PASSED}
    assert verdict(good=Status.FAILED, **rest).failed == ("good",)
    assert verdict(good=Status.SKIPPED, **rest).failed == ("good",)
    assert verdict(**rest).missing == ("good",)
    assert not verdict(**rest).is_clean


def test_a_listed_test_that_passes_is_to_be_taken_off_the_list() -> None:
    judged = verdict(good=Status.PASSED, listed=Status.PASSED, bad=Status.FAILED)
    assert judged.take_off == ("listed",)
    assert not judged.is_clean


def test_a_test_that_apache_kafka_was_not_asked_about_must_not_fail() -> None:
    rest = {"good": Status.PASSED, "listed": Status.FAILED}
    assert verdict(new=Status.FAILED, **rest).failed == ("new",)
    assert verdict(new=Status.SKIPPED, **rest).skipped == ("new",)


def test_only_wanted_tests_can_be_missing() -> None:
    assert judge((), EXPECTATIONS, lambda test: test == "listed").missing == ("listed",)
