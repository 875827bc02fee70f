"""How librdkafka's test program is read."""

from __future__ import annotations

from conformance.librdkafka.output import PARTS, listed_tests, read_result
from conformance.suite import Status

TABLE = """
_TEST_DECL(0001_multiobj);
struct test tests[] = {
    _TEST(main, TEST_F_LOCAL),
    _TEST(0000_unittests, TEST_F_LOCAL, TEST_BRKVER(0, 8, 0, 0)),
    _TEST(0001_multiobj, 0),
    _TEST(0081_admin, 0, TEST_BRKVER(0, 10, 2, 0)),
    _TEST(0105_transactions_mock, TEST_F_LOCAL, TEST_BRKVER(0, 11, 0, 0)),
    _TEST(8001_fetch_from_follower_mock_manual, TEST_F_MANUAL),
"""
FAILED = """\x1b[31m### Test "0040_io_event" failed at test.c:1411:check_test_timeouts() at Sat Nov 21 2026: ###
Test 0040_io_event timed out (timeout set to 59 seconds)
"""


def test_only_tests_of_a_broker_are_listed_with_their_parts() -> None:
    parts = [f"0081_admin.{part}" for part in PARTS["0081_admin"]]
    assert listed_tests(TABLE) == ["0001_multiobj", "0081_admin", *parts]


def test_the_summary_says_how_a_test_ended_and_how_long_it_took() -> None:
    result = read_result("0001_multiobj", "| 0001_multiobj        |     PASSED |   1.171s |\n", "exit status 0", 9.0)
    assert (result.status, result.seconds) == (Status.PASSED, 1.171)


def test_a_test_without_a_word_about_its_end_has_failed_and_its_message_is_told() -> None:
    result = read_result("0040_io_event", FAILED, "exit status -9", 60.0)
    assert result.status is Status.FAILED
    assert result.detail.startswith("exit status -9: ")
    assert "timed out (timeout set to 59 seconds)" in result.detail.splitlines()[0]


def test_a_part_that_did_not_run_has_not_passed() -> None:
    passed = "| 0081_admin   |     PASSED |   0.001s |\n"
    part = "0081_admin.do_test_CreateTopics"
    assert read_result(part, passed, "exit status 0", 1.0).status is Status.SKIPPED
    ran = "[0081_admin /  0.1s] [ do_test_CreateTopics:95: main queue, options ]\n"
    assert read_result(part, ran + passed, "exit status 0", 1.0).status is Status.PASSED
