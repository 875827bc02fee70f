"""The clusters of one pytest process, by what tests ask for: started by the first that asks, kept for the others."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..faults.preloaded_nodes import preload

if TYPE_CHECKING:
    from .chaos_cluster import ChaosCluster

CLUSTERS_MAX: Final = 3
"""That run at a time: each has as many processes as nodes. The one that was not asked for longest is closed."""


class SessionClusters:
    """`folder` takes the data and logs of all; each pytest-xdist worker has its own, and ports that are free."""

    def __init__(self, folder: Path) -> None:
        # First of all: it loads the code of nodes while this process loads that of the cluster.
        self._preloaded = preload()
        self._folder = folder
        self._clusters: dict[str, ChaosCluster] = {}
        self._started = 0

    def of(self, *, nodes: int = 3, config: Mapping[str, object] | None = None, client_slots: int = 1) -> ChaosCluster:
        """Running. Raises ClusterError."""
        from .chaos_cluster import ChaosCluster

        key = repr((nodes, client_slots, sorted((config or {}).items())))
        cluster = self._clusters.pop(key, None)
        if cluster is None:
            while len(self._clusters) >= CLUSTERS_MAX:
                self._clusters.pop(next(iter(self._clusters))).close()
            self._started += 1
            folder = self._folder / str(self._started)
            cluster = ChaosCluster(
                nodes=nodes, config=config, client_slots=client_slots, folder=folder, preloaded=self._preloaded
            )
            cluster.__enter__()
        self._clusters[key] = cluster
        return cluster

    def drop(self, cluster: ChaosCluster) -> None:
        """It could not be healed: the next test that asks gets a new one."""
        self._clusters = {key: one for key, one in self._clusters.items() if one is not cluster}
        cluster.close()

    def close(self) -> None:
        with ExitStack() as closing:
            closing.callback(self._preloaded.end)
            while self._clusters:
                closing.callback(self._clusters.popitem()[1].close)
