"""What a node asks of single voters: answers of its own, silence, and how often it looks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any, cast

import pytest

from penstock.broker.cluster.peers import PeerConnector
from penstock.broker.cluster.voter_access import LOOK_MS, MUTE, VoterAccess
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import NodeId
from penstock.quorum.metadata.voters import Voter
from penstock.quorum.permissions.requester import Requester
from penstock.quorum.raft.operations import Operation, Outcome, TakeSnapshot, Transfer, Transferred

VOTERS = {NodeId(one): Voter(NodeId(one), "host", one) for one in (1, 2, 3)}


class PuppetConnection:
    async def close(self) -> None:
        """Nothing is open."""


class PuppetPeers:
    """Voter 2 answers, voter 3 does not."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def connect(self, _host: str, port: int, *, timeout_ms: int, node_id: NodeId) -> tuple[Any, None]:
        assert timeout_ms > 0
        assert node_id == port
        self.asked.append(port)
        await asyncio.sleep(0)
        if port == 3:
            raise ConnectionRefusedError("connection refused")
        return PuppetConnection(), None


def access(
    peers: PuppetPeers,
    now_ms: Callable[[], int] = lambda: 0,
    own: Callable[[Operation, Requester | None], Awaitable[Outcome]] | None = None,
    unreached: Callable[[], Collection[NodeId] | None] = lambda: None,
) -> VoterAccess:
    return VoterAccess(
        cast(PeerConnector, peers), VOTERS, node_id=NodeId(1), now_ms=now_ms, own=own, unreached=unreached
    )


@pytest.mark.parametrize(
    ("unreached", "silent"),
    [
        # It is reached by the quorum's messages, though no further connection can be opened to it.
        ((2,), {2: MUTE}),
        ((2, 3), {2: MUTE, 3: "connection refused"}),
        ((3,), {3: "connection refused"}),
    ],
)
def test_a_voter_takes_the_word_of_the_quorum_for_who_is_silent(
    unreached: tuple[int, ...], silent: dict[int, str]
) -> None:
    async def test() -> None:
        voters = access(PuppetPeers(), unreached=lambda: frozenset(map(NodeId, unreached)))
        assert await voters.silent() == silent
        await voters.close()

    asyncio.run(test())


def test_a_voter_that_reaches_all_others_dials_none() -> None:
    async def test() -> None:
        peers = PuppetPeers()
        voters = access(peers, unreached=frozenset)
        assert await voters.silent() == {}
        assert peers.asked == []

    asyncio.run(test())


def test_who_does_not_answer_is_named_with_the_reason_and_looked_at_seldom() -> None:
    async def test() -> None:
        now_ms, peers = 5, PuppetPeers()
        voters = access(peers, lambda: now_ms)
        found = await asyncio.gather(*(voters.silent() for _ in range(3)))
        assert found == [{3: "connection refused"}] * 3
        assert peers.asked == [2, 3]
        await voters.silent()
        assert peers.asked == [2, 3]
        now_ms += LOOK_MS
        await voters.silent()
        assert peers.asked == [2, 3, 2, 3]
        await voters.close()

    asyncio.run(test())


def test_a_command_for_this_node_needs_no_connection() -> None:
    client = Requester("User:alice", "10.0.0.1")

    async def own(operation: Operation, requester: Requester | None) -> Outcome:
        assert (operation, requester) == (Transfer(2), client)
        return Transferred(2)

    async def test() -> None:
        peers = PuppetPeers()
        assert await access(peers, own=own).operate(NodeId(1), Transfer(2), client) == Transferred(2)
        assert not peers.asked

    asyncio.run(test())


@pytest.mark.parametrize(
    ("voter_id", "code", "sentence"),
    [
        (3, ErrorCode.NETWORK_EXCEPTION, "Node 3 does not answer: connection refused."),
        (9, ErrorCode.INVALID_REQUEST, "Node 9 is not a controller. Controllers: 1, 2, 3."),
    ],
)
def test_who_cannot_be_asked_is_an_error_with_a_sentence(voter_id: int, code: ErrorCode, sentence: str) -> None:
    async def test() -> None:
        with pytest.raises(KafkaError) as raised:
            await access(PuppetPeers()).operate(NodeId(voter_id), TakeSnapshot())
        assert (raised.value.code, raised.value.message) == (code, sentence)

    asyncio.run(test())
