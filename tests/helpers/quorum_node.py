"""A process with one voter, its load and its state: what the tests of real processes kill.

    python quorum_node.py FOLDER NODE_ID PORT,PORT,…

It writes to FOLDER: `acknowledged`, a line for each command that was answered for; `leaders`, a line for each term that
a node led. It proposes while it leads, until a file `quiet` is there: from then on it writes all commands that it has
to `state.<node id>`, again and again. It saves a snapshot every few hundred entries. `PENSTOCK_TEST_STATE_BYTES` is how
large its state is made with what each command carries, from the first: snapshots of it take a while.
"""

import asyncio
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import cast
from uuid import UUID

import cbor2

from penstock.protocol.ids import ControllerEpoch, NodeId
from penstock.quorum.links.rules.peer_proof import NONCE_BYTES, PeerHello
from penstock.quorum.links.stream_links import StreamLinks
from penstock.quorum.raft.consensus import ConsensusFailed, NotLeader, OutcomeUnknown, Snapshot
from penstock.quorum.voter.voter import RaftVoter
from penstock.storage.disk.files import DiskFiles

SECRET = b"only these nodes know it"
CLUSTER_ID = "kVg0FJXuTjOXMxXGnN9MPA"
_ENTRIES_PER_SNAPSHOT = 200
_IN_FLIGHT_MAX = 200
_COMMANDS_PER_CHUNK = 16
# What a command carries, as a part of the whole state: some hundred are proposed before any fault.
_LOADS_PER_STATE = 256


class ProtocolSniffer(asyncio.Protocol):
    """Waits until it is known what a connection is."""

    def __init__(self, links: StreamLinks) -> None:
        self._links = links
        self._held = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._held += data
        match self._links.starts_link(self._held):
            case True:
                self._links.accept(self._transport, self._held)
            case False:
                self._transport.abort()


class Node:
    def __init__(self, folder: Path, node_id: int, ports: list[int]) -> None:
        self.folder = folder
        self.node_id = node_id
        self.loop = asyncio.get_running_loop()
        self.commands: list[str] = []
        self.end_offset = 0
        self.epoch = 0
        self.saved_end = 0
        self.is_saving = False
        self.proposed = 0
        self.in_flight = 0
        load_bytes = int(os.environ.get("PENSTOCK_TEST_STATE_BYTES", "0")) // _LOADS_PER_STATE
        self.load = " " + "x" * load_bytes
        disk = folder / f"disk-{node_id}"
        disk.mkdir(exist_ok=True)
        identity_file = disk / "directory.id"
        if not identity_file.exists():
            identity_file.write_text(secrets.token_hex(16))
        directory_id = UUID(identity_file.read_text())

        def hello() -> PeerHello:
            nonce = secrets.token_bytes(NONCE_BYTES)
            return PeerHello(node_id=NodeId(node_id), directory_id=directory_id, cluster_id=CLUSTER_ID, nonce=nonce)

        addresses = {
            NodeId(peer_id): ("127.0.0.1", port) for peer_id, port in enumerate(ports, start=1) if peer_id != node_id
        }
        self.links = StreamLinks(addresses, hello=hello, secret=SECRET, loop=self.loop)
        self.voter = RaftVoter(
            DiskFiles(),
            str(disk / "metadata"),
            node_id=NodeId(node_id),
            directory_id=directory_id,
            random=Random(secrets.randbits(64)),
            loop=self.loop,
            wall_clock_ms=lambda: 0,
            voter_ids=tuple(NodeId(voter_id) for voter_id in range(1, len(ports) + 1)),
            links=self.links,
        )
        flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND
        self.acknowledged = os.open(folder / "acknowledged", flags)
        self.leaders = os.open(folder / "leaders", flags)

    def on_snapshot(self, snapshot: Snapshot) -> None:
        self.commands = [command for chunk in snapshot.chunks for command in cbor2.loads(chunk)]
        self.end_offset = self.saved_end = snapshot.end_offset
        self.epoch = snapshot.epoch

    def on_commit(self, offset: int, epoch: int, command: bytes) -> None:
        assert offset == self.end_offset
        self.end_offset, self.epoch = offset + 1, epoch
        if command:
            self.commands.append(command.decode())
        if self.end_offset - self.saved_end > _ENTRIES_PER_SNAPSHOT and not self.is_saving:
            self.is_saving = True
            self.saved_end = self.end_offset
            self.loop.create_task(self.save(self.end_offset, self.epoch, tuple(self.commands)))

    async def save(self, end_offset: int, epoch: int, commands: tuple[str, ...]) -> None:
        def chunks() -> Iterator[bytes]:
            for start in range(0, max(1, len(commands)), _COMMANDS_PER_CHUNK):
                yield cbor2.dumps(commands[start : start + _COMMANDS_PER_CHUNK])

        if self.voter.high_watermark >= end_offset:
            await self.voter.save_snapshot(end_offset=end_offset, epoch=ControllerEpoch(epoch), chunks=chunks())
        self.is_saving = False

    def on_leadership(self, leader_id: int | None, epoch: int) -> None:
        if leader_id == self.node_id:
            os.write(self.leaders, b"%d %d\n" % (epoch, self.node_id))

    def on_failure(self, error: ConsensusFailed) -> None:
        sys.stderr.write(f"node {self.node_id} stops: {error}\n")
        os._exit(70)

    async def propose(self) -> None:
        self.proposed += 1
        command = f"{self.node_id}:{os.getpid()}:{self.proposed}"
        # Large commands until the state is as large as it is meant to be, then small ones.
        load = self.load if len(self.commands) < _LOADS_PER_STATE else " "
        self.in_flight += 1
        try:
            await self.voter.propose((command + load).encode(), epoch=self.voter.epoch)
            os.write(self.acknowledged, command.encode() + b"\n")
        except (NotLeader, OutcomeUnknown, ConsensusFailed):
            # It may be lost.
            return
        finally:
            self.in_flight -= 1

    async def run(self, port: int) -> None:
        await self.loop.create_server(lambda: ProtocolSniffer(self.links), "127.0.0.1", port)
        await self.voter.start(self)
        tasks: set[asyncio.Task[None]] = set()
        while True:
            if (self.folder / "quiet").exists():
                self.show_state()
                await asyncio.sleep(0.2)
            elif self.voter.leader_id == self.node_id and self.in_flight < _IN_FLIGHT_MAX:
                task = self.loop.create_task(self.propose())
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                await asyncio.sleep(0.004)
            else:
                await asyncio.sleep(0.02)

    def show_state(self) -> None:
        unfinished = self.folder / f"unfinished.{self.node_id}"
        # A command that lost a part of its load is none.
        whole = [command.partition(" ")[0] for command in self.commands if command.endswith((self.load, " "))]
        unfinished.write_text("\n".join(whole))
        unfinished.rename(self.folder / f"state.{self.node_id}")


async def main() -> None:
    folder, node_id, ports = Path(sys.argv[1]), int(sys.argv[2]), [int(port) for port in sys.argv[3].split(",")]
    try:
        await Node(folder, node_id, ports).run(ports[node_id - 1])
    except (ConsensusFailed, NotLeader) as error:
        sys.stderr.write(f"node {node_id} cannot start: {error}\n")
        sys.exit(70)


if __name__ == "__main__":
    asyncio.run(main())
