"""Operator commands for a controller: leadership transfer and snapshots, on its own listener, authenticated only.

A node that asks for a client of its HTTP administration says for whom, and by which permissions: these are checked once
more here, by the ACLs that this controller has replayed.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable

from ...protocol.errors import ErrorCode, error_info
from ...protocol.ids import NodeId
from ...protocol.no_quorum import no_quorum
from ...protocol.own_apis import OwnApiKey, encode_own_response
from ...quorum.controller.controller import Controller
from ...quorum.permissions.requester import PermissionsChangedError, Requester, check_requester, decode_requester
from ...quorum.permissions.ruling import AuthorizerSettings
from ...quorum.raft.consensus import Consensus, ConsensusFailed, NotLeader, TransferFailed
from ...quorum.raft.operations import (
    ListSnapshots,
    Operation,
    Outcome,
    Refused,
    SnapshotFile,
    SnapshotsListed,
    SnapshotTaken,
    TakeSnapshot,
    Transfer,
    Transferred,
    decode_operation,
    encode_outcome,
)
from ...quorum.voter.snapshots import Snapshots
from ..network.handlers import Handlers
from ..network.request import Request

logger = logging.getLogger(__name__)


class QuorumOperator:
    """Carries out operator commands on this node."""

    def __init__(
        self,
        consensus: Consensus,
        controller: Controller,
        snapshots: Snapshots,
        authorizer: AuthorizerSettings | None,
    ) -> None:
        """`snapshots` is the snapshot store of the controller's folder."""
        self._consensus = consensus
        self._controller = controller
        self._snapshots = snapshots
        self._authorizer = authorizer

    async def execute(self, operation: Operation, requester: Requester | None) -> Outcome:
        """`requester` is the client that asks; None: a node itself."""
        if requester is not None:
            try:
                check_requester(self._controller.image, self._authorizer, requester)
            except PermissionsChangedError as error:
                return Refused(error.code, error_info(error.code).sentence)
        match operation:
            case Transfer():
                return await self._transfer(operation.target_id)
            case TakeSnapshot():
                return await self._take_snapshot()
            case ListSnapshots():
                return self._list_snapshots()

    async def _transfer(self, target_id: int | None) -> Outcome:
        try:
            leader_id = await self._consensus.transfer_leadership(None if target_id is None else NodeId(target_id))
        except NotLeader as error:
            status = self._consensus.status()
            problem = no_quorum([voter.replica_id for voter in status.voters], status.unreached_ids)
            sentence = problem or f"Node {self._consensus.node_id} does not lead the quorum."
            return Refused(ErrorCode.NOT_CONTROLLER, sentence, error.leader_id)
        except (TransferFailed, ConsensusFailed) as error:
            return Refused(ErrorCode.INVALID_REQUEST, str(error))
        logger.info("Quorum leadership transferred: leader=%d", leader_id)
        return Transferred(leader_id)

    async def _take_snapshot(self) -> Outcome:
        taken = await self._controller.snapshots.save_now()
        if taken is None:
            return Refused(
                ErrorCode.KAFKA_STORAGE_ERROR, "No snapshot was written: the disk is full or the node stops."
            )
        if not taken.end_offset:
            return Refused(ErrorCode.INVALID_REQUEST, "No snapshot was written: the metadata log is still empty.")
        return SnapshotTaken(self._snapshots.path(*taken), *taken)

    def _list_snapshots(self) -> Outcome:
        try:
            found = self._snapshots.all_files()
        except OSError as error:
            return Refused(ErrorCode.KAFKA_STORAGE_ERROR, f"The snapshots cannot be listed: {error}.")
        return SnapshotsListed(tuple(SnapshotFile(path, *place, size_bytes) for place, path, size_bytes in found))


def register(handlers: Handlers, operator: QuorumOperator) -> None:
    def begin(request: Request) -> Awaitable[None] | None:
        if request.context.node_id is None:
            code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            _answer(request, Refused(code, error_info(code).sentence))
            return None
        operation, requester = decode_operation(bytes(request.body[request.body_offset :]))
        return execute(request, operation, None if requester is None else decode_requester(requester))

    async def execute(request: Request, operation: Operation, requester: Requester | None) -> None:
        _answer(request, await operator.execute(operation, requester))

    handlers.add(OwnApiKey.OPERATE_QUORUM, begin)


def _answer(request: Request, outcome: Outcome) -> None:
    request.respond(encode_own_response(request.correlation_id, encode_outcome(outcome)))
