"""Nodes that are processes of this machine, whatever broker they are: what of a target needs nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from ...local.errors import ClusterError
from ...local.local_node import LocalNode
from ...local.readiness import wait_ready
from ..faults.damaged_files import cut_end, flip_bit, has_log
from ..faults.orders import DiskOperation, Orders
from ..links.link import CutMode, Link
from .fault import BitFlip, DamageFault, Truncation
from .target import NodeState

# A stop in good order takes longer where no controller answers; then the node is killed.
STOP_S: Final = 60.0


class ProcessTarget:
    """Its nodes are killed, stopped, paused and started; the files of a node that is down can be damaged.

    Everything else that a nemesis may ask for is refused with a sentence. `topics` are those under load.
    """

    def __init__(self, nodes: Mapping[int, LocalNode], topics: Sequence[str]) -> None:
        self._nodes = nodes
        self._topics = tuple(topics)

    # Links.

    def cut(self, links: Sequence[Link], mode: CutMode) -> None:  # noqa: ARG002 - as every target
        raise self._no_links()

    def slow(self, links: Sequence[Link], latency_ms: int, jitter_ms: int) -> None:  # noqa: ARG002
        raise self._no_links()

    def limit(self, links: Sequence[Link], kilobytes_s: int) -> None:  # noqa: ARG002
        raise self._no_links()

    def lose(self, links: Sequence[Link], percent: int) -> None:  # noqa: ARG002
        raise self._no_links()

    def lost_packets(self, links: Sequence[Link]) -> Mapping[Link, int]:  # noqa: ARG002
        raise self._no_links()

    def reset(self, links: Sequence[Link]) -> None:  # noqa: ARG002
        raise self._no_links()

    def heal(self, links: Sequence[Link]) -> None:  # noqa: ARG002
        raise self._no_links()

    def round_trips_ms(self, links: Sequence[Link]) -> Mapping[Link, float | None]:  # noqa: ARG002
        raise self._no_links()

    def is_reset(self, link: Link) -> bool:  # noqa: ARG002
        raise self._no_links()

    # Processes.

    def state(self, node: int) -> NodeState:
        one = self._nodes.get(node)
        if one is None or not one.is_running:
            return "down"
        return "paused" if one.is_paused else "up"

    def kill(self, node: int) -> None:
        self._nodes[node].kill()

    def pause(self, node: int) -> None:
        self._nodes[node].pause()

    def resume(self, node: int) -> None:
        self._nodes[node].resume()

    def stop(self, node: int) -> None:
        self._nodes[node].stop(timeout_s=STOP_S)

    def begin_start(self, node: int) -> None:
        self._nodes[node].start()

    def wait_ready(self, nodes: Sequence[int], *, timeout_s: float) -> None:
        wait_ready(tuple(self._nodes[node] for node in nodes), timeout_s=timeout_s)

    # Disks and clocks.

    def order(self, node: int, orders: Orders) -> None:  # noqa: ARG002
        raise self._no_orders(node)

    def fired(self, node: int) -> Counter[DiskOperation]:
        raise self._no_orders(node)

    def clock_steps(self, node: int) -> int:
        raise self._no_orders(node)

    def can_be_damaged(self, node: int, fault: DamageFault) -> bool:
        # What loses its power, or its disk, needs nothing on it.
        return not isinstance(fault, (BitFlip, Truncation)) or has_log(self._nodes[node].data, self._topics)

    def damage(self, node: int, fault: DamageFault, random: Random) -> Mapping[str, Any]:
        data = self._nodes[node].data
        match fault:
            case BitFlip():
                return flip_bit(data, self._topics, random)
            case Truncation():
                return cut_end(data, self._topics, fault.size_bytes)
            case _:
                raise ClusterError(f"the disk of node {node} cannot have {fault.kind}")

    # What an operator does.

    def admins(self) -> Sequence[str]:
        return ()

    def topics(self) -> Sequence[str]:
        return self._topics

    def join(self) -> int:
        raise ClusterError("no broker can join this cluster")

    def leave(self, node: int) -> None:
        raise ClusterError(f"node {node} cannot leave this cluster")

    def _no_links(self) -> ClusterError:
        return ClusterError("the links of this cluster go through neither proxies nor namespaces, and cannot be broken")

    def _no_orders(self, node: int) -> ClusterError:
        return ClusterError(f"node {node} was not started to obey orders: it has no NodeFaults")
