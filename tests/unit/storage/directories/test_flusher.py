"""Syncs come in groups."""

import asyncio
from collections.abc import Callable, Sequence
from errno import EIO, ENOMEM
from functools import partial
from random import Random
from typing import Any

import pytest
from node_disk import NodeDisk, append, node_disk

from penstock.protocol.errors import CorruptData
from penstock.storage.directories.flusher import Flusher
from penstock.storage.disk.rules.disk_errors import SyncError, is_passing
from penstock.storage.log.log import Log
from penstock.storage.log.recovery_point import Syncable


def started(node: NodeDisk) -> Flusher:
    node.start()
    return Flusher(node.loop)


def waiter(heard: list[Any], name: str) -> Callable[[OSError | None], None]:
    return lambda error: heard.append((name, error))


def test_requests_of_one_turn_are_one_round_and_each_file_is_synced_once() -> None:
    with node_disk() as node:
        flusher = started(node)
        flights, planes = node.log("flights"), node.log("planes")
        for log in (flights, planes):
            append(log)
            log.flush()
        heard: list[object] = []
        for _ in range(3):
            for log in (flights, planes):
                append(log)
                flusher.request(log, log.log_end_offset, waiter(heard, log.name))
        jobs, syncs = node.loop.job_count, node.files.operation_counts["sync"]
        assert heard == []
        node.loop.run(flusher.drain())
        assert node.loop.job_count == jobs + 1
        assert node.files.operation_counts["sync"] == syncs + 2
        assert (flights.recovery_point, planes.recovery_point) == (4, 4)
        assert heard == [("flights-0", None)] * 3 + [("planes-0", None)] * 3
        statistics = flusher.statistics()
        assert (statistics.request_count, statistics.round_count, statistics.sync_count) == (6, 1, 2)


def test_requests_that_come_during_a_round_are_the_next_round() -> None:
    with node_disk() as node:
        flusher = started(node)
        log = node.log("flights")
        append(log)
        heard: list[object] = []

        def on_first(error: OSError | None) -> None:
            heard.append(error)
            assert log.recovery_point == 1, "the recovery point moved before the call"

        async def run() -> None:
            flusher.request(log, 1, on_first)
            await asyncio.sleep(0)
            for _ in range(5):
                append(log)
                flusher.request(log, log.log_end_offset, waiter(heard, "later"))
            await flusher.drain()

        node.loop.run(run())
        assert heard == [None] + [("later", None)] * 5
        assert log.recovery_point == 6
        assert flusher.statistics().round_count == 2


def test_each_log_directory_has_a_line_of_its_own() -> None:
    with node_disk("/a", "/b") as node:
        flusher = started(node)
        jobs = node.loop.job_count
        heard: list[object] = []
        for topic in ("flights", "planes"):
            log = node.log(topic)
            append(log)
            flusher.request(log, 1, waiter(heard, topic))
        node.loop.run(flusher.drain())
        assert node.loop.job_count == jobs + 2


def test_error_is_told_to_those_it_concerns_and_moves_no_recovery_point() -> None:
    with node_disk() as node:
        flusher = started(node)
        bad, good = node.log("bad"), node.log("good")
        heard: dict[str, OSError | None] = {}
        for log in (bad, good):
            append(log)
            flusher.request(log, 1, partial(heard.__setitem__, log.topic))
        node.files.fail("sync", under="/data/bad-0")
        node.loop.run(flusher.drain())
        assert isinstance(heard["bad"], OSError)
        assert heard["good"] is None
        assert (bad.recovery_point, good.recovery_point) == (0, 1)


def test_a_failed_sync_is_not_tried_again_for_those_who_asked_meanwhile() -> None:
    with node_disk() as node:
        flusher = started(node)
        bad, good = node.log("bad"), node.log("good")
        heard: list[tuple[str, OSError | None]] = []
        for log in (bad, good):
            append(log)
        node.files.fail("sync", under="/data/bad-0", count=2)

        async def run() -> None:
            flusher.request(bad, 1, waiter(heard, "first"))
            await asyncio.sleep(0)
            for log in (bad, good):
                append(log)
                flusher.request(log, log.log_end_offset, waiter(heard, log.topic))
            await flusher.drain()

        node.loop.run(run())
        assert node.files.is_to_fail, "the second sync that would fail did not come"
        assert [name for name, error in heard if isinstance(error, SyncError)] == ["first", "bad"]
        assert ("good", None) in heard
        assert (bad.recovery_point, good.recovery_point) == (0, 2)


