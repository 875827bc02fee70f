"""What a reader of old records costs those who write and read at the end.

A topic is filled, its oldest records leave the page cache (by `fdatasync` and POSIX_FADV_DONTNEED of its closed files),
and single records are sent to another topic at a steady rate, each awaited by its producer and by a reader at the
end: first alone, then beside a process that reads the large topic from its start as fast as it can. Records count from
the moment at which they were due, so one that is held up does not hide it.

The large topic is on the node's disk, or all but its last segments are only in its tier, a folder on the same disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from ...client import clock
from ...client.client_log import SILENT_LOGGER
from ...local.local_node import LocalNode
from ..payloads import POOL_SIZE, values
from ..steady import DEADLINE_S, VALUE_BYTES, WARM_UP_S, SteadyRecords
from ..target import NO_SETTINGS, Target
from ..topics import TIMEOUT_S, admin
from ..usage import measured

_SEGMENT_BYTES: Final = 64 * 1024 * 1024
_SMALLEST_SEGMENT_BYTES: Final = 1024 * 1024
_LARGE: Final = "large"
_STEADY: Final = "steady"
_PARTITIONS: Final = 4
_SEGMENTS: Final = f"{_LARGE}-*/*.log"
_CHUNK: Final = 10_000
_TIER_DEADLINE_S: Final = 600.0
_TIERED_SETTINGS: Final = {
    "remote.log.storage.system.enable": "true",
    # So that the disk is left for the tier in seconds.
    "remote.log.manager.task.interval.ms": "1000",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "0",
}
_TIERED_TOPIC: Final = {"remote.storage.enable": "true", "local.retention.bytes": "1"}


def cold_reader(
    target: Target, *, size_gb: float, seconds: float, is_tiered: bool = False
) -> Mapping[str, float | None]:
    """`size_gb` are read as far as that goes in so many seconds; with `is_tiered` from the tier."""
    with ExitStack() as stack:
        tier = Path(stack.enter_context(TemporaryDirectory(prefix="penstock-bench-tier-"))) if is_tiered else None
        settings = NO_SETTINGS if tier is None else {**_TIERED_SETTINGS, "remote.log.storage.url": tier.as_uri()}
        running, node = stack.enter_context(target.fresh_running(settings))
        _fill(running, int(size_gb * 1e9), NO_SETTINGS if tier is None else _TIERED_TOPIC)
        if tier is not None:
            _wait_until_tiered(running, node)
        steady = SteadyRecords(running, _STEADY)
        try:
            steady.run(WARM_UP_S)
            alone = steady.run(seconds)
            _drop_from_cache(node.data.rglob(_SEGMENTS) if tier is None else tier.rglob("*"))
            reader = _begin_reading(node, seconds)
            with measured(running.pids) as usage:
                beside = steady.run(seconds)
            read_bytes = int(reader.communicate(timeout=DEADLINE_S)[0])
        finally:
            steady.close()
    assert usage.broker_cpu_s is not None, "it runs here"
    found = {
        f"{name}_p99_{when}_ms": times[f"{name}_p99_ms"]
        for when, times in (("alone", alone), ("beside", beside))
        for name in ("acknowledged", "end_to_end")
    }
    return {
        **found,
        **{
            f"{name}_p99_ratio": (found[f"{name}_p99_beside_ms"] or 0) / (found[f"{name}_p99_alone_ms"] or 1)
            for name in ("acknowledged", "end_to_end")
        },
        "cold_mb_per_s": read_bytes / usage.seconds / 1e6,
        "cold_broker_cores": usage.broker_cpu_s / usage.seconds,
        "others_cores": usage.others_cores,
    }


def _fill(target: Target, size_bytes: int, settings: Mapping[str, str]) -> None:
    client = admin(target.bootstrap)
    segment_bytes = min(max(size_bytes // _PARTITIONS // 4, _SMALLEST_SEGMENT_BYTES), _SEGMENT_BYTES)
    config = {"segment.bytes": str(segment_bytes), "retention.ms": "-1", **settings}
    topics = [NewTopic(_LARGE, _PARTITIONS, 1, config=config), NewTopic(_STEADY, 1, 1)]
    for answer in client.create_topics(topics, operation_timeout=TIMEOUT_S).values():
        answer.result(TIMEOUT_S)
    failures: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": target.bootstrap,
            "acks": "all",
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "delivery.report.only.error": True,
        },
        logger=SILENT_LOGGER,
    )
    pool = values(VALUE_BYTES)
    messages = [{"value": pool[number % POOL_SIZE], "partition": number % _PARTITIONS} for number in range(_CHUNK)]
    for _ in range(size_bytes // VALUE_BYTES // _CHUNK + 1):
        while len(producer) > 5 * _CHUNK:
            producer.poll(0.01)
        producer.produce_batch(_LARGE, messages, on_delivery=lambda error, _: failures.append(error))
    if producer.flush(DEADLINE_S) or failures:
        raise click.ClickException(f"{target.name}: the topic was not filled: {failures[:1]}")


def _begin_reading(node: LocalNode, seconds: float) -> subprocess.Popen[str]:
    command = (sys.executable, "-P", "-m", "penstock.bench.cold_read", node.host, str(node.port), _LARGE)
    return subprocess.Popen((*command, str(_PARTITIONS), str(seconds)), stdout=subprocess.PIPE, text=True)


def _wait_until_tiered(target: Target, node: LocalNode) -> None:
    """Until the node's own disk has the active segment of each partition, and no other."""
    deadline_s = clock.monotonic_s() + _TIER_DEADLINE_S
    while sum(1 for _ in node.data.rglob(_SEGMENTS)) > _PARTITIONS:
        if clock.monotonic_s() > deadline_s:
            raise click.ClickException(f"{target.name}: the topic was not in the tier within {_TIER_DEADLINE_S:g} s.")
        clock.pause(0.1)


def _drop_from_cache(paths: Iterable[Path]) -> None:
    for path in paths:
        if not path.is_file():
            continue
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fdatasync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
