"""What an operator is told while a new cluster cannot begin."""

import logging

import pytest

from penstock.quorum.raft.bootstrap_notice import FoundingNotice


def test_a_wait_that_lasts_is_told_and_told_again_a_minute_later(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    notice = FoundingNotice(100.0)
    told: list[float] = []
    for tenth in range(1_300):
        notice.note({3, 2}, 100.0 + tenth / 10)
        if len(caplog.records) > len(told):
            told.append(tenth / 10)
    assert told == [5.0, 65.0, 125.0]
    assert caplog.records[0].getMessage().endswith("waiting for nodes 2, 3, or for a leader")


def test_nothing_is_told_of_a_cluster_that_has_begun(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    notice = FoundingNotice(0.0)
    for second in range(100):
        notice.note((), float(second))
    assert not caplog.records
