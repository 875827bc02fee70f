"""The matrix of runs: every workload under every mix of faults, on three nodes and on five."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Final

from msgspec import Struct

from ..faults.kinds import Breaker
from ..histories.run_folder import RunRecord
from ..workloads.catalogue import WORKLOADS

SECONDS: Final = 120.0
SIZES: Final = (3, 5)
MIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "nothing": (),
    "links": ("partition", "slow-link", "bandwidth", "packet-loss", "connection-resets"),
    "processes": ("kill", "pause", "stop", "restart"),
    "leaders": ("partition:leaders", "partition:client-from-leader", "kill:leaders", "pause:leaders", "moved-leader"),
    "controllers": ("partition:controllers", "kill:controllers", "pause:controllers", "quorum-transfer"),
    "pause-and-kill": ("pause", "kill"),
    "membership": ("kill", "join"),
    "disks": ("slow-disk", "disk-full", "disk-error", "failed-read", "no-descriptors"),
    "damage": ("power-loss", "bit-flip", "truncation", "partition:one"),
    "clocks": ("clock-bump", "clock-strobe", "partition", "kill:one"),
    "operators": ("reassignment", "cancelled-reassignment", "preferred-election", "drain", "topics", "rolling-restart"),
}
"""Names of faults as `penstock chaos run --nemesis` takes them. Two are those in which Jepsen's analysis of another
broker found lost and repeated records (Redpanda 21.10.1: `pause,kill` and `kill,membership`)."""


_OF_LOGS: Final = frozenset({"slow-disk", "disk-error", "failed-read", "no-descriptors", "bit-flip", "truncation"})


class Cell(Struct, frozen=True):
    """One run of the matrix."""

    workload: str
    mix: str
    nodes: int
    faults: tuple[str, ...]

    @property
    def name(self) -> str:
        """A word, as of a folder."""
        return f"{self.workload}-{self.mix}-{self.nodes}"

    def record(self, *, seed: int, seconds: float, cluster: str, links: Breaker) -> RunRecord:
        return RunRecord(
            workload=self.workload, nemeses=self.faults, seconds=seconds, nodes=self.nodes, seed=seed, cluster=cluster,
            version="", links=links,
        )  # fmt: skip


def cells(lacking: Container[str] = ()) -> Sequence[Cell]:
    """Every workload under every mix; each on one of the two sizes in turn, so that a workload and a mix see both.

    For a cluster that cannot have the kinds of `lacking`, and for a workload without records, mixes have what is left
    of them.
    """
    return [
        Cell(workload, mix, SIZES[(row + column) % len(SIZES)], faults)
        for row, workload in enumerate(WORKLOADS)
        for column, (mix, names) in enumerate(MIXES.items())
        if (faults := tuple(name for name in names if _may_hit(name, workload, lacking))) or not names
    ]


def _may_hit(name: str, workload: str, lacking: Container[str]) -> bool:
    kind = name.partition(":")[0]
    return kind not in lacking and (WORKLOADS[workload].has_records or kind not in _OF_LOGS)
