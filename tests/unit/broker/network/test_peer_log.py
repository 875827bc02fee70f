"""A line for each peer, ever fewer if it goes on, and none of what it did goes uncounted."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest

from penstock.broker.network.peer_log import PAUSE_S_MAX, PEERS_MAX, PeerLog
from penstock.chaos.simulation.virtual_loop import VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    with VirtualLoop() as loop:
        yield loop


def run(loop: VirtualLoop, log: PeerLog, *, seconds: float, a_second: int, host: str = "10.0.0.1") -> None:
    def write(number: int) -> None:
        log.write(logging.WARNING, host, "bad frame: peer=%s number=%d", host, number)

    count = int(seconds * a_second)
    for number in range(count):
        loop.call_later((number + 0.5) / a_second, write, number)
    loop.call_later(seconds + 2 * PAUSE_S_MAX, loop.stop)
    loop.run_forever()


def test_a_peer_gets_one_line_a_second_and_a_count(loop: VirtualLoop, caplog: pytest.LogCaptureFixture) -> None:
    run(loop, PeerLog(loop), seconds=10, a_second=100)
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "bad frame: peer=10.0.0.1 number=0"
    assert re.fullmatch(
        r"Log lines suppressed: peer=10\.0\.0\.1 count=\d+ last: bad frame: peer=10\.0\.0\.1 number=\d+", lines[1]
    )
    assert len(lines) <= 6
    counts = [int(match[1]) for line in lines if (match := re.search(r"count=(\d+)", line))]
    assert sum(counts) + sum(line.startswith("bad frame") for line in lines) == 1000


def test_a_peer_that_never_stops_gets_ever_fewer_lines(loop: VirtualLoop, caplog: pytest.LogCaptureFixture) -> None:
    run(loop, PeerLog(loop), seconds=3600, a_second=2)
    assert len(caplog.records) < 3600 / PAUSE_S_MAX + 10


def test_a_peer_that_errs_now_and_then_is_written_of_each_time(
    loop: VirtualLoop, caplog: pytest.LogCaptureFixture
) -> None:
    log = PeerLog(loop)
    for _ in range(3):
        run(loop, log, seconds=1, a_second=1)
    assert [record.getMessage() for record in caplog.records] == ["bad frame: peer=10.0.0.1 number=0"] * 3


def test_peers_do_not_hide_one_another(loop: VirtualLoop, caplog: pytest.LogCaptureFixture) -> None:
    log = PeerLog(loop)
    for host in ("10.0.0.1", "10.0.0.1", "10.0.0.2"):
        log.write(logging.WARNING, host, "refused: peer=%s", host)
    assert [record.getMessage() for record in caplog.records] == ["refused: peer=10.0.0.1", "refused: peer=10.0.0.2"]


def test_no_number_of_peers_floods_the_log(loop: VirtualLoop, caplog: pytest.LogCaptureFixture) -> None:
    log = PeerLog(loop)
    for number in range(10 * PEERS_MAX):
        log.write(logging.WARNING, f"peer-{number}", "refused")
    loop.call_later(3, loop.stop)
    loop.run_forever()
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == PEERS_MAX + 2
    assert lines[-1] == f"Log lines suppressed: peer=others count={9 * PEERS_MAX - 1} last: refused"
