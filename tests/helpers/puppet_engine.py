"""A controller on an engine that does as the test says."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from random import Random

import pytest
from metadata_cluster import CLUSTER_ID

from penstock.protocol.ids import NO_CONTROLLER_EPOCH, ControllerEpoch, NodeId
from penstock.quorum.controller.controller import Controller
from penstock.quorum.decisions.bootstrap import bootstrap_records
from penstock.quorum.decisions.context import ControllerConfig, ControllerResult, DecisionContext
from penstock.quorum.metadata.image import MetadataImage
from penstock.quorum.metadata.publishers import Publishers
from penstock.quorum.metadata.record_codec import encode_entry, encode_record
from penstock.quorum.metadata.records import MetadataRecord
from penstock.quorum.raft.consensus import CommitPosition, ConsensusListener, NotLeader, OutcomeUnknown, QuorumStatus


class Puppet:
    """An engine without disk and peers: entries commit when the test says."""

    def __init__(self) -> None:
        self.node_id = NodeId(1)
        self.leader_id: NodeId | None = None
        self.epoch = NO_CONTROLLER_EPOCH
        self.next_offset = 0
        self.bytes_since_snapshot = 0
        self.wall_ms = 1
        self.has_fresh_quorum = True
        self.is_replaced = False
        self.waiting: list[tuple[int, ControllerEpoch, bytes, asyncio.Future[CommitPosition]]] = []
        self.listener: ConsensusListener | None = None

    async def start(self, listener: ConsensusListener) -> None:
        self.listener = listener

    async def stop(self) -> None:
        self.listener = None

    def propose(self, command: bytes, *, epoch: ControllerEpoch) -> "asyncio.Future[CommitPosition]":
        if self.leader_id != self.node_id or epoch != self.epoch:
            raise NotLeader(self.leader_id, self.epoch)
        future: asyncio.Future[CommitPosition] = asyncio.get_running_loop().create_future()
        self.waiting.append((self.next_offset, epoch, command, future))
        self.next_offset += 1
        return future

    async def read_barrier(self) -> CommitPosition:
        if self.leader_id != self.node_id or self.is_replaced:
            raise NotLeader(None, self.epoch)
        return CommitPosition(self.next_offset, self.epoch)

    async def transfer_leadership(self, node_id: NodeId | None) -> NodeId:
        raise NotImplementedError

    async def save_snapshot(self, *, end_offset: int, epoch: ControllerEpoch, chunks: Iterator[bytes]) -> bool:
        raise NotImplementedError

    def status(self) -> QuorumStatus:
        return QuorumStatus(leader_id=self.leader_id, epoch=self.epoch, high_watermark=0, voters=())

    def elect(self, leader_id: NodeId | None) -> None:
        """Begin an epoch. What waits is lost, as when another leader overwrites it."""
        self.epoch = ControllerEpoch(self.epoch + 1)
        self.leader_id = leader_id
        assert self.listener is not None
        lost, self.waiting = self.waiting, []
        self.listener.on_leadership(leader_id, self.epoch)
        for offset, _, _, future in reversed(lost):
            self.next_offset = offset
            future.set_exception(OutcomeUnknown("leadership was lost"))

    def hear(self, *records: MetadataRecord) -> None:
        """Let an entry of the present leader commit; without records, its no-op."""
        assert self.listener is not None
        command = encode_entry(1, [encode_record(record) for record in records]) if records else b""
        self.next_offset += 1
        self.listener.on_commit(self.next_offset - 1, self.epoch, command)

    def commit(self, count: int | None = None) -> None:
        """Let the first of what waits commit, or all of it."""
        assert self.listener is not None
        count = len(self.waiting) if count is None else count
        committed, self.waiting = self.waiting[:count], self.waiting[count:]
        for offset, epoch, command, future in committed:
            self.listener.on_commit(offset, epoch, command)
            if not future.done():
                future.set_result(CommitPosition(offset, epoch))


def on_a_loop(
    test: Callable[[Puppet, Controller], Coroutine[None, None, None]],
) -> Callable[[], None]:
    """Run a test with a started controller on a loop of its own, for 20 seconds at most."""

    def run() -> None:
        async def bounded() -> None:
            puppet = Puppet()
            controller = Controller(
                puppet,
                Publishers(),
                config=ControllerConfig(node_id=NodeId(1)),
                bootstrap=bootstrap_records(CLUSTER_ID, min_insync_replicas=1),
                random=Random(1),
                loop=asyncio.get_running_loop(),
                wall_clock_ms=lambda: puppet.wall_ms,
                on_failure=lambda sentence: pytest.fail(sentence),
            )
            await controller.start()
            await asyncio.wait_for(test(puppet, controller), 20)
            await controller.stop()

        asyncio.run(bounded())

    return run


def activate(puppet: Puppet) -> None:
    puppet.elect(NodeId(1))
    puppet.hear()
    puppet.commit()


def read(image: MetadataImage, _request: None, _context: DecisionContext) -> ControllerResult[dict[str, int]]:
    """Write nothing and answer with the levels."""
    return ControllerResult(records=(), response=dict(image.features))
