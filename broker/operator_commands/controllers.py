"""The controllers of a cluster, as its operator reaches them: with what proves a node, from its properties."""

from __future__ import annotations

import asyncio
from random import SystemRandom
from uuid import UUID

from ...protocol.errors import ConfigError, CorruptData, ErrorCode
from ...protocol.ids import NodeId
from ...protocol.no_quorum import NO_QUORUM
from ...protocol.own_apis import OwnApiKey
from ...quorum.links.rules.peer_proof import NONCE_BYTES, PeerHello, PeerRefused
from ...quorum.metadata.voters import Voter
from ...quorum.raft.operations import (
    Operation,
    Outcome,
    Refused,
    Transfer,
    Transferred,
    decode_outcome,
    encode_operation,
)
from ...storage.disk.files import Files
from ..cluster.peers import PeerConnector
from ..cluster.tls_contexts import TlsContexts
from ..configuration.node_config import NodeConfig


class Unanswered(Exception):  # noqa: N818 - it says what happened
    """No controller did what was asked, or none is known to have done it. The message is one sentence."""


class Controllers:
    """Those that a node's configuration names. Raises ConfigError when the configuration lets no node ask them."""

    def __init__(self, config: NodeConfig, files: Files, *, timeout_ms: int) -> None:
        has_proof = bool(config.cluster_secret) or config.node_certificates is not None
        if not has_proof or not all(voter.host for voter in config.voters.values()):
            raise ConfigError(
                f"Node {config.node_id} is a cluster of its own that no other node reaches, so nothing can be asked of "
                "its controller: that takes a listener for it, controller.quorum.voters and cluster.secret."
            )
        self._config = config
        self._files = files
        self._voters = dict(config.voters)
        self._timeout_ms = timeout_ms

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(sorted(self._voters))

    async def ask(self, voter_id: int, operation: Operation) -> Outcome:
        """What one controller answers. Raises Unanswered."""
        voter = self._voters.get(NodeId(voter_id))
        if voter is None:
            raise Unanswered(f"Node {voter_id} is not a controller. Controllers: {', '.join(map(str, self.ids))}.")
        try:
            return await self._ask(voter, operation)
        except ConfigError as error:
            raise Unanswered(str(error)) from error
        except (ConnectionError, TimeoutError, CorruptData, PeerRefused) as error:
            raise Unanswered(f"Node {voter_id} does not answer: {error}.") from error

    async def _ask(self, voter: Voter, operation: Operation) -> Outcome:
        config, random = self._config, SystemRandom()
        tls = TlsContexts(config.tls, self._files, asyncio.get_running_loop())
        peers = PeerConnector(
            secret=config.cluster_secret,
            hello=lambda: PeerHello(
                # An operator speaks for the node whose properties these are.
                node_id=config.node_id,
                directory_id=UUID(int=0),
                cluster_id=config.cluster_id,
                nonce=random.randbytes(NONCE_BYTES),
            ),
            certificates=config.node_certificates,
            tls=tls.client(config.controller_listener_name),
        )
        connection, _ = await peers.connect(voter.host, voter.port, timeout_ms=self._timeout_ms)
        async with connection:
            body = encode_operation(operation)
            answer = await connection.call_own(OwnApiKey.OPERATE_QUORUM, body, timeout_ms=self._timeout_ms)
        return decode_outcome(answer)

    async def transfer(self, target_id: int | None) -> int:
        """The new leader, once leadership was transferred. Raises Unanswered."""
        waiting, reason, no_quorum = list(self.ids), "", ""
        while waiting:
            voter_id = waiting.pop(0)
            try:
                outcome = await self.ask(voter_id, Transfer(target_id))
            except Unanswered as error:
                reason = str(error)
                continue
            match outcome:
                case Transferred():
                    return outcome.leader_id
                case Refused(ErrorCode.NOT_CONTROLLER):
                    reason = reason or outcome.sentence
                    no_quorum = no_quorum or (outcome.sentence if outcome.sentence.startswith(NO_QUORUM) else "")
                    if outcome.leader_id in waiting:
                        # It is asked next; those before it need not be asked any more.
                        waiting.remove(outcome.leader_id)
                        waiting.insert(0, outcome.leader_id)
                case Refused():
                    raise Unanswered(outcome.sentence)
                case _:
                    raise Unanswered(f"Node {voter_id} answered something else than it was asked.")
        if no_quorum:
            raise Unanswered(f"{no_quorum}.")
        raise Unanswered(f"No controller that leads the quorum was found. {reason}".strip())
