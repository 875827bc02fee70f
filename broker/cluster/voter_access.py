"""What a node asks of single voters of the metadata quorum: operator commands, and whether they answer at all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final

from ...protocol.errors import ConfigError, CorruptData, ErrorCode, KafkaError
from ...protocol.ids import NodeId
from ...protocol.own_apis import OwnApiKey
from ...quorum.links.rules.peer_proof import PeerRefused
from ...quorum.metadata.voters import Voter
from ...quorum.permissions.requester import Requester, encode_requester
from ...quorum.raft.operations import Operation, Outcome, decode_outcome, encode_operation

if TYPE_CHECKING:
    from .peers import PeerConnector

CONNECT_TIMEOUT_MS: Final = 1_500
"""For a voter to be reached and to prove who it is; one that takes longer does not answer."""
COMMAND_TIMEOUT_MS: Final = 10_000
LOOK_MS: Final = 1_000
"""How long a look at all voters counts: health checks may come often, connections do not."""

MUTE: Final = "it takes connections, but no messages of the quorum come from it"


class VoterAccess:
    """To the voters; `own` carries out operator commands in this process where this node is one of them."""

    def __init__(
        self,
        peers: PeerConnector | None,
        voters: Mapping[NodeId, Voter],
        *,
        node_id: NodeId,
        now_ms: Callable[[], int],
        own: Callable[[Operation, Requester | None], Awaitable[Outcome]] | None = None,
        unreached: Callable[[], Collection[NodeId] | None] = lambda: None,
    ) -> None:
        """`peers` is None where there is no other voter. `now_ms` is the loop's time.

        `unreached` has the voters that this node, a voter itself, exchanges no messages with; None while it does not
        vote: then those are silent that take no connection.
        """
        self._peers = peers
        self._voters = voters
        self._node_id = node_id
        self._now_ms = now_ms
        self._own = own
        self._unreached = unreached
        self._silent: Mapping[NodeId, str] = {}
        self._looked_ms: int | None = None
        self._looking: asyncio.Task[None] | None = None

    async def operate(self, voter_id: NodeId, operation: Operation, requester: Requester | None = None) -> Outcome:
        """The voter's answer. Raises KafkaError when it is no voter, or does not answer.

        `requester` is the client that asks, whose permissions the voter checks; None: the node itself.
        """
        voter = self._voters.get(voter_id)
        if voter is None:
            known = ", ".join(map(str, sorted(self._voters)))
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node {voter_id} is not a controller. Controllers: {known}.")
        if voter_id == self._node_id and self._own is not None:
            return await self._own(operation, requester)
        assert self._peers is not None, "there are other voters"
        try:
            connection, _ = await self._peers.connect(
                voter.host, voter.port, timeout_ms=CONNECT_TIMEOUT_MS, node_id=voter_id
            )
            async with connection:
                body = encode_operation(operation, None if requester is None else encode_requester(requester))
                answer = await connection.call_own(OwnApiKey.OPERATE_QUORUM, body, timeout_ms=COMMAND_TIMEOUT_MS)
            return decode_outcome(answer)
        except TimeoutError as error:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"Node {voter_id} does not answer: {error}.") from error
        except (ConnectionError, CorruptData, PeerRefused, ConfigError) as error:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"Node {voter_id} does not answer: {error}.") from error

    async def silent(self) -> Mapping[NodeId, str]:
        """The other voters that do not answer, each with the reason, which is as of LOOK_MS ago at most.

        The quorum itself says which of them a voter reaches. A connection that can be opened says less: a process may
        take it and answer nothing else, or be another voter than the one that messages go to.
        """
        unreached = self._unreached()
        if self._peers is None or (unreached is not None and not unreached):
            return {}
        if self._looking is None and (self._looked_ms is None or self._now_ms() - self._looked_ms >= LOOK_MS):
            self._looking = asyncio.get_running_loop().create_task(self._look())
        if self._looking is not None:
            await asyncio.shield(self._looking)
        unreached = self._unreached()
        if unreached is None:
            return self._silent
        return {voter_id: self._silent.get(voter_id, MUTE) for voter_id in sorted(unreached)}

    async def close(self) -> None:
        looking = self._looking
        if looking is not None:
            looking.cancel()
            await asyncio.wait((looking,))

    async def _look(self) -> None:
        others = [voter for voter_id, voter in sorted(self._voters.items()) if voter_id != self._node_id]
        try:
            reasons = await asyncio.gather(*map(self._reason, others))
            self._silent = {
                voter.id: reason for voter, reason in zip(others, reasons, strict=True) if reason is not None
            }
            self._looked_ms = self._now_ms()
        finally:
            self._looking = None

    async def _reason(self, voter: Voter) -> str | None:
        """Why a voter is of no use; None: it is."""
        assert self._peers is not None, "there are other voters"
        try:
            connection, _ = await self._peers.connect(
                voter.host, voter.port, timeout_ms=CONNECT_TIMEOUT_MS, node_id=voter.id
            )
        except (ConnectionError, TimeoutError, CorruptData, PeerRefused, ConfigError) as error:
            return str(error)
        await connection.close()
        return None
