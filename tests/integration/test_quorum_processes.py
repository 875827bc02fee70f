"""Three real processes of the quorum, killed, paused and torn: nothing acknowledged is lost, one leader per term.

`PENSTOCK_TEST_QUORUM_SECONDS` is how long each run goes on (5; 60 in a soak). The state is large: each
snapshot is of some MiB, tens in a soak, and a voter that comes back late gets it from the leader.
"""

import os
import random
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import wait_for

from penstock.client.clock import monotonic_s, pause
from penstock.local.ports import find_free

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

IS_SOAK = os.environ.get("PENSTOCK_TEST_PROFILE") == "soak"
SECONDS = float(os.environ.get("PENSTOCK_TEST_QUORUM_SECONDS", "60" if IS_SOAK else "5"))
NODE = Path(__file__).parent.parent / "helpers" / "quorum_node.py"
DEADLINE_S = 60.0
STATE_BYTES = (32 if IS_SOAK else 4) * 1024 * 1024
VOTERS = (1, 2, 3)


class Quorum:
    """Three processes on folders of this test."""

    def __init__(self, folder: Path, generator: random.Random) -> None:
        self.folder = folder
        self.ports = ",".join(str(find_free(generator)) for _ in VOTERS)
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.ended_by_themselves: list[int] = []

    def start(self, node_id: int) -> None:
        with (self.folder / f"node-{node_id}.log").open("ab") as log:
            self.processes[node_id] = subprocess.Popen(
                [sys.executable, str(NODE), str(self.folder), str(node_id), self.ports],
                stderr=log,
                stdout=log,
                env={**os.environ, "PENSTOCK_TEST_STATE_BYTES": str(STATE_BYTES)},
            )

    def kill(self, node_id: int) -> None:
        process = self.processes[node_id]
        if process.poll() is not None:
            self.ended_by_themselves.append(node_id)
        process.kill()
        process.wait(DEADLINE_S)

    def signal(self, node_id: int, number: signal.Signals) -> None:
        self.processes[node_id].send_signal(number)

    def tear(self, node_id: int, generator: random.Random) -> None:
        """Leave random bytes behind the journal's end, as a write that the power cut short does."""
        segments = sorted((self.folder / f"disk-{node_id}" / "metadata").glob("*.journal"))
        if segments:
            with segments[-1].open("ab") as segment:
                segment.write(b"PQF1" + generator.randbytes(generator.randrange(60)))

    def log(self) -> str:
        """What the processes said, in the order of their ids."""
        return "".join((self.folder / f"node-{node_id}.log").read_text() for node_id in self.processes)

    @property
    def acknowledged(self) -> list[str]:
        file = self.folder / "acknowledged"
        return file.read_text().split() if file.exists() else []

    @property
    def leaders(self) -> dict[int, set[int]]:
        leaders = defaultdict(set)
        for line in (self.folder / "leaders").read_text().splitlines():
            term, node_id = line.split()
            leaders[int(term)].add(int(node_id))
        return leaders

    def states(self) -> list[str]:
        """End the load and return what each voter holds: a text, once all of them are equal."""
        (self.folder / "quiet").touch()
        files = [self.folder / f"state.{node_id}" for node_id in VOTERS]
        acknowledged = set(self.acknowledged)

        def are_equal() -> bool:
            states = [set(file.read_text().split("\n")) if file.exists() else set() for file in files]
            return all(state == states[0] and acknowledged <= state for state in states)

        wait_for(are_equal, "equal states with everything that was acknowledged")
        return [file.read_text() for file in files]


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[Quorum]:
    quorum = Quorum(tmp_path, random.Random())
    for node_id in VOTERS:
        quorum.start(node_id)
    yield quorum
    for process in quorum.processes.values():
        if process.poll() is None:
            process.kill()
            process.wait(DEADLINE_S)


def wait_for_more(quorum: Quorum, count: int = 50) -> None:
    before = len(quorum.acknowledged)
    wait_for(lambda: len(quorum.acknowledged) >= before + count, "more acknowledged commands")


def large_snapshots(folder: Path) -> Iterator[Path]:
    for snapshot in folder.glob("disk-*/metadata/*.checkpoint"):
        if snapshot.exists() and snapshot.stat().st_size > STATE_BYTES // 2:
            yield snapshot


@pytest.mark.parametrize("mode", ["mixed", "all at once"])
def test_nothing_acknowledged_is_lost(quorum: Quorum, tmp_path: Path, mode: str) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", random.SystemRandom().randrange(2**32)))
    sys.stdout.write(f"replay: PENSTOCK_TEST_SEED={seed} pytest {__file__}\n")
    generator = random.Random(seed)
    wait_for(lambda: any(large_snapshots(tmp_path)), lambda: f"snapshot of the large state; {quorum.log()}")
    end_s = monotonic_s() + SECONDS
    counts: dict[str, int] = defaultdict(int)
    while monotonic_s() < end_s:
        fault = "all" if mode == "all at once" else generator.choice(["one", "one", "two", "all", "pause"])
        counts[fault] += 1
        if fault == "pause":
            node_id = generator.choice(VOTERS)
            quorum.signal(node_id, signal.SIGSTOP)
            pause(generator.uniform(0.2, 2.5))
            quorum.signal(node_id, signal.SIGCONT)
        else:
            victims = generator.sample(VOTERS, {"one": 1, "two": 2, "all": 3}[fault])
            for node_id in victims:
                quorum.kill(node_id)
            for node_id in victims:
                if generator.random() < 0.3:
                    quorum.tear(node_id, generator)
                quorum.start(node_id)
        wait_for_more(quorum, generator.randrange(5, 200))
    first, *others = quorum.states()
    sys.stdout.write(f"{dict(counts)}, {len(quorum.acknowledged)} acknowledged, {len(quorum.leaders)} terms\n")
    assert quorum.ended_by_themselves == []
    assert all(other == first for other in others)
    commands = first.split("\n")
    assert len(commands) == len(set(commands))
    assert all(len(nodes) == 1 for nodes in quorum.leaders.values())
