"""A cluster whose every link can be broken as the target of a nemesis: all kinds of faults that its links can have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...local.errors import ClusterError
from ..faults.kinds import KINDS
from ..links.link import CutMode, Link
from ..links.linked_cluster import LinkedCluster
from .local_target import LocalTarget
from .process_target import STOP_S

# A node answers in milliseconds, a link that is slowed as much as a drawn schedule has it within a second.
_ANSWER_S: Final = 2.0
_SILENT_S: Final = 0.7
_RESET_S: Final = 2.0
_BURST: Final = 10
_BURST_S: Final = 0.3


class LinkedTarget(LocalTarget):
    """`topics` are those under load. Disks and clocks have faults in a cluster with `obeys_orders`, and brokers join
    one with `spare_nodes`. What asks it has to be where the cluster's nodes are reached (`LinkedCluster.joined`)."""

    def __init__(self, cluster: LinkedCluster, topics: Sequence[str]) -> None:
        faults = {node: cluster.node_faults(node) for node in cluster.nodes} if cluster.obeys_orders else {}
        super().__init__(cluster.cluster, topics, faults)
        self._linked = cluster

    @property
    def kinds(self) -> frozenset[str]:
        links = {kind.name for kind in KINDS.values() if kind.is_real and kind.group == "links"}
        links -= self._linked.lacks().keys()
        return (super().kinds - {"join"}) | links | ({"join"} if self._linked.spare_node_count else set())

    # Links.

    def cut(self, links: Sequence[Link], mode: CutMode) -> None:
        self._linked.cut(links, mode)

    def slow(self, links: Sequence[Link], latency_ms: int, jitter_ms: int) -> None:
        self._linked.slow(links, latency_ms, jitter_ms)

    def limit(self, links: Sequence[Link], kilobytes_s: int) -> None:
        self._linked.limit(links, kilobytes_s)

    def lose(self, links: Sequence[Link], percent: int) -> None:
        self._linked.lose(links, percent)

    def lost_packets(self, links: Sequence[Link]) -> Mapping[Link, int]:
        """After so many requests on each, all at once, that chance hardly spares all of their packets."""
        self._linked.round_trips_ms([*links] * _BURST, timeout_s=_BURST_S)
        return self._linked.lost_packets(links)

    def reset(self, links: Sequence[Link]) -> None:
        self._linked.reset(links)

    def heal(self, links: Sequence[Link]) -> None:
        self._linked.heal(links)

    def round_trips_ms(self, links: Sequence[Link]) -> Mapping[Link, float | None]:
        """A link leads to each listener of its target; all are asked at the same time."""
        # Of links that are cut nothing is to come: it is waited for no longer than it takes to be sure.
        timeout_s = _SILENT_S if all(map(self._linked.is_cut, links)) else _ANSWER_S
        told = self._linked.round_trips_ms(links, timeout_s=timeout_s)
        return {link: self._trip(link, told[link]) for link in links}

    def is_reset(self, link: Link) -> bool:
        try:
            opened = self._linked.dial(link, timeout_s=_RESET_S)
        except OSError as error:
            raise ClusterError(f"{link} takes no connection that could be reset: {error}") from error
        with opened as connection:
            self._linked.reset([link])
            try:
                # The node says nothing before it is asked.
                return connection.recv(1) == b""
            except ConnectionError:
                return True
            except TimeoutError:
                return False

    # Processes.

    def kill(self, node: int) -> None:
        self._linked.kill(node)

    def pause(self, node: int) -> None:
        self._linked.pause(node)

    def resume(self, node: int) -> None:
        self._linked.resume(node)

    def stop(self, node: int) -> None:
        self._linked.stop(node, timeout_s=STOP_S)

    def begin_start(self, node: int) -> None:
        self._linked.begin_start(node)

    # What an operator does.

    def join(self) -> int:
        node = self._linked.join()
        if self._linked.obeys_orders:
            self._faults[node] = self._linked.node_faults(node)
        return node

    def leave(self, node: int) -> None:
        self.stop(node)
        self._linked.cluster.forget_node(node)

    def _slots(self) -> tuple[str, ...]:
        return self._linked.slots

    def _trip(self, link: Link, trips: Sequence[float | None]) -> float | None:
        """The shortest; one answer shows that a cut does not hold, one that is missing that a link does not work."""
        answered = [trip for trip in trips if trip is not None]
        if len(answered) == len(trips) or (answered and self._linked.is_cut(link)):
            return min(answered)
        return None
