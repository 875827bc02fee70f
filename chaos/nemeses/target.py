"""What a nemesis asks of a cluster. Penstock's own clusters do all of it, others (Apache Kafka, a cluster behind an
address) a part: `kinds` says which faults they can have, and nothing else is asked of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Literal, Protocol, TypeAlias

from ..faults.orders import DiskOperation, Orders
from ..links.link import CutMode, Link
from .fault import DamageFault
from .selectors import View

NodeState: TypeAlias = Literal["up", "paused", "down"]


class Target(Protocol):
    """Every method is called by the nemesis' one thread; errors are ClusterError."""

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of faults (`faults/kinds.py`) that it can have."""

    def view(self, *, with_leaders: bool = True) -> View:
        """Nodes, clients' slots and, unless they are not wanted, leaders and the active controller now."""

    # Links.

    def cut(self, links: Sequence[Link], mode: CutMode) -> None: ...
    def slow(self, links: Sequence[Link], latency_ms: int, jitter_ms: int) -> None: ...
    def limit(self, links: Sequence[Link], kilobytes_s: int) -> None: ...
    def lose(self, links: Sequence[Link], percent: int) -> None: ...
    def reset(self, links: Sequence[Link]) -> None: ...
    def heal(self, links: Sequence[Link]) -> None: ...

    def round_trips_ms(self, links: Sequence[Link]) -> Mapping[Link, float | None]:
        """Of one small request on each of the links; None where it is not answered. Asked of links that carry nothing,
        one that is answered by any way counts, as it shows that the cut does not hold."""

    def lost_packets(self, links: Sequence[Link]) -> Mapping[Link, int]:
        """How many packets were lost on each since `lose`, a burst of small requests on each among them."""

    def is_reset(self, link: Link) -> bool:
        """Resets the link; whether a connection that was open on it is broken by that."""

    # Processes.

    def state(self, node: int) -> NodeState: ...
    def kill(self, node: int) -> None: ...
    def pause(self, node: int) -> None: ...
    def resume(self, node: int) -> None: ...

    def stop(self, node: int) -> None:
        """SIGTERM, and waits for the end."""

    def begin_start(self, node: int) -> None:
        """Starts the process and returns at once."""

    def wait_ready(self, nodes: Sequence[int], *, timeout_s: float) -> None:
        """Until they serve clients and know all others. Raises ClusterError."""

    def is_in_sync(self) -> bool:
        """Whether every replica of the topics under load is; False when no node answers."""

    # Disks and clocks.

    def order(self, node: int, orders: Orders) -> None:
        """From now on this is wrong with the node's disk and clock, and nothing else."""

    def fired(self, node: int) -> Counter[DiskOperation]:
        """How often calls of the disk were hit by the current orders."""

    def clock_steps(self, node: int) -> int:
        """How often the node has met another offset of its clock, since it was first started."""

    def can_be_damaged(self, node: int, fault: DamageFault) -> bool:
        """Whether there is now what the fault would damage."""

    def damage(self, node: int, fault: DamageFault, random: Random) -> Mapping[str, Any]:
        """Does to the disk of a node that is down what the fault says; what it did, as data. Raises ClusterError when
        there was nothing to damage."""

    # What an operator does.

    def admins(self) -> Sequence[str]:
        """Addresses by HTTP of nodes that run."""

    def topics(self) -> Sequence[str]:
        """Those under load."""

    def join(self) -> int:
        """Starts one more broker; its id."""

    def leave(self, node: int) -> None:
        """Takes out a broker that has no replicas any more, and stops it."""
