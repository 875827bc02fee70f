"""When a voter makes a snapshot: also of what comes while it makes one."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from waiting import loop_until

from penstock.protocol.ids import ControllerEpoch
from penstock.quorum.controller.snapshot_generator import SnapshotGenerator
from penstock.quorum.metadata.snapshot_schedule import SnapshotSchedule

INTERVAL_MS = 10


class Quorum:
    """Its log has entries up to `image.offset`; a snapshot is kept when it is let."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.bytes_since_snapshot = 0
        self.is_let = asyncio.Event()
        self.ends: list[int] = []
        self.log = SimpleNamespace(start_offset=0, snapshot=None, trim=self.trim)
        self.image = SimpleNamespace(offset=0, epoch=ControllerEpoch(1))
        self.loader = SimpleNamespace(image=self.image, is_catching_up=False, is_in_transaction=False)

        def now_ms() -> int:
            return int(loop.time() * 1000)

        self.generator = SnapshotGenerator(
            cast("Any", self),
            cast("Any", self.loader),
            cast("Any", self.log),
            SnapshotSchedule(max_bytes=1_000_000, interval_ms=INTERVAL_MS, now_ms=now_ms()),
            is_behind=lambda: False,
            loop=loop,
            now_ms=now_ms,
        )

    def trim(self, snapshot_id: Any) -> None:
        self.log.start_offset = snapshot_id.end_offset

    async def save_snapshot(self, *, end_offset: int, **_: Any) -> bool:
        self.ends.append(end_offset)
        await self.is_let.wait()
        return True


def test_what_comes_while_one_is_made_is_in_the_next_though_nothing_else_comes() -> None:
    async def scenario() -> None:
        quorum = Quorum(asyncio.get_running_loop())
        quorum.generator.on_entry()
        await loop_until(lambda: quorum.ends == [1])
        quorum.loader.image = SimpleNamespace(offset=1, epoch=ControllerEpoch(1))
        quorum.generator.on_entry()
        # Its time comes before the first is made.
        await loop_until(lambda: quorum.generator._timer is None)
        quorum.is_let.set()
        await loop_until(lambda: quorum.log.start_offset == 2)
        assert quorum.ends == [1, 2]
        quorum.generator.close()

    asyncio.run(scenario())
