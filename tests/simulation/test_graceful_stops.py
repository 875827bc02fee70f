"""Whole nodes told to stop while the metadata change: nothing is written late, and the next start finds all."""

from random import Random

import pytest
import simulated_nodes as simulation
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32
from simulated_nodes import CONTROLLERS, GONE, NODES, SimulatedNodes, simulated_nodes

from penstock.protocol.errors import ErrorCode
from penstock.quorum.raft.frames import scan_frames
from penstock.quorum.raft.journal_items import SegmentHead, decode_items
from penstock.storage.disk.rules.held_folders import HeldFolders

METADATA = "/data/__cluster_metadata-0"


def create_topics(nodes: SimulatedNodes, node_id: int, prefix: str, count: int) -> None:
    """Begin to create them one after the other, for as long as the node answers."""

    async def create() -> None:
        try:
            async with await nodes._connect(node_id) as connection:
                for number in range(count):
                    topic = CreatableTopic(
                        name=TopicName(f"{prefix}-{number}"),
                        num_partitions=i32(1),
                        replication_factor=i16(3),
                        assignments=(),
                        configs=(),
                    )
                    await connection.call(CreateTopicsRequest(topics=(topic,)), timeout_ms=2_000)
        except GONE:
            pass

    nodes.client.run(lambda: nodes.loop.create_task(create()))


def segments_with_several_heads(nodes: SimulatedNodes, node_id: int) -> list[str]:
    files, found = nodes.machines[node_id].files, []
    for name in files.list_directory(METADATA):
        if name.endswith(".journal"):
            frames = scan_frames(files.read(f"{METADATA}/{name}"), None, name).frames
            items = [item for frame in frames for item in decode_items(frame.payload, name)]
            if sum(isinstance(item, SegmentHead) for item in items) != 1:
                found.append(name)
    return found


@pytest.mark.parametrize("has_own_controllers", [False, True])
def test_nodes_stopped_while_the_metadata_change_write_nothing_late_and_lose_nothing(
    has_own_controllers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    late: list[str] = []
    check = HeldFolders.check

    def note(folders: HeldFolders, path: str) -> None:
        try:
            check(folders, path)
        except OSError as error:
            late.append(str(error))
            raise

    monkeypatch.setattr(HeldFolders, "check", note)
    monkeypatch.setitem(simulation.SETTINGS, "metadata.log.max.record.bytes.between.snapshots", "300")
    random = Random(7)
    stopped = (*NODES, *CONTROLLERS) if has_own_controllers else NODES
    with simulated_nodes(2, has_own_controllers=has_own_controllers) as nodes:
        for number in range(14):
            node_id = stopped[number % len(stopped)]
            value = b"%d" % number
            nodes.wait(lambda value=value: nodes.append(value) is ErrorCode.NONE, "write")  # type: ignore[misc]
            create_topics(nodes, next(one for one in NODES if one != node_id), f"t{number}", 5)
            nodes.pass_ms(random.randrange(60))
            machine = nodes.machines[node_id]
            machine.stop()
            nodes.wait(lambda machine=machine: not machine.is_up, "end of the process")  # type: ignore[misc]
            assert not machine.has_failed
            assert segments_with_several_heads(nodes, node_id) == []
            nodes.start(node_id)
            nodes.wait(lambda machine=machine: machine.is_ready, "start")  # type: ignore[misc]
            nodes.wait_in_sync(*NODES)
        assert late == []
        assert nodes.lost() == {}
