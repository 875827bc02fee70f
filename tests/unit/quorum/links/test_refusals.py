"""What is logged of those who are turned away."""

import logging

import pytest

from penstock.quorum.links.rules import refusals
from penstock.quorum.links.rules.refusals import Refusals


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_the_same_sentence_is_written_once_and_again_after_long(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    told = Refusals(clock)
    for _ in range(1_000):
        clock.now_s += 1
        told.note("node 2", "no")
    assert len(caplog.records) == 1
    clock.now_s += refusals.AGAIN_S
    told.note("node 2", "no")
    assert len(caplog.records) == 2


def test_a_peer_that_varies_what_it_says_has_a_line_in_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    told = Refusals(clock)
    for number in range(1_000):
        clock.now_s += 0.1
        told.note("10.0.0.1", f"reason {number}")
    assert len(caplog.records) == 100 / refusals.PAUSE_S


def test_many_peers_are_not_all_named(caplog: pytest.LogCaptureFixture) -> None:
    told = Refusals(Clock())
    for number in range(10_000):
        told.note(f"peer {number}", "no")
    assert len(caplog.records) == refusals.LINES_PER_PAUSE_MAX + 1
    assert caplog.records[-1].levelno == logging.WARNING
    assert "too many" in caplog.records[-1].getMessage()
