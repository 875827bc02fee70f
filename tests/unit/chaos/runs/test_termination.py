"""SIGTERM in the middle of a run."""

import os
import signal
from contextlib import ExitStack

import pytest

from penstock.chaos.runs.termination import STATUS, ended_in_order


def test_what_is_open_is_ended_before_the_process_though_the_signal_comes_again() -> None:
    ended = []
    before = signal.getsignal(signal.SIGTERM)

    def end_cluster() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        ended.append("cluster")

    def run() -> None:
        with ended_in_order(), ExitStack() as cluster:
            cluster.callback(end_cluster)
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(SystemExit) as exit_:
        run()
    assert exit_.value.code == STATUS == 143
    assert ended == ["cluster"]
    assert signal.getsignal(signal.SIGTERM) is before
