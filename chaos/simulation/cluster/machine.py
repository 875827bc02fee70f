"""A machine of the simulated cluster: a disk, and one process of a real node after the other on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from string import ascii_lowercase

from ....broker.configuration.node_config import load
from ....broker.node.server import Node
from ....protocol.errors import ConfigError
from ....storage.disk.memory_files import MemoryFiles
from ....storage.tiers.rules.tier_store import OpenTier, TierStore
from .damaged_file import DamagedFile
from .loop import SimulatedLoop
from .network import Network
from .process import Process

BROKER_PORT = 9092
CONTROLLER_PORT = 9093
DATA = "/data"
CLUSTER_ID = "cGVuc3RvY2stc2ltdWxhdA"
_WORK_CHECK_S = 0.001


def host_of(node_id: int) -> str:
    return f"10.0.0.{node_id}"


class Machine:
    """`node` is None while no process runs."""

    def __init__(
        self,
        node_id: int,
        voter_ids: tuple[int, ...],
        settings: Mapping[str, str],
        *,
        directory_count: int = 1,
        loop: SimulatedLoop,
        network: Network,
        wall_clock_ms: Callable[[], int],
        random: Random,
        trace: Callable[[str], None],
        on_failure: Callable[[Machine, str], None],
        tier: TierStore | None = None,
    ) -> None:
        """A node of `voter_ids` is a controller and a broker, any other a broker. With several log directories the
        metadata has one more to itself."""
        self.node_id = node_id
        self.is_voter = node_id in voter_ids
        several = tuple(f"{DATA}/{letter}" for letter in ascii_lowercase[:directory_count])
        self.log_directories = several if directory_count > 1 else (DATA,)
        self.metadata_directory = f"{DATA}/metadata" if directory_count > 1 else DATA
        self.host = host_of(node_id)
        self.files = MemoryFiles(now_ms=wall_clock_ms, refuses_late_writes=True)
        self.process: Process | None = None
        self.node: Node | None = None
        self.is_ready = False
        """Its start is through."""
        self.is_stopping = False
        self.has_failed = False
        self.is_failure_expected = False
        self.clock_offset_ms = 0
        self.start_count = 0
        self._damaged_file: DamagedFile | None = None
        self._loop = loop
        self._network = network
        self._wall_clock_ms = wall_clock_ms
        self._random = random
        self._trace = trace
        self._on_failure = on_failure
        self._open_tier: OpenTier | None = None if tier is None else lambda _url: tier
        listeners = f"PLAINTEXT://{self.host}:{BROKER_PORT}"
        if self.is_voter:
            listeners += f",CONTROLLER://{self.host}:{CONTROLLER_PORT}"
        self._config = load(
            {
                "node.id": str(node_id),
                "process.roles": "broker,controller" if self.is_voter else "broker",
                "listeners": listeners,
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": ",".join(f"{one}@{host_of(one)}:{CONTROLLER_PORT}" for one in voter_ids),
                "cluster.id": CLUSTER_ID,
                "cluster.secret": "simulated",
                "log.dirs": ",".join(self.log_directories),
                "metadata.log.dir": self.metadata_directory,
                **settings,
            }
        )

    @property
    def is_up(self) -> bool:
        return self.node is not None

    def start(self) -> None:
        assert self.process is None
        self.start_count += 1
        self.is_ready = self.is_stopping = self.has_failed = False
        self._network.light(self.host)
        process = self.process = Process(f"node-{self.node_id}.{self.start_count}", self.host)
        process.clock_offset_ms = self.clock_offset_ms
        process.run(self._begin, process)

    def _begin(self, process: Process) -> None:
        node = self.node = Node(
            self._config,
            self.files,
            loop=self._loop,
            wall_clock_ms=self._wall_clock_ms,
            random=Random(self._random.getrandbits(64)),
            open_tier=self._open_tier,
        )
        self._loop.create_task(self._run(process, node))

    async def _run(self, process: Process, node: Node) -> None:
        """What `broker/node/main.py` does, without signals."""
        try:
            await node.start()
        except ConfigError as error:
            self._fail(process, str(error))
            return
        except Exception as error:
            # The process ends by a traceback.
            self._loop.call_exception_handler({"message": f"{process} did not start", "exception": error})
            self._end(process)
            return
        self.is_ready = True
        self._trace(f"started {process}")
        reason = await node.failure
        self._fail(process, reason)
        await self._stop(process, node)

    def _fail(self, process: Process, reason: str) -> None:
        self._trace(f"failed {process} {reason}")
        self.has_failed = True
        self._on_failure(self, reason)
        if not self.is_ready:
            self._end(process)

    def _end(self, process: Process) -> None:
        """The process exits by itself."""
        if self.process is process:
            self._trace(f"ended {process}")
            self._stop_process(process, is_told=True)
            self.files.kill()

    def _stop_process(self, process: Process, *, is_told: bool) -> None:
        process.is_dead = True
        self._network.end_process(process, is_told=is_told)
        self.process = self.node = None
        self.is_ready = False

    # What happens to it.

    def stop(self) -> None:
        """SIGTERM."""
        process, node = self.process, self.node
        assert process is not None
        assert node is not None
        self.is_stopping = True
        process.run(lambda: self._loop.create_task(self._stop(process, node)))

    async def _stop(self, process: Process, node: Node) -> None:
        try:
            await node.stop()
            await self._end_work(process)
        except Exception as error:
            # The process ends all the same, as `broker/node/main.py` would.
            self._loop.call_exception_handler({"message": f"{process} did not stop in good order", "exception": error})
        self._end(process)

    async def _end_work(self, process: Process) -> None:
        """As in `broker/node/main.py`: what the executor still has is done before the process ends."""
        while process.jobs:  # noqa: ASYNC110 - a job tells its own task only
            await asyncio.sleep(_WORK_CHECK_S)

    def kill(self, *, has_power: bool) -> None:
        """End the process: what it wrote is there, or, when the power went too, what it synced.

        What its disk was about to do is done to some extent.
        """
        process = self.process
        assert process is not None
        self._stop_process(process, is_told=has_power)
        for job in process.jobs:
            self.files.end_process(skip=self._random.choice((0, 0, 1, 1, 2, 5)))
            process.run(job.run)
            self.files.heal()
        process.jobs.clear()
        if has_power:
            self.files.kill()
        else:
            self._network.darken(self.host)
            self.files.crash(self._random)

    def pause(self) -> None:
        assert self.process is not None
        self.process.is_paused = True

    def resume(self) -> None:
        if self.process is not None:
            self._loop.resume(self.process)

    @property
    def serves(self) -> bool:
        """Its start is through, and its stop has not begun, of its own accord either as its disk has failed."""
        return self.is_ready and not self.is_stopping and not self.has_failed

    @property
    def is_paused(self) -> bool:
        return self.process is not None and self.process.is_paused

    def step_clock(self, offset_ms: int) -> None:
        self.clock_offset_ms = offset_ms
        if self.process is not None:
            self.process.clock_offset_ms = offset_ms

    def damage(self, path: str, found: bytes | None, *, is_read_at_start: bool) -> None:
        """A file is another one on the disk than the node wrote, or gone. `is_read_at_start`: by nothing else."""
        written = bytes(self.files.look(path) or b"")
        self._damaged_file = DamagedFile(
            path=path, written=written, found=found,
            good_from_start=self.start_count + 1 if is_read_at_start else None,
        )  # fmt: skip
        self.files.damage(path, found)

    @property
    def damaged_file(self) -> DamagedFile | None:
        """The file that is not as the node wrote it, until it is made good."""
        file = self._damaged_file
        if file is None:
            return None
        if file.good_from_start is None:
            is_good = file.is_made_good(self.files)
        else:
            is_good = self.is_ready and self.start_count >= file.good_from_start
        if is_good:
            self._trace(f"made good {self.node_id} {file.path}")
            self._damaged_file = None
        return self._damaged_file

    def is_damaged_in(self, folder: str) -> bool:
        """Whether that file is in this folder."""
        file = self.damaged_file
        return file is not None and file.folder == folder

    def written(self, path: str) -> bytes | bytearray | None:
        """A file's bytes as the node wrote them, whatever its disk has made of them: for judges."""
        file = self.damaged_file
        return file.written if file is not None and file.path == path else self.files.look(path)

    def is_safe(self, path: str, size: int, *, is_folder_renamed: bool = False) -> bool:
        """`MemoryFiles.is_safe` of the file as the node wrote it."""
        file = self.damaged_file
        if file is not None and file.path == path:
            return True
        return self.files.is_safe(path, size, is_folder_renamed=is_folder_renamed)

    def empty_directory(self, path: str) -> None:
        """Give the machine, whose process is down, an empty disk for one of its log directories."""
        assert self.process is None
        if self.files.exists(path):
            self.files.remove_tree(path)
            self.files.sync_directory(path.rpartition("/")[0])

    def swap_disk(self) -> None:
        """Give the machine, whose process is down, an empty disk."""
        assert self.process is None
        self.files = MemoryFiles(now_ms=self._wall_clock_ms, refuses_late_writes=True)
