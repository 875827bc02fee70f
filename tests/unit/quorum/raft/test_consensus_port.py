"""What every engine behind the port promises, held against two of them: the voter, and a list in memory."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from random import Random
from typing import Protocol
from uuid import UUID

import pytest

from penstock.protocol.ids import NO_CONTROLLER_EPOCH, ControllerEpoch, NodeId
from penstock.quorum.raft.consensus import (
    CommitPosition,
    Consensus,
    ConsensusFailed,
    ConsensusListener,
    NotLeader,
    QuorumStatus,
    Snapshot,
    TransferFailed,
)
from penstock.quorum.voter.voter import RaftVoter
from penstock.storage.disk.memory_files import MemoryFiles


class ListOfEntries:
    """The least that is an engine: one node, no disk; entries are committed in the next turn of the loop."""

    def __init__(self, kept: list[tuple[ControllerEpoch, bytes]], base: Snapshot | None) -> None:
        self.node_id = NodeId(4)
        self.leader_id: NodeId | None = None
        self.epoch = NO_CONTROLLER_EPOCH
        self.bytes_since_snapshot = 0
        self.kept = kept
        self.base = base
        self._start_offset = 0
        self._listener: ConsensusListener | None = None
        self._applied_end = 0

    @property
    def next_offset(self) -> int:
        return self._start_offset + len(self.kept)

    async def start(self, listener: ConsensusListener) -> None:
        self._listener = listener
        if self.base is not None:
            listener.on_snapshot(self.base)
            self._start_offset = self._applied_end = self.base.end_offset
        before = self.epoch if not self.kept else self.kept[-1][0]
        self._tell()
        self.epoch = ControllerEpoch(max(before, 0 if self.base is None else self.base.epoch) + 1)
        self.leader_id = NodeId(self.node_id)
        listener.on_leadership(NodeId(self.node_id), self.epoch)
        self.kept.append((self.epoch, b""))
        self._tell()

    async def stop(self) -> None:
        self._tell()
        self.leader_id = None

    def propose(self, command: bytes, *, epoch: ControllerEpoch) -> "asyncio.Future[CommitPosition]":
        if self.leader_id is None or epoch != self.epoch:
            raise NotLeader(self.leader_id, self.epoch)
        done: asyncio.Future[CommitPosition] = asyncio.get_running_loop().create_future()
        position = CommitPosition(self.next_offset, epoch)
        self.kept.append((epoch, command))

        def commit() -> None:
            self._tell()
            done.set_result(position)

        asyncio.get_running_loop().call_soon(commit)
        return done

    @property
    def has_fresh_quorum(self) -> bool:
        return True

    async def read_barrier(self) -> CommitPosition:
        self._tell()
        return CommitPosition(self.next_offset - 1, self.epoch)

    async def transfer_leadership(self, node_id: NodeId | None) -> NodeId:
        if node_id == self.node_id:
            return node_id
        raise TransferFailed("There is no other voter.")

    async def save_snapshot(self, *, end_offset: int, epoch: ControllerEpoch, chunks: Iterator[bytes]) -> bool:
        self.base = Snapshot(end_offset=end_offset, epoch=epoch, chunks=list(chunks))
        del self.kept[: end_offset - self._start_offset]
        self._start_offset = end_offset
        return True

    def status(self) -> QuorumStatus:
        return QuorumStatus(leader_id=self.leader_id, epoch=self.epoch, high_watermark=self._applied_end, voters=())

    def _tell(self) -> None:
        assert self._listener is not None
        while self._applied_end < self.next_offset:
            epoch, command = self.kept[self._applied_end - self._start_offset]
            self._applied_end += 1
            self._listener.on_commit(self._applied_end - 1, epoch, command)


class Engines(Protocol):
    """Makes one process after the other on what the one before left."""

    def __call__(self) -> Consensus: ...


def voters() -> Engines:
    files = MemoryFiles()

    def make() -> Consensus:
        return RaftVoter(
            files, "/metadata", node_id=NodeId(4), directory_id=UUID(int=4), random=Random(4),
            loop=asyncio.get_running_loop(), wall_clock_ms=lambda: 0, reserve_bytes=1024,
        )  # fmt: skip

    return make


def lists() -> Engines:
    last: list[ListOfEntries] = []

    def make() -> Consensus:
        kept, base = (last[-1].kept, last[-1].base) if last else ([], None)
        last.append(ListOfEntries(kept, base))
        return last[-1]

    return make


class Heard:
    def __init__(self) -> None:
        self.commands: list[bytes] = []
        self.end_offset = 0
        self.epochs: list[int] = []
        self.leaderships: list[tuple[int | None, int]] = []

    def on_snapshot(self, snapshot: Snapshot) -> None:
        self.commands = list(snapshot.chunks)
        self.end_offset = snapshot.end_offset

    def on_commit(self, offset: int, epoch: ControllerEpoch, command: bytes) -> None:
        assert offset == self.end_offset
        self.end_offset += 1
        self.epochs.append(epoch)
        if command:
            self.commands.append(command)

    def on_leadership(self, leader_id: NodeId | None, epoch: ControllerEpoch) -> None:
        assert epoch not in self.epochs
        self.leaderships.append((leader_id, epoch))

    def on_failure(self, error: ConsensusFailed) -> None:
        raise error


def on_a_loop(
    test: Callable[[Engines], Coroutine[None, None, None]],
) -> Callable[[Callable[[], Engines]], None]:
    @pytest.mark.parametrize("engines", [voters, lists])
    def run(engines: Callable[[], Engines]) -> None:
        asyncio.run(asyncio.wait_for(test(engines()), 20))

    return run


async def started(engines: Engines) -> tuple[Consensus, Heard]:
    engine, heard = engines(), Heard()
    await engine.start(heard)
    return engine, heard


@on_a_loop
async def test_a_future_is_done_after_its_entry_was_heard(engines: Engines) -> None:
    engine, heard = await started(engines)
    first = engine.next_offset
    futures = [engine.propose(b"%d" % number, epoch=engine.epoch) for number in range(10)]
    assert engine.next_offset == first + 10
    assert await futures[3] == CommitPosition(first + 3, engine.epoch)
    assert heard.commands[:4] == [b"0", b"1", b"2", b"3"]
    await asyncio.gather(*futures)
    assert await engine.read_barrier() == CommitPosition(first + 9, engine.epoch)
    assert engine.status().high_watermark == first + 10
    await engine.stop()


@on_a_loop
async def test_only_the_leader_s_own_epoch_takes_proposals(engines: Engines) -> None:
    engine, _ = await started(engines)
    with pytest.raises(NotLeader):
        engine.propose(b"x", epoch=ControllerEpoch(engine.epoch + 1))
    epoch = engine.epoch
    await engine.stop()
    with pytest.raises(NotLeader):
        engine.propose(b"x", epoch=epoch)


@on_a_loop
async def test_a_start_hears_everything_again_in_a_new_epoch(engines: Engines) -> None:
    engine, _ = await started(engines)
    for number in range(3):
        await engine.propose(b"%d" % number, epoch=engine.epoch)
    first_epoch = engine.epoch
    await engine.stop()
    engine, heard = await started(engines)
    assert heard.commands == [b"0", b"1", b"2"]
    assert engine.epoch > first_epoch
    assert heard.leaderships == [(engine.node_id, engine.epoch)]
    await engine.stop()


@on_a_loop
async def test_a_snapshot_stands_for_what_it_covers(engines: Engines) -> None:
    engine, heard = await started(engines)
    for number in range(3):
        await engine.propose(b"%d" % number, epoch=engine.epoch)
    chunks = iter(list(heard.commands))
    await engine.save_snapshot(end_offset=heard.end_offset, epoch=engine.epoch, chunks=chunks)
    await engine.propose(b"after", epoch=engine.epoch)
    end_offset = heard.end_offset
    await engine.stop()
    engine, heard = await started(engines)
    assert heard.commands == [b"0", b"1", b"2", b"after"]
    assert heard.end_offset == end_offset + 1
    await engine.stop()
