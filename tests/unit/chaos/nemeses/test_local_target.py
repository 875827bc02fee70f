"""A local cluster as the target of a nemesis: what is done to its disks."""

from __future__ import annotations

from pathlib import Path
from random import Random

from penstock.chaos.faults.node_faults import NodeFaults, synced_path
from penstock.chaos.faults.synced_ends import SyncedEnds
from penstock.chaos.nemeses.fault import EmptiedDisk, PowerLoss
from penstock.chaos.nemeses.local_target import LocalTarget
from penstock.local.cluster import LocalCluster


def test_what_is_written_after_a_disk_was_emptied_is_not_synced_by_what_was_before(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path / "cluster", node_count=3)
    faults = NodeFaults(cluster.nodes[1])
    target = LocalTarget(cluster, ["t"], {1: faults})
    log = cluster.nodes[1].data / "t-0" / "0.log"
    for synced in (b"synced", b"less"):
        log.parent.mkdir(parents=True)
        log.write_bytes(synced + b" and not")
        SyncedEnds(synced_path(faults.orders_path)).note_synced(str(log), len(synced))
        assert target.damage(1, PowerLoss(), Random(1)) == {"dropped": {"t-0/0.log": len(b" and not")}}
        assert target.damage(1, EmptiedDisk(), Random(1)) == {}
        assert not cluster.nodes[1].data.exists()
        assert target.damage(1, PowerLoss(), Random(1)) == {"dropped": {}}
