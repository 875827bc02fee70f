"""Messages of the right form that no voter would send: a process that knows the secret can send them."""

import os
import sys
from random import Random, SystemRandom

import pytest
from quorum_table import elected

from penstock.quorum.raft.consensus import ConsensusFailed
from penstock.quorum.raft.messages import (
    Admission,
    Append,
    AppendAck,
    BarrierAck,
    BarrierProbe,
    CensusReply,
    CensusRequest,
    EntryBody,
    PreVote,
    PreVoteRequest,
    RaftMessage,
    SnapshotAck,
    SnapshotPart,
    TermNotice,
    TimeoutNow,
    Vote,
    VoteRequest,
    decode_message,
    encode_message,
)
from penstock.quorum.raft.snapshot_transfer import checksum

LARGEST = 2**63 - 1
LAST_TERM = 2**31 - 1


def absurd(random: Random, term: int) -> RaftMessage:
    def number() -> int:
        return random.choice((0, 1, 2, 5, 2**40, LARGEST - 1, LARGEST))

    def epoch() -> int:
        return min(LAST_TERM, random.choice((0, 1, term, term + 1, LAST_TERM)))

    def flag() -> bool:
        return random.random() < 0.5

    entries = tuple(EntryBody(epoch(), bytes(random.choice((0, 1, 900)))) for _ in range(random.choice((0, 1, 3))))
    chunks = tuple(bytes(random.choice((0, 1, 50))) for _ in range(random.choice((0, 1, 3))))
    now = min(LAST_TERM, random.choice((term, term, term, term + 1, epoch())))
    return random.choice(
        (
            Append(now, random.choice((-1, number())), epoch(), number(), entries),
            AppendAck(now, number(), flag(), flag(), number()),
            VoteRequest(now, random.choice((-1, number())), epoch(), flag()),
            Vote(now),
            PreVoteRequest(now, epoch(), random.choice((-1, number())), epoch()),
            PreVote(now, epoch()),
            TermNotice(now),
            TimeoutNow(now),
            BarrierProbe(now, number()),
            BarrierAck(now, number()),
            CensusRequest(now, number()),
            CensusReply(now, number(), flag()),
            Admission(now, number()),
            SnapshotPart(now, number(), epoch(), random.choice((0, number())), chunks, checksum(chunks), flag()),
            SnapshotAck(now, number(), number(), flag()),
        )
    )


@pytest.mark.thorough
def test_no_absurd_message_meets_a_defect() -> None:
    """A second leader of one term is the only thing that a voter stops for, and says so."""
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", SystemRandom().randrange(2**32)))
    sys.stdout.write(f"replay: PENSTOCK_TEST_SEED={seed} pytest {__file__}\n")
    random = Random(seed)
    for _ in range(40):
        table = elected(random.choice((3, 5)), seed=random.randrange(1_000))
        if random.random() < 0.5:
            table.start(table.followers[0])
        for _ in range(80):
            target = random.choice(table.ids)
            source = random.choice([node_id for node_id in table.ids if node_id != target])
            message = absurd(random, table.cores[target].term)
            assert decode_message(encode_message(message)) == message
            core = table.cores[target]
            if core.is_leader and message.term == core.term and is_a_leader_s(message):
                with pytest.raises(ConsensusFailed, match="says that it leads term"):
                    table.step(target, (source, message))
                break
            table.step(target, (source, message))


def is_a_leader_s(message: RaftMessage) -> bool:
    """Whether only the leader of its term can send it, and its epochs can be."""
    if not isinstance(message, Append):
        return isinstance(message, SnapshotPart)
    epochs = [message.previous_epoch, *(entry.epoch for entry in message.entries)]
    return epochs == sorted(epochs) and epochs[-1] <= message.term
