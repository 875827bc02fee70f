"""What an operator is told while a new cluster cannot begin."""

import logging

import pytest

from penstock.quorum.raft.bootstrap_notice import BootstrapNotice


def test_a_wait_that_lasts_is_told_and_told_again_ten_seconds_later(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    notice = BootstrapNotice(100_000)
    told_ms: list[int] = []
    for waited_ms in range(0, 30_000, 100):
        notice.note({3, 2}, 100_000 + waited_ms)
        if len(caplog.records) > len(told_ms):
            told_ms.append(waited_ms)
    assert told_ms == [5_000, 15_000, 25_000]
    assert caplog.records[0].getMessage().endswith("waiting for nodes 2 and 3, or for a leader")


def test_nothing_is_told_of_a_cluster_that_has_begun(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    notice = BootstrapNotice(0)
    for waited_ms in range(0, 100_000, 1_000):
        notice.note((), waited_ms)
    assert not caplog.records
