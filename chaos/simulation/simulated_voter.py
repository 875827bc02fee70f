"""A voter of a simulated quorum: a disk, one process after the other on it, and a state that keeps every command.

`ControlledVoter` (`controlled_voter.py`) has the product's controller and its image for a state instead.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import ClassVar
from uuid import UUID

import cbor2

from ...protocol.ids import NO_CONTROLLER_EPOCH, ControllerEpoch, NodeId
from ...quorum.raft.consensus import ConsensusFailed, NotLeader, Snapshot, TransferFailed
from ...quorum.raft.frames import scan_frames
from ...quorum.voter.voter import RaftVoter
from ...storage.disk.memory_files import MemoryFiles
from .network import Network, SimulatedLinks
from .process_loop import ProcessLoop
from .quorum_judge import QuorumJudge
from .virtual_loop import VirtualLoop

FOLDER = "/metadata"
_COMMANDS_PER_CHUNK = 20
_RESERVE_BYTES = 1024
_ENDING_S = 0.15


class SimulatedVoter:
    """One node's part in the quorum. `voter` is None while no process runs."""

    voter_class: ClassVar[type[RaftVoter]] = RaftVoter

    def __init__(
        self, node_id: int, voter_ids: tuple[int, ...], *, loop: VirtualLoop, network: Network, judge: QuorumJudge,
        random: Random, trace: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.node_id = node_id
        self.files = MemoryFiles(refuses_late_writes=True)
        self.directory_id = UUID(int=random.getrandbits(128))
        self.voter: RaftVoter | None = None
        self.loop: ProcessLoop | None = None
        self.commands: list[bytes] = []
        self.heard_end = 0
        self.epoch = NO_CONTROLLER_EPOCH
        self.failure: ConsensusFailed | None = None
        """Why the process that runs stopped taking part."""
        self.is_failure_expected = False
        self.torn_count = 0
        """How many of its processes ended in the middle of a write to the journal."""
        self._voter_ids = voter_ids
        self._virtual_loop = loop
        self._network = network
        self._judge = judge
        self._random = random
        self._trace = trace
        self._is_saving = False

    @property
    def is_up(self) -> bool:
        return self.voter is not None

    @property
    def has_failed(self) -> bool:
        return self.failure is not None

    @property
    def is_busy(self) -> bool:
        """Its disk is at work."""
        return self.loop is not None and self.loop.is_busy

    @property
    def is_leader(self) -> bool:
        return self.voter is not None and self.voter.leader_id == self.node_id

    # Processes.

    def start(self) -> None:
        assert self.voter is None
        self.commands, self.heard_end, self.failure, self._is_saving = [], 0, None, False
        self.loop = loop = ProcessLoop(self._virtual_loop, job_duration_s=self._job_duration_s)
        self.voter = self.voter_class(
            self.files,
            FOLDER,
            node_id=NodeId(self.node_id),
            directory_id=self.directory_id,
            random=Random(self._random.getrandbits(64)),
            loop=loop.as_loop,
            wall_clock_ms=lambda: 0,
            voter_ids=tuple(map(NodeId, self._voter_ids)),
            links=SimulatedLinks(self._network, self.node_id, self.directory_id, loop),
            reserve_bytes=_RESERVE_BYTES,
        )
        loop.create_task(self._run(self.voter))

    async def _run(self, voter: RaftVoter) -> None:
        try:
            await voter.start(self)
        except ConsensusFailed as error:
            self.on_failure(error)

    def _job_duration_s(self) -> float:
        return self._random.choice((0.001, 0.002, 0.004, 0.02, 0.1))

    def kill(self, *, has_power: bool) -> None:
        """End the process: what it wrote is there, or, when the power went too, what it synced.

        What its disk was about to do is done to some extent.
        """
        assert self.loop is not None
        for job in self.loop.kill():
            self.files.end_process(skip=self._random.choice((0, 0, 1, 1, 2, 5)))
            job()
            self.files.heal()
        self._network.detach(self.node_id)
        self.voter = self.loop = None
        if has_power:
            self.files.kill()
        else:
            self.files.crash(self._random)
        self.torn_count += self._has_torn_write()

    def stop(self) -> "asyncio.Task[None]":
        """End the process gracefully; the task is done when it has ended."""
        assert self.voter is not None
        assert self.loop is not None
        return self.loop.create_task(self._stop(self.voter))

    async def _stop(self, voter: RaftVoter) -> None:
        await voter.stop()
        assert self.loop is not None
        # A process ends some time after that; until then its executor works on.
        ended = self.loop.create_future()
        self.loop.call_later(_ENDING_S, ended.set_result, None)
        await ended
        if self.voter is voter:
            self.kill(has_power=True)

    def _has_torn_write(self) -> bool:
        if not self.files.is_directory(FOLDER):
            return False
        names = [name for name in self.files.list_directory(FOLDER) if name.endswith(".journal")]
        data = self.files.read(f"{FOLDER}/{names[-1]}") if names else b""
        return scan_frames(data, None, FOLDER).end < len(data)

    def swap_disk(self) -> None:
        """Give the node, which is down, an empty disk."""
        assert self.voter is None
        self.files = MemoryFiles(refuses_late_writes=True)
        self.directory_id = UUID(int=self._random.getrandbits(128))

    # What clients and the node do.

    @property
    def kept(self) -> Sequence[bytes]:
        """What the state has of what clients were answered."""
        return self.commands

    @property
    def state(self) -> object:
        """Equal where two nodes are in the same state."""
        return self.commands

    def propose(self, command: bytes) -> None:
        assert self.voter is not None
        self._trace(f"propose {self.node_id} {command[:20]!r}")
        future = self.voter.propose(command, epoch=self.voter.epoch)
        judge = self._judge

        def done(_: object) -> None:
            if not future.cancelled() and future.exception() is None:
                judge.on_acknowledged(command, future.result().offset)

        future.add_done_callback(done)

    def read(self) -> None:
        assert self.voter is not None
        assert self.loop is not None
        self.loop.create_task(self._read(self.voter, self._judge.acknowledged_end))

    async def _read(self, voter: RaftVoter, needed_end: int) -> None:
        try:
            position = await voter.read_barrier()
        except Exception:
            return
        self._judge.on_barrier(self.node_id, position.offset, needed_end)
        if self.voter is voter and self.heard_end <= position.offset:
            self._judge.violations.append(f"node {self.node_id} read at {position.offset}, heard to {self.heard_end}")

    def transfer(self, target_id: int | None) -> None:
        """Let a voter that leads hand its leadership over."""
        assert self.voter is not None
        assert self.loop is not None
        self.loop.create_task(self._transfer(self.voter, target_id))

    async def _transfer(self, voter: RaftVoter, target_id: int | None) -> None:
        try:
            leader_id = await voter.transfer_leadership(None if target_id is None else NodeId(target_id))
        except (NotLeader, TransferFailed, ConsensusFailed) as error:
            self._trace(f"not transferred {self.node_id} {error}")
        else:
            self._trace(f"transferred {self.node_id} {leader_id}")

    def save_snapshot(self) -> bool:
        """Begin one, and return whether it could be."""
        if self._is_saving or self.has_failed or not self.heard_end or self.loop is None or self.voter is None:
            return False
        self._is_saving = True
        self.loop.create_task(self._save(self.voter, self.heard_end, self.epoch, list(self.commands)))
        return True

    async def _save(self, voter: RaftVoter, end_offset: int, epoch: ControllerEpoch, commands: list[bytes]) -> None:
        def chunks() -> Iterator[bytes]:
            for start in range(0, max(1, len(commands)), _COMMANDS_PER_CHUNK):
                yield cbor2.dumps(commands[start : start + _COMMANDS_PER_CHUNK])

        await voter.save_snapshot(end_offset=end_offset, epoch=epoch, chunks=chunks())
        self._is_saving = False

    # What the voter tells (see `consensus.ConsensusListener`).

    def on_snapshot(self, snapshot: Snapshot) -> None:
        self.commands = [command for chunk in snapshot.chunks for command in cbor2.loads(chunk)]
        self.heard_end, self.epoch = snapshot.end_offset, snapshot.epoch
        self._trace(f"snapshot {self.node_id} {snapshot.end_offset}")

    def on_commit(self, offset: int, epoch: ControllerEpoch, command: bytes) -> None:
        if offset != self.heard_end:
            self._judge.violations.append(f"node {self.node_id} applies offset {offset} after {self.heard_end - 1}")
        self.heard_end, self.epoch = offset + 1, epoch
        self._judge.on_commit(self.node_id, offset, epoch, command)
        if command:
            self.commands.append(command)

    def on_leadership(self, leader_id: NodeId | None, epoch: ControllerEpoch) -> None:
        self._trace(f"leadership {self.node_id} {leader_id} {epoch}")
        if leader_id == self.node_id:
            self._judge.on_leader(self.node_id, epoch)

    def on_failure(self, error: ConsensusFailed) -> None:
        self._trace(f"failure {self.node_id} {error}")
        self.failure = error
        if not self.is_failure_expected:
            self._judge.on_failure(self.node_id, str(error))
