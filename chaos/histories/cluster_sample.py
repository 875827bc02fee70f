"""What a cluster looked like at one time of a run: who led, who was in sync, how far logs went."""

from __future__ import annotations

from pathlib import Path

import msgspec


class PartitionSample(msgspec.Struct, omit_defaults=True):
    """By the newest metadata among the nodes that answered; `ends` are log end offsets by node.

    `hw` is None where the leader did not answer in time, and `ends` lack the nodes that did not.
    """

    leader: int | None
    epoch: int
    isr: list[int]
    hw: int | None = None
    ends: dict[str, int] = msgspec.field(default_factory=dict)


class ClusterSample(msgspec.Struct):
    """`time` as in the history, in nanoseconds; `nodes` are `up`, `paused` or `down`; keys of partitions as `t-0`."""

    time: int
    controller: int | None
    nodes: dict[str, str]
    partitions: dict[str, PartitionSample]


def read_samples(path: Path) -> list[ClusterSample]:
    """A line that is cut off at the end is left out."""
    decode = msgspec.json.Decoder(ClusterSample).decode
    data = path.read_bytes()
    return [decode(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]
