"""Random lives of a partition that moves between log directories, against what was written to it.

Two lives: one of a compacted log with transactions, as in `test_compaction_properties.py`, and one of a log that is cut
by other leaders and by retention.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest
from compacted_life import TOPIC, CompactedLife
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from moving_disk import FIRST, SECOND, MovingDisk, values

from penstock.chaos.simulation.virtual_loop import VirtualLoop
from penstock.protocol.ids import LeaderEpoch
from penstock.storage.log.rules.config import LogConfig

pytestmark = pytest.mark.thorough

DIRECTORIES = st.sampled_from([FIRST, SECOND])


class MovedCompactedLife(CompactedLife):
    def __init__(self) -> None:
        super().__init__()
        self.it = MovingDisk(self.loop, (TOPIC, 0))
        self.disk = self.it.disk

    def start_process(self) -> None:
        self.it.start()
        self.log = self.it.log

    def stop_process(self) -> None:
        self.it.stop()

    def kill_process(self, random: Random | None = None) -> None:
        self.it.kill(random)

    def teardown(self) -> None:
        self.it.end()
        super().teardown()

    @rule(path=DIRECTORIES)
    def move(self, path: str) -> None:
        self.it.begin(path)

    @rule(seconds=st.sampled_from([0.0, 0.1, 1.0, 20.0]))
    def go_on_moving(self, seconds: float) -> None:
        self.it.wait(seconds)
        self.log = self.it.log

    @rule(step=st.integers(0, 60), is_power_lost=st.booleans())
    def end_while_cleaning(self, step: int, is_power_lost: bool) -> None:
        self.end_while_moving(step, is_power_lost, is_cleaned=True)

    @rule(step=st.integers(0, 150), is_power_lost=st.booleans(), is_cleaned=st.booleans())
    def end_while_moving(self, step: int, is_power_lost: bool, is_cleaned: bool) -> None:
        self.log.flush()
        self.disk.files.end_process(skip=step)
        with suppress(OSError):
            if is_cleaned:
                self.loop.run(self.cleaner.clean_dirtiest())
            self.it.wait(3)
        self.kill_process(self.random if is_power_lost else None)
        self.begin()


class MovedCutLife(RuleBasedStateMachine):
    """The log's end, and its start, are moved by others."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.loop.__enter__()
        self.it = MovingDisk(self.loop)
        self.random = Random(1)
        # What it has, by offset; what lies below `synced` is still there after a loss of power.
        self.written: dict[int, bytes] = {}
        self.synced = 0
        self.is_begun = False

    def teardown(self) -> None:
        self.it.end()
        self.loop.__exit__(None, None, None)

    @initialize(segment_bytes=st.sampled_from([200, 900, 5000]), rate=st.sampled_from([1000.0, float("inf")]))
    def start(self, segment_bytes: int, rate: float) -> None:
        self.it.disk.config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=100)
        self.it.rate = rate
        self.begin()
        self.is_begun = True

    def begin(self) -> None:
        self.it.start()
        log = self.it.log
        assert log.damage is None
        assert log.log_end_offset >= self.synced
        self.written = {offset: value for offset, value in self.written.items() if offset < log.log_end_offset}
        # Each leadership has its epoch.
        self.it.epoch += 1
        log.assign_leader_epoch(LeaderEpoch(self.it.epoch))

    @rule(count=st.integers(1, 12))
    def append(self, count: int) -> None:
        log = self.it.log
        for _ in range(count):
            offset = log.log_end_offset
            self.it.append()
            self.written[offset] = b"%d" % self.it.value

    @rule()
    def flush(self) -> None:
        self.it.log.flush()
        self.synced = self.it.log.log_end_offset

    @rule(share=st.floats(0, 1))
    def cut(self, share: float) -> None:
        log = self.it.log
        start = log.log_start_offset
        offset = start + int(share * (log.log_end_offset - start))
        self.it.disk.manager.truncate({log: offset})
        self.written = {at: value for at, value in self.written.items() if at < log.log_end_offset}
        self.synced = min(self.synced, log.log_end_offset)
        self.it.epoch += 1

    @rule(distance=st.integers(0, 30))
    def begin_anew(self, distance: int) -> None:
        log = self.it.log
        offset = log.log_end_offset + distance
        self.it.disk.manager.restart(log, offset, (), self.it.disk.now_ms)
        self.written.clear()
        # The metadata tell a follower where it is; before it has a record a stop takes it back to where it was.
        self.synced = 0
        self.it.epoch += 1

    @rule(share=st.floats(0, 1))
    def delete(self, share: float) -> None:
        log = self.it.log
        start = log.log_start_offset
        log.increment_log_start_offset(start + int(share * (log.log_end_offset - start)))
        while log.delete_old_segments(log.log_end_offset, self.it.disk.now_ms):
            pass

    @rule(path=DIRECTORIES)
    def move(self, path: str) -> None:
        self.it.begin(path)
        self.it.wait(0)

    @rule()
    def cancel(self) -> None:
        self.it.mover.cancel(self.it.key)
        self.it.wait(0)

    @rule(is_up=st.booleans())
    def reach_controller(self, is_up: bool) -> None:
        self.it.is_controller_up = is_up

    @rule(seconds=st.sampled_from([0.0, 0.05, 0.3, 2.0, 30.0]))
    def go_on(self, seconds: float) -> None:
        self.it.wait(seconds)

    @rule()
    def stop_and_start(self) -> None:
        self.it.stop()
        self.synced = self.it_end
        self.begin()

    @property
    def it_end(self) -> int:
        return max(self.written, default=-1) + 1

    @rule(step=st.integers(0, 150), seconds=st.sampled_from([0.3, 3.0]), is_power_lost=st.booleans())
    def end(self, step: int, seconds: float, is_power_lost: bool) -> None:
        if not is_power_lost:
            self.synced = self.it_end
        self.it.disk.files.end_process(skip=step)
        with suppress(OSError):
            self.it.wait(seconds)
        self.it.kill(self.random if is_power_lost else None)
        self.begin()

    @invariant()
    def it_has_what_was_written(self) -> None:
        if not self.is_begun:
            return
        log = self.it.log
        start = log.log_start_offset
        assert values(log) == [(at, value) for at, value in sorted(self.written.items()) if at >= start]
        assert log.log_end_offset >= self.it_end
        names = [name for path in (FIRST, SECOND) for name in self.it.folders(path)]
        assert names.count("moved-0") == 1
        assert len([name for name in names if name.endswith("-future")]) <= 1


TestMovedCompactedLife = MovedCompactedLife.TestCase
TestMovedCompactedLife.settings = settings(max_examples=40, stateful_step_count=40)
TestMovedCutLife = MovedCutLife.TestCase
TestMovedCutLife.settings = settings(max_examples=40, stateful_step_count=40)
