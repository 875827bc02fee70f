"""What the loading of a coordinator leaves to other requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from penstock.broker.coordinators import coordinator_loader
from penstock.broker.coordinators.coordinator_loader import CoordinatorLoader
from penstock.protocol.batches import BatchHeader, read_header
from penstock.protocol.records import Record, write_batch

if TYPE_CHECKING:
    from unit.broker.conftest import DataNode

TOPIC = "coordinated"
BATCHES = 1_200
TURN = 100


class Replayed:
    """A state shard that counts."""

    def __init__(self) -> None:
        self.count = 0

    def is_superseded(self, key: bytes) -> bool:
        return bool(key)

    def replay(self, *_record: object) -> None:
        self.count += 1


@pytest.mark.parametrize("plain_count", [0, BATCHES // 3], ids=["all", "most"])
def test_batches_of_transactions_too_leave_turns_to_other_requests(
    node: DataNode, monkeypatch: pytest.MonkeyPatch, plain_count: int
) -> None:
    """They are read one by one, which takes far longer than batches that are looked through."""
    node.create_topic(TOPIC, leader=2, replicas=(1, 2))
    partition = node.hosted(TOPIC)
    batches = [
        write_batch([Record(number, node.now_ms, b"key", b"x")], base_offset=number, leader_epoch=0)
        if number % 3 == 0 and plain_count
        else write_batch(
            [Record(number, node.now_ms, b"key", b"x")],
            base_offset=number,
            producer_id=1,
            producer_epoch=0,
            is_transactional=True,
            leader_epoch=0,
        )
        for number in range(BATCHES)
    ]
    partition.append_as_follower(memoryview(b"".join(batches)), 0)
    monkeypatch.setattr(coordinator_loader, "_BATCHES_PER_TURN", TURN)
    read = in_turn = longest = 0

    def counted(raw: bytes, position: int) -> BatchHeader:
        nonlocal read, in_turn, longest
        read += 1
        in_turn += 1
        longest = max(longest, in_turn)
        return read_header(raw, position)

    monkeypatch.setattr(coordinator_loader, "read_header", counted)

    async def others() -> None:
        nonlocal in_turn
        while True:
            in_turn = 0
            await asyncio.sleep(0)

    async def load() -> int:
        task = asyncio.ensure_future(others())
        try:
            return await CoordinatorLoader(partition, node.loop, 1024 * 1024).load(Replayed())  # type: ignore[arg-type]
        finally:
            task.cancel()

    assert node.loop.run_until_complete(load()) == BATCHES
    assert read == BATCHES - plain_count
    assert longest <= TURN