def test_log_that_cannot_say_what_to_sync_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with node_disk() as node:
        flusher = started(node)
        flights, planes = node.log("flights"), node.log("planes")
        append(flights)
        append(planes)
        name_files = Log.files_to_sync

        def files_to_sync(log: Log, end_offset: int) -> Sequence[Syncable]:
            if log is flights:
                raise CorruptData("an index is not sorted")
            return name_files(log, end_offset)

        monkeypatch.setattr(Log, "files_to_sync", files_to_sync)
        heard: list[tuple[str, str]] = []
        for log in (flights, planes):
            flusher.request(log, 1, partial(lambda name, error: heard.append((name, str(error))), log.name))
        node.loop.run(flusher.drain())
        assert heard == [("flights-0", "[Errno 5] an index is not sorted"), ("planes-0", "None")]
        assert planes.recovery_point == 1


@pytest.mark.parametrize(
    ("failure", "kind", "number"),
    [(MemoryError(), OSError, ENOMEM), (KeyError("a defect"), SyncError, EIO)],
)
@pytest.mark.parametrize("place", ["files_to_sync", "sync"])
def test_unexpected_failure_of_one_log_is_told_and_ends_no_round(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, kind: type[OSError], number: int, place: str
) -> None:
    with node_disk() as node:
        flusher = started(node)
        flights, planes = node.log("flights"), node.log("planes")
        name_files = Log.files_to_sync

        class Failing:
            def sync(self) -> None:
                raise failure

        def files_to_sync(log: Log, end_offset: int) -> Sequence[Syncable]:
            if log is not flights:
                return name_files(log, end_offset)
            if place == "sync":
                return [Failing()]
            raise failure

        heard: list[object] = []
        for log in (flights, planes):
            append(log)
        with monkeypatch.context() as patches:
            patches.setattr(Log, "files_to_sync", files_to_sync)
            for log in (flights, planes):
                flusher.request(log, 1, heard.append)
            node.loop.run(flusher.drain())
        first, second = heard
        assert isinstance(first, kind)
        assert first.errno == number
        assert second is None
        flusher.request(flights, 1, heard.append)
        node.loop.run(flusher.drain())
        assert heard[2:] == [None]


def test_sync_for_which_no_thread_can_be_started_is_refused_and_the_next_one_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with node_disk() as node:
        flusher = started(node)
        log = node.log("flights")
        append(log)
        heard: list[OSError | None] = []

        def refuse(*_: object) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patches:
            patches.setattr(node.loop, "run_in_executor", refuse)
            flusher.request(log, 1, heard.append)
            node.loop.run(flusher.drain())
        assert heard[0] is not None
        assert is_passing(heard[0])
        assert log.recovery_point == 0
        flusher.request(log, 1, heard.append)
        node.loop.run(flusher.drain())
        assert heard[1] is None
        assert log.recovery_point == 1


def test_one_that_fails_when_it_is_told_keeps_the_others_of_the_round_from_nothing() -> None:
    with node_disk() as node:
        flusher = started(node)
        heard: list[object] = []

        def fail(_: OSError | None) -> None:
            raise KeyError("a defect")

        for topic, on_flushed in (("flights", fail), ("planes", heard.append)):
            append(node.log(topic))
            flusher.request(node.log(topic), 1, on_flushed)
        node.loop.run(flusher.drain())
        assert heard == [None]


def test_log_that_is_deleted_meanwhile_says_nothing_about_the_disk() -> None:
    with node_disk() as node:
        flusher = started(node)
        log = node.log("flights")
        append(log)
        heard: list[object] = []

        async def run() -> None:
            flusher.request(log, 1, waiter(heard, "flights"))
            await asyncio.sleep(0)
            node.manager.delete("flights", 0)
            await flusher.drain()

        node.loop.run(run())
        assert heard == [("flights", None)]
        assert node.failures == []


def test_synced_records_survive_and_others_need_not() -> None:
    with node_disk() as node:
        flusher = started(node)
        log = node.log("flights")
        append(log, 3)
        heard: list[object] = []
        flusher.request(log, 3, waiter(heard, "flights"))
        node.loop.run(flusher.drain())
        node.files.crash(Random(3))
        node.start()
        assert node.log("flights").log_end_offset == 3
