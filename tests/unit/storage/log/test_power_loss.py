"""What the random lives of `test_log_properties.py` found, each as the shortest life that shows it."""

from dataclasses import replace
from errno import ENOSPC
from random import Random
from uuid import UUID

import pytest
from node_disk import NOW_MS, NodeDisk, append, node_disk

from penstock.protocol.batches import iterate_headers
from penstock.storage.directories.rules.checkpoints import RECOVERY_POINTS
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig

SMALL = LogConfig(segment_bytes=160, index_interval_bytes=0, retention_ms=-1)
SEEDS = pytest.mark.parametrize("seed", range(40))


def restarted_without_power(node: NodeDisk, seed: int) -> Log:
    node.files.crash(Random(seed))
    node.start()
    return node.log("flights")


def offsets(log: Log) -> list[int]:
    """Every offset that can be read, each found on its own."""
    found = []
    for offset in range(log.log_start_offset, log.log_end_offset):
        data = log.read(offset, max_bytes=1, end_offset=log.log_end_offset, min_one_batch=True)
        assert data.size > 0, f"nothing at offset {offset} of {log.log_end_offset}"
        found.append(offset)
    return found


@SEEDS
def test_log_has_no_gap_where_an_older_segment_lost_its_end(seed: int) -> None:
    with node_disk() as node:
        node.start()
        node.config = SMALL
        append(node.log("flights"), 7)
        log = restarted_without_power(node, seed)
        assert offsets(log) == list(range(log.log_end_offset))


@SEEDS
def test_truncation_is_not_undone(seed: int) -> None:
    with node_disk() as node:
        node.start()
        log = node.log("flights")
        append(log, 6)
        log.flush()
        node.manager.truncate({log: 2})
        append(log)
        assert restarted_without_power(node, seed).log_end_offset in (2, 3)


@SEEDS
def test_segment_that_rolls_right_at_the_recovery_point_keeps_its_indexes(seed: int) -> None:
    with node_disk() as node:
        node.start()
        node.config = SMALL
        log = node.log("flights")
        append(log, 2, timestamp_ms=NOW_MS - 1000)
        log.flush()
        node.manager.directories[0].write_offsets("recovery-point-offset-checkpoint", {("flights", 0): 2})
        append(log, 1)
        log = restarted_without_power(node, seed)
        found = log.offset_for_timestamp(NOW_MS - 1000, log.log_end_offset)
        assert found is not None
        assert found.offset == 0


@SEEDS
def test_torn_log_without_indexes_is_cut_though_the_stop_was_clean(seed: int) -> None:
    with node_disk() as node:
        node.start()
        append(node.log("flights"), 3)
        node.stop()
        path = "/data/flights-0/00000000000000000000.log"
        node.files.remove("/data/flights-0/00000000000000000000.timeindex")
        file = node.files.open(path)
        file.truncate(file.size - 1 - seed)
        node.files.write_atomically("/data/recovery-point-offset-checkpoint", b"0\n0\n")
        node.start()
        log = node.log("flights")
        assert (log.log_end_offset, node.files.size(path)) == (2, log.size_bytes)
        append(log)
        assert offsets(log) == [0, 1, 2]


@SEEDS
def test_topic_id_that_was_lost_and_written_again_is_synced_with_the_records(seed: int) -> None:
    with node_disk() as node:
        node.start()
        node.log("flights")
        node.stop()
        node.files.remove("/data/flights-0/partition.metadata")
        node.start()
        append(node.log("flights"))
        node.log("flights").flush()
        log = restarted_without_power(node, seed)
        assert (log.log_end_offset, log.topic_id) == (1, UUID("b2698a74-0e10-8d65-9981-c07acf362664"))


def test_append_that_fails_left_nothing_behind_it() -> None:
    with node_disk() as node:
        node.start()
        node.config = SMALL
        append(node.log("flights"))
        node.stop()
        for operations in range(12):
            node.start()
            log = node.log("flights")
            end_offset = log.log_end_offset
            node.files.fail(skip=operations)
            try:
                append(log)
            except OSError:
                assert log.log_end_offset == end_offset
            node.files.heal()
            append(log)
            assert offsets(log) == list(range(log.log_end_offset))
            node.stop()


@SEEDS
def test_append_undone_on_a_full_disk_does_not_come_back_once_the_log_has_rolled(seed: int) -> None:
    with node_disk() as node:
        node.start()
        node.config = SMALL
        log = node.log("flights")
        append(log)
        log.flush()
        node.files.fail("write", under="/data/flights-0", error=ENOSPC)
        with pytest.raises(OSError, match="ENOSPC"):
            append(log)
        node.config = replace(SMALL, segment_ms=0)
        node.manager.update_config("flights", node.config)
        append(log, timestamp_ms=NOW_MS + 1)
        log.flush()
        assert log.segment_count == 2
        node.manager.directories[0].write_offsets(RECOVERY_POINTS, {("flights", 0): log.recovery_point})
        log = restarted_without_power(node, seed)
        data = log.read(0, max_bytes=1000, end_offset=log.log_end_offset, min_one_batch=True)
        assert [header.base_offset for _, header in iterate_headers(memoryview(data.slices[0].read(0, 1000)))] == [0]
