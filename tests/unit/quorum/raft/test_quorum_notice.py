"""What an operator is told while a node waits for a quorum."""

import logging

import pytest

from penstock.protocol.no_quorum import no_quorum
from penstock.quorum.raft.quorum_notice import PATIENCE_MS, REPEAT_MS, QuorumNotice


def test_wait_is_told_every_ten_seconds_with_those_it_is_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    notice = QuorumNotice()
    told_ms: list[int] = []
    for waited_ms in range(0, 30_000, 100):
        notice.note(no_quorum((1, 2, 3), (2, 3)), 7_000 + waited_ms)
        if len(caplog.records) > len(told_ms):
            told_ms.append(waited_ms)
    assert told_ms == [PATIENCE_MS, PATIENCE_MS + REPEAT_MS, PATIENCE_MS + 2 * REPEAT_MS]
    assert caplog.messages[0] == "Waiting for a quorum: 1 of 3 voters, 2 needed; nodes 2 and 3 do not answer"


def test_wait_begins_anew_after_a_leader(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    notice = QuorumNotice()
    for now_ms in range(0, 60_000, 1_000):
        notice.note(None if now_ms % 4_000 == 0 else "no leader", now_ms)
    assert not caplog.records
