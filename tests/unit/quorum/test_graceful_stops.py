"""Voters that are told to stop while they work: what is written then, and what the next start finds."""

from contextlib import suppress
from random import Random

import pytest
from simulated_quorum import Quorum

from penstock.chaos.simulation.simulated_voter import FOLDER, SimulatedVoter
from penstock.quorum.raft.consensus import NotLeader
from penstock.quorum.raft.frames import scan_frames
from penstock.quorum.raft.journal_items import SegmentHead, decode_items


def head_counts(voter: SimulatedVoter) -> dict[str, int]:
    """Return how many heads each segment of the voter's journal has."""
    counts = {}
    for name in voter.files.list_directory(FOLDER):
        if name.endswith(".journal"):
            frames = scan_frames(voter.files.read(f"{FOLDER}/{name}"), None, name).frames
            items = [item for frame in frames for item in decode_items(frame.payload, name)]
            counts[name] = sum(isinstance(item, SegmentHead) for item in items)
    return counts


def propose(quorum: Quorum, command: bytes) -> None:
    """Propose to every voter that leads as far as it knows."""
    for voter in quorum.voters.values():
        if voter.is_leader:
            # It may be stopping.
            with suppress(NotLeader):
                voter.propose(command)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(12))
def test_voters_stopped_at_any_moment_leave_whole_journals_and_lose_nothing(seed: int) -> None:
    """`pytest -k 'stopped_at_any_moment and [<seed>]'` replays one."""
    random = Random(seed)
    with Quorum(seed=seed) as quorum:
        quorum.commit(b"first")
        for number in range(25):
            stopped = random.choice(list(quorum.voters.values()))
            for command in range(random.randrange(1, 6)):
                propose(quorum, b"%d.%d" % (number, command))
            for voter in quorum.voters.values():
                if random.random() < 0.5:
                    voter.save_snapshot()
            quorum.run(random.choice((0.0, 0.001, 0.005, 0.02, 0.1)))
            stop = stopped.stop()
            for command in range(random.randrange(4)):
                quorum.run(random.choice((0.0, 0.001, 0.005)))
                propose(quorum, b"%d.late.%d" % (number, command))
            quorum.until(stop.done)
            assert set(head_counts(stopped).values()) == {1}, f"seed {seed}, stop {number}"
            stopped.start()
            quorum.until(
                lambda: all(voter.voter is not None and voter.voter.is_member for voter in quorum.voters.values())
            )
        quorum.commit(b"last")
        quorum.until(quorum.is_equal)
        for voter in quorum.voters.values():
            voter.kill(has_power=False)
            voter.start()
        quorum.until(lambda: quorum.is_equal() and b"last" in quorum.leader.commands)
        assert set(quorum.judge.acknowledged) <= set(quorum.leader.commands)
