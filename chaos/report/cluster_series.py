"""What the cluster was, over time, from its samples: nodes, controller, leaders, ISRs, epochs, high watermarks. Pure.

A sample says what was so when it was taken; between two samples nothing is known, so a change lies somewhere between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from ..histories.cluster_sample import ClusterSample, PartitionSample
from .client_series import BUCKETS_MAX, Series

UNKNOWN: Final = "?"

_V = TypeVar("_V")


class Run(Struct, frozen=True):
    """A value that stayed the same from `begin_ns` to `end_ns`."""

    begin_ns: int
    end_ns: int
    value: str


def node_runs(samples: Sequence[ClusterSample], end_ns: int) -> dict[str, list[Run]]:
    """By node: `up`, `paused` or `down`."""
    nodes = sorted({node for sample in samples for node in sample.nodes}, key=_number)

    def state(node: str) -> Callable[[ClusterSample], str]:
        return lambda sample: sample.nodes.get(node, UNKNOWN)

    return {node: _runs(samples, end_ns, state(node)) for node in nodes}


def controller_runs(samples: Sequence[ClusterSample], end_ns: int) -> list[Run]:
    """The node that is the active controller."""
    return _runs(samples, end_ns, lambda sample: UNKNOWN if sample.controller is None else str(sample.controller))


def partition_keys(samples: Sequence[ClusterSample]) -> list[str]:
    keys = {key for sample in samples for key in sample.partitions}
    return sorted(keys, key=lambda key: (key.rpartition("-")[0], _number(key.rpartition("-")[2])))


def leader_runs(samples: Sequence[ClusterSample], end_ns: int, key: str) -> list[Run]:
    """The node that leads; `none` where there was no leader."""

    def leader(partition: PartitionSample) -> str:
        return "none" if partition.leader is None else str(partition.leader)

    return _runs(samples, end_ns, _of(key, leader))


def isr_runs(samples: Sequence[ClusterSample], end_ns: int, key: str) -> list[Run]:
    """How many replicas are in sync, and which: "2: 1, 3"."""

    def isr(partition: PartitionSample) -> str:
        return f"{len(partition.isr)}: {', '.join(map(str, sorted(partition.isr)))}"

    return _runs(samples, end_ns, _of(key, isr))


def replica_count(samples: Sequence[ClusterSample], key: str) -> int:
    """The most replicas that were in sync at once."""
    return max((len(sample.partitions[key].isr) for sample in samples if key in sample.partitions), default=0)


def epochs(samples: Sequence[ClusterSample], key: str) -> Series:
    return _series(key, samples, key, lambda partition: partition.epoch)


def high_watermarks(samples: Sequence[ClusterSample], key: str) -> Series:
    return _series(key, samples, key, lambda partition: partition.hw)


def unreplicated(samples: Sequence[ClusterSample], key: str) -> Series:
    """How far the leader's log end is beyond the high watermark."""

    def gap(partition: PartitionSample) -> int | None:
        end = partition.ends.get(str(partition.leader))
        return None if end is None or partition.hw is None else max(0, end - partition.hw)

    return _series(key, samples, key, gap)


def leader_changes(samples: Sequence[ClusterSample]) -> int:
    """Of all partitions together, by their epochs."""
    changes = 0
    for key in partition_keys(samples):
        seen = [sample.partitions[key].epoch for sample in samples if key in sample.partitions]
        changes += max(seen) - seen[0]
    return changes


def leaderless_ns(samples: Sequence[ClusterSample], end_ns: int) -> int:
    """The longest time that a partition had no leader, as far as samples show it."""
    spans = (
        run.end_ns - run.begin_ns
        for key in partition_keys(samples)
        for run in leader_runs(samples, end_ns, key)
        if run.value == "none"
    )
    return max(spans, default=0)


def _of(key: str, value: Callable[[PartitionSample], str]) -> Callable[[ClusterSample], str]:
    def of(sample: ClusterSample) -> str:
        partition = sample.partitions.get(key)
        return UNKNOWN if partition is None else value(partition)

    return of


def _runs(samples: Sequence[ClusterSample], end_ns: int, value: Callable[[ClusterSample], str]) -> list[Run]:
    runs: list[Run] = []
    for sample in samples:
        now = value(sample)
        if runs and runs[-1].value == now:
            continue
        if runs:
            runs[-1] = Run(runs[-1].begin_ns, sample.time, runs[-1].value)
        runs.append(Run(sample.time, max(end_ns, sample.time), now))
    return runs


def _series(
    name: str, samples: Sequence[ClusterSample], key: str, value: Callable[[PartitionSample], int | None]
) -> Series:
    """Only where the value changes, and at most about two points for each bucket."""
    times_ns: list[int] = []
    values: list[float | None] = []
    for sample in _thinned(samples):
        partition = sample.partitions.get(key)
        now = None if partition is None else value(partition)
        if not values or values[-1] != now:
            times_ns.append(sample.time)
            values.append(now)
    return Series(name, times_ns, values)


def _thinned(samples: Sequence[_V]) -> Iterable[_V]:
    step = max(1, len(samples) // (2 * BUCKETS_MAX))
    return samples[::step]


def _number(text: str) -> tuple[int, str]:
    return (int(text), "") if text.isdecimal() else (1 << 60, text)
