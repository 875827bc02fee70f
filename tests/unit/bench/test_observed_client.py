"""Programs that report acknowledgements: their lines get times, and one that ends or is silent is an error."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock.bench.clients.observed_client import ObservedClient
from penstock.client import clock
from penstock.local.errors import ClusterError

_TALKING = "import sys; print('ack 0\\nack 1\\nack 0', flush=True); sys.stdin.read()"
_FAILING = "import sys; sys.exit('no cluster there')"


def observed(program: str, folder: Path) -> ObservedClient:
    return ObservedClient([sys.executable, "-P", "-c", program], folder / "errors")


def test_each_event_has_the_times_at_which_it_was_printed(tmp_path: Path) -> None:
    begin_s = clock.monotonic_s()
    with observed(_TALKING, tmp_path) as client:
        client.wait_for("ack 0", 2, after_s=begin_s, timeout_s=60)
        client.wait_for("ack 1", 1, after_s=begin_s, timeout_s=60)
    assert len(client.times_s("ack 0")) == 2
    assert begin_s < client.times_s("ack 0")[0] <= client.times_s("ack 1")[0] <= client.times_s("ack 0")[1]
    assert client.times_s("commit") == ()


def test_what_was_printed_before_does_not_count(tmp_path: Path) -> None:
    with observed(_TALKING, tmp_path) as client:
        client.wait_for("ack 1", 1, after_s=0, timeout_s=60)
        with pytest.raises(ClusterError, match="printed no ack 1"):
            client.wait_for("ack 1", 1, after_s=clock.monotonic_s(), timeout_s=0.1)


def test_a_program_that_ends_says_why(tmp_path: Path) -> None:
    with observed(_FAILING, tmp_path) as client, pytest.raises(ClusterError, match="no cluster there"):
        client.wait_for("ack 0", 1, after_s=0, timeout_s=60)
