"""The engine of one voter: start, terms, snapshots, stops."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from errno import ENOSPC
from random import Random
from threading import Event
from uuid import UUID

import pytest
from typed_ids import node_ids
from waiting import loop_until

from penstock.protocol.ids import ControllerEpoch, NodeId
from penstock.quorum.links.rules.peer_links import LinkListener, PeerLinks
from penstock.quorum.raft.consensus import CommitPosition, ConsensusFailed, NotLeader, OutcomeUnknown, Snapshot
from penstock.quorum.raft.messages import TermNotice, encode_message
from penstock.quorum.voter.voter import RaftVoter
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.disk.memory_nodes import Operation

FOLDER = "/data/quorum"


class Heard:
    """A listener that keeps everything; its state is the list of commands."""

    def __init__(self) -> None:
        self.events: list[tuple[object, ...]] = []
        self.commands: list[bytes] = []
        self.end_offset = 0

    def on_snapshot(self, snapshot: Snapshot) -> None:
        self.commands = list(snapshot.chunks)
        self.end_offset = snapshot.end_offset
        self.events.append(("snapshot", snapshot.end_offset, snapshot.epoch))

    def on_commit(self, offset: int, epoch: int, command: bytes) -> None:
        assert offset == self.end_offset
        self.end_offset = offset + 1
        self.events.append(("commit", offset, epoch))
        if command:
            self.commands.append(command)

    def on_leadership(self, leader_id: int | None, epoch: int) -> None:
        self.events.append(("leadership", leader_id, epoch))

    def on_failure(self, error: ConsensusFailed) -> None:
        self.events.append(("failure", str(error)))


async def started(
    files: MemoryFiles, *, voter_ids: tuple[NodeId, ...] | None = None, links: PeerLinks | None = None
) -> tuple[RaftVoter, Heard]:
    heard = Heard()
    voter = made(files, voter_ids=voter_ids, links=links)
    await voter.start(heard)
    return voter, heard


def made(
    files: MemoryFiles, *, voter_ids: tuple[NodeId, ...] | None = None, links: PeerLinks | None = None
) -> RaftVoter:
    return RaftVoter(
        files,
        FOLDER,
        node_id=NodeId(4),
        directory_id=UUID(int=500),
        random=Random(5),
        loop=asyncio.get_running_loop(),
        wall_clock_ms=lambda: 0,
        voter_ids=voter_ids,
        links=links,
        reserve_bytes=4096,
    )


def on_a_loop(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    """Run a test on a loop of its own, for 20 seconds at most."""

    def run() -> None:
        async def bounded() -> None:
            await asyncio.wait_for(test(), 20)

        asyncio.run(bounded())

    return run


@on_a_loop
async def test_each_start_leads_a_new_term_with_a_no_op_of_its_own() -> None:
    files = MemoryFiles()
    for term in (1, 2, 3):
        voter, heard = await started(files)
        assert heard.events[-2:] == [("leadership", 4, term), ("commit", term - 1, term)]
        assert (voter.leader_id, voter.epoch, voter.next_offset) == (4, term, term)
        await voter.stop()


@on_a_loop
async def test_positions_are_in_order_and_commits_are_heard_before_them() -> None:
    voter, heard = await started(MemoryFiles())
    futures = [voter.propose(bytes([number]), epoch=ControllerEpoch(1)) for number in range(1, 20)]
    assert voter.next_offset == 20
    first = await futures[0]
    assert ("commit", 1, 1) in heard.events
    assert first == CommitPosition(1, ControllerEpoch(1))
    assert [position.offset for position in await asyncio.gather(*futures)] == list(range(1, 20))
    assert await voter.read_barrier() == CommitPosition(19, ControllerEpoch(1))
    status = voter.status()
    assert (status.leader_id, status.epoch, status.high_watermark, len(status.voters)) == (4, 1, 20, 1)
    await voter.stop()


@on_a_loop
async def test_proposals_for_another_epoch_are_refused() -> None:
    voter, _ = await started(MemoryFiles())
    with pytest.raises(NotLeader):
        voter.propose(b"x", epoch=ControllerEpoch(2))
    await voter.stop()
    with pytest.raises(NotLeader):
        voter.propose(b"x", epoch=ControllerEpoch(1))


@on_a_loop
async def test_a_stop_ends_what_waits_for_a_barrier() -> None:
    voter, _ = await started(MemoryFiles())
    waiting = asyncio.ensure_future(voter.read_barrier())
    await asyncio.sleep(0)
    await voter.stop()
    with pytest.raises(OutcomeUnknown, match="stopped"):
        await waiting
    with pytest.raises(NotLeader):
        await voter.read_barrier()


@on_a_loop
async def test_a_barrier_that_comes_while_a_step_is_on_the_disk_is_answered_behind_it() -> None:
    """The only voter has no other step for an hour."""
    voter, _ = await started(MemoryFiles())
    await voter.read_barrier()
    first = voter.propose(b"x", epoch=ControllerEpoch(1))
    await loop_until(lambda: voter._is_stepping, "a step on the disk", interval_s=0)
    waiting = asyncio.ensure_future(voter.read_barrier())
    await first
    assert await waiting >= CommitPosition(1, ControllerEpoch(1))
    await voter.stop()


@on_a_loop
async def test_a_failed_write_ends_a_barrier_that_its_step_had_in_hand() -> None:
    files = MemoryFiles()
    voter, heard = await started(files)
    files.fail("sync", under=FOLDER, count=None)
    proposed = voter.propose(b"x", epoch=ControllerEpoch(1))
    with pytest.raises(OutcomeUnknown):
        await voter.read_barrier()
    with pytest.raises((OutcomeUnknown, ConsensusFailed)):
        await proposed
    assert heard.events[-1][0] == "failure"
    await voter.stop()


@on_a_loop
async def test_a_stop_finishes_what_was_proposed() -> None:
    files = MemoryFiles()
    voter, _ = await started(files)
    future = voter.propose(b"last", epoch=ControllerEpoch(1))
    await voter.stop()
    assert await future == CommitPosition(1, ControllerEpoch(1))
    voter, heard = await started(files)
    assert heard.commands == [b"last"]
    await voter.stop()


class SlowDisk(MemoryFiles):
    """A disk whose next call of a kind takes until `go_on` is set."""

    def __init__(self) -> None:
        super().__init__(refuses_late_writes=True)
        self.has_begun = Event()
        self.go_on = Event()
        self.slow: Operation | None = None

    def note(self, operation: Operation, path: str) -> None:
        if operation == self.slow:
            self.slow = None
            self.has_begun.set()
            assert self.go_on.wait(10), "the test does not let the disk go on"
        super().note(operation, path)

    async def begun(self) -> None:
        assert await asyncio.get_running_loop().run_in_executor(None, self.has_begun.wait, 10)


class TalkingLinks:
    """A higher term comes again and again while the links stop."""

    def __init__(self) -> None:
        self._listener: LinkListener | None = None
        self.term = 50

    def start(self, listener: LinkListener) -> None:
        self._listener = listener

    def send(self, peer_id: int, data: bytes) -> None:
        """There are no peers."""

    async def stop(self) -> None:
        assert self._listener is not None
        for _ in range(20):
            self.term += 1
            self._listener.on_message(NodeId(5), encode_message(TermNotice(self.term)))
            self._listener.on_peer_gone(NodeId(6))
            await asyncio.sleep(0)


@on_a_loop
async def test_a_voter_makes_no_step_from_its_stop_on() -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    files = MemoryFiles()
    voter, heard = await started(files, voter_ids=node_ids(4, 5, 6), links=TalkingLinks())
    await voter.stop()
    assert heard.events == []
    assert voter.epoch < 50
    before = {name: files.read(f"{FOLDER}/{name}") for name in files.list_directory(FOLDER)}
    for _ in range(20):
        # The one thread has done what was asked of it before.
        await loop.run_in_executor(None, int)
    assert {name: files.read(f"{FOLDER}/{name}") for name in files.list_directory(FOLDER)} == before


@on_a_loop
async def test_a_stop_waits_for_the_step_that_is_on_the_disk_also_when_the_voter_has_failed() -> None:
    files = SlowDisk()
    voter, heard = await started(files)

    def hear(offset: int, epoch: int, command: bytes) -> None:
        if offset == 10:
            # Commits are told in slices, and this is on the disk before the last of them.
            files.slow = "sync"
            voter.propose(b"on the disk", epoch=ControllerEpoch(1))
        if offset == 70:
            raise ValueError("cannot be")

    heard.on_commit = hear  # type: ignore[method-assign]
    outcomes = [voter.propose(b"%d" % number, epoch=ControllerEpoch(1)) for number in range(80)]
    await asyncio.wait(outcomes)
    assert "cannot be applied" in str(heard.events[-1])
    await files.begun()
    stopping = asyncio.ensure_future(voter.stop())
    await asyncio.wait({stopping}, timeout=0.02)
    assert not stopping.done()
    files.go_on.set()
    await stopping
    voter, heard = await started(files)
    assert heard.commands[-2:] == [b"79", b"on the disk"]
    await voter.stop()


@on_a_loop
async def test_a_stop_waits_for_what_a_snapshot_in_the_making_writes() -> None:
    files = SlowDisk()
    voter, heard = await started(files)
    await voter.propose(b"x", epoch=ControllerEpoch(1))
    files.slow = "rename"
    saving = asyncio.ensure_future(save(voter, heard))
    await files.begun()
    stopping = asyncio.ensure_future(voter.stop())
    await asyncio.wait({stopping}, timeout=0.02)
    assert not stopping.done()
    files.go_on.set()
    await stopping
    await saving
    assert heard.events[-1][0] != "failure"
    assert f"{2:020}-{1:010}.checkpoint" in files.list_directory(FOLDER)
    assert not await voter.save_snapshot(end_offset=2, epoch=ControllerEpoch(1), chunks=iter(()))
    voter, heard = await started(files)
    assert heard.commands == [b"x"]
    await voter.stop()


@on_a_loop
async def test_a_start_that_is_cancelled_lets_go_of_the_folder_when_its_last_call_has_ended() -> None:
    files = SlowDisk()
    voter, _ = await started(files)
    await voter.propose(b"x", epoch=ControllerEpoch(1))
    await voter.stop()
    files.slow = "read"
    voter = made(files)
    starting = asyncio.ensure_future(voter.start(Heard()))
    await files.begun()
    starting.cancel()
    await asyncio.wait({starting}, timeout=0.02)
    assert not starting.done()
    files.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await voter.stop()
    voter, heard = await started(files)
    assert heard.commands == [b"x"]
    await voter.stop()


@on_a_loop
async def test_two_processes_cannot_share_a_folder() -> None:
    files = MemoryFiles()
    voter, _ = await started(files)
    with pytest.raises(ConsensusFailed, match="Another process uses the metadata journal in /data/quorum"):
        await started(files)
    await voter.stop()
    voter, _ = await started(files)
    await voter.stop()


@on_a_loop
async def test_kafka_s_own_metadata_log_is_left_alone() -> None:
    files = MemoryFiles()
    files.make_directories(FOLDER)
    for name in (f"{0:020}.log", f"{0:020}-{0:010}.checkpoint"):
        files.open(f"{FOLDER}/{name}", create=True).append([b"kafka"])
    before = files.list_directory(FOLDER)
    with pytest.raises(ConsensusFailed, match="holds the metadata log of another system"):
        await started(files)
    assert [name for name in files.list_directory(FOLDER) if name != ".lock"] == before


async def save(voter: RaftVoter, heard: Heard) -> None:
    chunks: Iterator[bytes] = iter(list(heard.commands))
    await voter.save_snapshot(end_offset=heard.end_offset, epoch=voter.epoch, chunks=chunks)


@on_a_loop
async def test_after_a_snapshot_a_start_replays_only_what_follows() -> None:
    files = MemoryFiles()
    voter, heard = await started(files)
    for number in range(5):
        await voter.propose(b"%d" % number, epoch=ControllerEpoch(1))
    await save(voter, heard)
    await voter.propose(b"after", epoch=ControllerEpoch(1))
    await voter.stop()
    names = files.list_directory(FOLDER)
    assert f"{6:020}-{1:010}.checkpoint" in names
    assert f"{0:020}.journal" not in names
    voter, heard = await started(files)
    assert heard.commands == [b"0", b"1", b"2", b"3", b"4", b"after"]
    assert heard.events == [("snapshot", 6, 1), ("commit", 6, 1), ("leadership", 4, 2), ("commit", 7, 2)]
    await save(voter, heard)
    assert sum(name.endswith(".checkpoint") for name in files.list_directory(FOLDER)) == 1
    await voter.stop()


@on_a_loop
async def test_a_snapshot_without_room_is_given_up_and_the_voter_goes_on() -> None:
    files = MemoryFiles()
    voter, heard = await started(files)
    await voter.propose(b"before", epoch=ControllerEpoch(1))
    files.fail("write", under=f"{FOLDER}/", error=ENOSPC, skip=1, count=1)
    await save(voter, heard)
    assert not any(name.endswith((".checkpoint", ".part")) for name in files.list_directory(FOLDER))
    await voter.propose(b"after", epoch=ControllerEpoch(1))
    await save(voter, heard)
    await voter.stop()
    _, heard = await started(files)
    assert heard.commands == [b"before", b"after"]


@on_a_loop
async def test_a_damaged_snapshot_is_refused() -> None:
    files = MemoryFiles()
    voter, heard = await started(files)
    await voter.propose(b"x" * 50, epoch=ControllerEpoch(1))
    await save(voter, heard)
    await voter.stop()
    path = f"{FOLDER}/{2:020}-{1:010}.checkpoint"
    for position in range(files.size(path)):
        files.flip_bit(path, position, 3)
        with pytest.raises(ConsensusFailed, match="The metadata snapshot cannot be used"):
            await started(files)
        files.flip_bit(path, position, 3)


@on_a_loop
async def test_a_snapshot_without_its_journal_is_refused() -> None:
    files = MemoryFiles()
    voter, heard = await started(files)
    await save(voter, heard)
    await voter.stop()
    for name in files.list_directory(FOLDER):
        if name.endswith(".journal"):
            files.remove(f"{FOLDER}/{name}")
    with pytest.raises(ConsensusFailed, match="does not fit its snapshot"):
        await started(files)


@on_a_loop
async def test_a_journal_without_its_snapshot_is_refused() -> None:
    files = MemoryFiles()
    voter, heard = await started(files)
    await voter.propose(b"x", epoch=ControllerEpoch(1))
    await save(voter, heard)
    await voter.stop()
    for name in files.list_directory(FOLDER):
        if name.endswith(".checkpoint"):
            files.remove(f"{FOLDER}/{name}")
    with pytest.raises(ConsensusFailed, match="does not fit its snapshot"):
        await started(files)


@on_a_loop
async def test_a_listener_that_cannot_take_an_entry_stops_the_engine() -> None:
    files = MemoryFiles()
    voter, heard = await started(files)

    def refuse(offset: int, epoch: int, command: bytes) -> None:
        raise ValueError("cannot be")

    heard.on_commit = refuse  # type: ignore[method-assign]
    with pytest.raises(Exception, match="cannot be applied: cannot be"):
        await voter.propose(b"x", epoch=ControllerEpoch(1))
    assert heard.events[-1] == ("failure", "The metadata entry at offset 1 cannot be applied: cannot be")
    with pytest.raises(NotLeader):
        voter.propose(b"y", epoch=ControllerEpoch(1))
    await voter.stop()


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(40))
def test_power_loss_at_any_operation_keeps_what_was_committed(seed: int) -> None:
    """Snapshots, restarts and failing disks in one run; what a future gave is there after every start."""
    random = Random(seed)
    files = MemoryFiles()
    committed: list[bytes] = []
    unknown: list[bytes] = []

    async def run_once() -> None:
        voter, heard = await started(files)
        for command in heard.commands[len(committed) :]:
            assert command in unknown
        assert heard.commands[: len(committed)] == committed
        committed[:] = heard.commands
        unknown.clear()
        files.fail(None, under=FOLDER, skip=random.randrange(60), count=None)
        snapshot: asyncio.Task[None] | None = None
        for number in range(random.randrange(1, 12)):
            command = b"%d-%d-%d" % (seed, len(committed), number) * random.randrange(1, 100)
            unknown.append(command)
            try:
                await voter.propose(command, epoch=voter.epoch)
            except Exception:
                break
            committed.append(command)
            if random.random() < 0.2 and (snapshot is None or snapshot.done()):
                snapshot = asyncio.ensure_future(save(voter, heard))
        if snapshot is not None:
            await snapshot
        if random.random() < 0.5:
            files.heal()
            await voter.stop()

    for _ in range(6):
        files.heal()
        asyncio.run(asyncio.wait_for(run_once(), 20))
        files.heal()
        files.crash(random)
