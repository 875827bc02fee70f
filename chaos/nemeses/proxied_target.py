"""A cluster whose every link goes through a proxy as the target of a nemesis: all kinds of faults."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from typing import Final

from ...local.errors import ClusterError
from ...local.local_node import HOST
from ..faults.kinds import KINDS
from ..links.canary import round_trips_ms
from ..links.link import CutMode, Link
from ..links.proxied_cluster import ProxiedCluster
from .local_target import LocalTarget
from .process_target import STOP_S

# A node answers in milliseconds, a link that is slowed as much as a drawn schedule has it within a second.
_ANSWER_S: Final = 2.0
_SILENT_S: Final = 0.7
_RESET_S: Final = 2.0


class ProxiedTarget(LocalTarget):
    """`topics` are those under load. Disks and clocks have faults in a cluster with `obeys_orders`, and brokers join
    one with `spare_nodes`."""

    def __init__(self, cluster: ProxiedCluster, topics: Sequence[str]) -> None:
        faults = {node: cluster.node_faults(node) for node in cluster.nodes} if cluster.obeys_orders else {}
        super().__init__(cluster.cluster, topics, faults)
        self._proxied = cluster
        self._silent: set[Link] = set()

    @property
    def kinds(self) -> frozenset[str]:
        links = {kind.name for kind in KINDS.values() if kind.is_real and kind.group == "links"}
        return (super().kinds - {"join"}) | links | ({"join"} if self._proxied.spare_node_count else set())

    # Links.

    def cut(self, links: Sequence[Link], mode: CutMode) -> None:
        self._proxied.cut(links, mode)
        self._silent.update(links)

    def slow(self, links: Sequence[Link], latency_ms: int, jitter_ms: int) -> None:
        self._proxied.slow(links, latency_ms, jitter_ms)

    def limit(self, links: Sequence[Link], kilobytes_s: int) -> None:
        self._proxied.limit(links, kilobytes_s)

    def reset(self, links: Sequence[Link]) -> None:
        self._proxied.reset(links)

    def heal(self, links: Sequence[Link]) -> None:
        self._proxied.heal(links)
        self._silent.difference_update(links)

    def round_trips_ms(self, links: Sequence[Link]) -> Mapping[Link, float | None]:
        """A link has a proxy for each listener that it leads to; all are asked at the same time."""
        asked = [(link, (HOST, route.port)) for link in links for route in self._proxied.routes_of(link)]
        if not asked:
            return {}
        # Of links that are cut nothing is to come: it is waited for no longer than it takes to be sure.
        timeout_s = _SILENT_S if self._silent.issuperset(links) else _ANSWER_S
        trips = round_trips_ms(tuple(address for _, address in asked), timeout_s=timeout_s)
        answers: dict[Link, list[float | None]] = {link: [] for link in links}
        for (link, _), trip in zip(asked, trips, strict=True):
            answers[link].append(trip)
        return {link: self._trip(link, told) for link, told in answers.items()}

    def is_reset(self, link: Link) -> bool:
        route = self._proxied.routes_of(link)[0]
        try:
            opened = socket.create_connection((HOST, route.port), timeout=_RESET_S)
        except OSError as error:
            raise ClusterError(f"{link} takes no connection that could be reset: {error}") from error
        with opened as connection:
            self._proxied.reset([link])
            try:
                # The node says nothing before it is asked.
                return connection.recv(1) == b""
            except ConnectionError:
                return True
            except TimeoutError:
                return False

    # Processes: proxies of a node that is down refuse, as it would.

    def kill(self, node: int) -> None:
        self._proxied.kill(node)

    def pause(self, node: int) -> None:
        self._proxied.pause(node)

    def resume(self, node: int) -> None:
        self._proxied.resume(node)

    def stop(self, node: int) -> None:
        self._proxied.stop(node, timeout_s=STOP_S)

    def begin_start(self, node: int) -> None:
        self._proxied.begin_start(node)

    # What an operator does.

    def join(self) -> int:
        node = self._proxied.join()
        if self._proxied.obeys_orders:
            self._faults[node] = self._proxied.node_faults(node)
        return node

    def leave(self, node: int) -> None:
        self.stop(node)
        self._proxied.cluster.forget_node(node)

    def _slots(self) -> tuple[str, ...]:
        return self._proxied.slots

    def _trip(self, link: Link, trips: Sequence[float | None]) -> float | None:
        """The shortest; one answer shows that a cut does not hold, one that is missing that a link does not work."""
        answered = [trip for trip in trips if trip is not None]
        if len(answered) == len(trips) or (answered and link in self._silent):
            return min(answered)
        return None
