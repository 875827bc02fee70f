"""Faults as values: one frozen struct for each kind of `faults/kinds.py` that a real cluster can have.

As JSON and TOML each is an object: its kind, what it hits, and its parameters.

    {"kind": "partition", "selector": "leaders", "mode": "reset"}
    {"kind": "slow-disk", "selector": "1,3", "delay_ms": 40}

`selector` is one of the kind's own (`faults/kinds.py`), nodes by their ids (`1,3`) or, where links are hit, links by
their ends (`1>2,client-0>1`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias, get_args

import msgspec

from ..faults.kinds import KINDS, Group
from ..faults.orders import DiskFault, DiskOperation, full_disk
from ..links.link import CutMode

# Files of the topics' logs, beside those of the metadata, which end a node.
LOGS: Final = "*.log"
_NODE_IDS: Final = re.compile(r"\d+(,\d+)*")
_LINKS: Final = re.compile(r"[\w-]+>\d+(,[\w-]+>\d+)*")

# What a schedule may say of a parameter; read from a file, another value is refused with its place.
Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
NotNegative: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Percent: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=99)]
Probability: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1)]


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """Raises ValueError, a sentence, for a selector or a parameter that it cannot have."""

    def __post_init__(self) -> None:
        selector = getattr(self, "selector", None)
        kind = KINDS[self.kind]
        if selector is None or selector in kind.selectors:
            return
        by_name = _LINKS if kind.group == "links" else _NODE_IDS
        if by_name.fullmatch(selector) is None:
            names = "links as 1>2,client-0>1" if kind.group == "links" else "node ids as 1,3"
            raise ValueError(
                f"{selector!r} is no selector of {self.kind}: one of {', '.join(kind.selectors)}, or {names}"
            )

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)

    @property
    def group(self) -> Group:
        return KINDS[self.kind].group

    def data(self) -> dict[str, Any]:
        """As in JSON, with the parameters that have their defaults."""
        built: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return built


class LinkFault(Fault, frozen=True):
    selector: str = "one"


class Partition(LinkFault, frozen=True, tag="partition"):
    """`silence`: connections stand and carry nothing; `reset`: they are reset; `refusal`: refused."""

    mode: CutMode = "silence"


class SlowLink(LinkFault, frozen=True, tag="slow-link"):
    """Each direction takes `latency_ms`, more or less by up to `jitter_ms`."""

    latency_ms: Positive = 200
    jitter_ms: NotNegative = 50


class Bandwidth(LinkFault, frozen=True, tag="bandwidth"):
    """Each direction of each connection."""

    kilobytes_s: Positive = 8


class PacketLoss(LinkFault, frozen=True, tag="packet-loss"):
    """So many of a hundred, in each direction, each by chance; TCP sends them again."""

    percent: Percent = 20


class ConnectionResets(LinkFault, frozen=True, tag="connection-resets"):
    interval_ms: Positive = 300


class NodeFault(Fault, frozen=True):
    selector: str = "one"


class Kill(NodeFault, frozen=True, tag="kill"):
    """Until the end of the fault, at which the node is started."""


class Pause(NodeFault, frozen=True, tag="pause"):
    """Until the end of the fault."""


class Stop(NodeFault, frozen=True, tag="stop"):
    """SIGTERM; started at the end of the fault."""


class Restart(NodeFault, frozen=True, tag="restart"):
    """SIGTERM, and a start as soon as it has ended."""


class RollingRestart(Fault, frozen=True, tag="rolling-restart"):
    """All nodes in turn: each is stopped when the one before it serves clients and is in sync again."""


class ClockBump(NodeFault, frozen=True, tag="clock-bump"):
    offset_ms: int = 60_000


class ClockStrobe(NodeFault, frozen=True, tag="clock-strobe"):
    """There and back every `interval_ms`."""

    offset_ms: int = 5_000
    interval_ms: Positive = 50


class OrderedFault(NodeFault, frozen=True):
    """What the node's disk is ordered to do (`faults/orders.py`)."""

    def orders(self) -> tuple[DiskFault, ...]:
        raise NotImplementedError


class DiskFull(OrderedFault, frozen=True, tag="disk-full"):
    path: str = "*"

    def orders(self) -> tuple[DiskFault, ...]:
        return full_disk(self.path)


class SlowDisk(OrderedFault, frozen=True, tag="slow-disk"):
    """Of writes and syncs, so many; in a node every call of the disk waits in its turn."""

    path: str = LOGS
    delay_ms: Positive = 50
    probability: Probability = 0.2
    operations: tuple[DiskOperation, ...] = ("write", "sync")

    def orders(self) -> tuple[DiskFault, ...]:
        return tuple(
            DiskFault(operation=one, path=self.path, delay_ms=self.delay_ms, probability=self.probability)
            for one in self.operations
        )


class DiskError(OrderedFault, frozen=True, tag="disk-error"):
    """EIO. A sync that fails takes the log directory offline, and with the only one the node ends."""

    path: str = LOGS
    operation: DiskOperation = "write"
    probability: Probability = 1.0
    count: Positive | None = None

    def orders(self) -> tuple[DiskFault, ...]:
        return (
            DiskFault(
                operation=self.operation, path=self.path, error="EIO", probability=self.probability, count=self.count
            ),
        )


class FailedRead(OrderedFault, frozen=True, tag="failed-read"):
    path: str = LOGS
    count: Positive = 2

    def orders(self) -> tuple[DiskFault, ...]:
        return (DiskFault(operation="read", path=self.path, error="EIO", count=self.count),)


class NoDescriptors(OrderedFault, frozen=True, tag="no-descriptors"):
    path: str = "*"
    count: Positive | None = None

    def orders(self) -> tuple[DiskFault, ...]:
        return tuple(
            DiskFault(operation=one, path=self.path, error="EMFILE", count=self.count)
            for one in ("create", "read", "write")
        )


class DamageFault(NodeFault, frozen=True):
    """The node is killed, its disk is changed, and it is started at the end of the fault."""


class PowerLoss(DamageFault, frozen=True, tag="power-loss"):
    """What it had not synced is gone."""


class BitFlip(DamageFault, frozen=True, tag="bit-flip"):
    """One bit of the log of a replica that was written last."""


class Truncation(DamageFault, frozen=True, tag="truncation"):
    """The last `size_bytes` of the log that was written last, of the whole file at most."""

    size_bytes: Positive = 512


class EmptiedDisk(DamageFault, frozen=True, tag="emptied-disk"):
    """All log directories, the metadata's too."""


class OperatorFault(Fault, frozen=True):
    """What an operator does while the cluster serves: asked of the cluster, not done to it."""


class Reassignment(OperatorFault, frozen=True, tag="reassignment"):
    """Of a partition of the topics under load, to other replicas or in another order."""


class CancelledReassignment(OperatorFault, frozen=True, tag="cancelled-reassignment"):
    """A reassignment that is cancelled at once."""


class PreferredElection(OperatorFault, frozen=True, tag="preferred-election"):
    """Of all partitions."""


class MovedLeader(OperatorFault, frozen=True, tag="moved-leader"):
    """Another replica is made the preferred one, and elected."""


class MinIsr(OperatorFault, frozen=True, tag="min-isr"):
    """Set for a topic until the end of the fault."""

    value: int = 2


class SegmentSize(OperatorFault, frozen=True, tag="segment-size"):
    """`internal.segment.bytes` until the end of the fault; Kafka's own minimum of `segment.bytes` is 1 MiB."""

    size_bytes: int = 4096


class SegmentAge(OperatorFault, frozen=True, tag="segment-age"):
    """`segment.ms` until the end of the fault."""

    age_ms: int = 500


class Drain(OperatorFault, frozen=True, tag="drain"):
    """A broker, undrained at the end of the fault."""

    selector: str = "one"

    def __post_init__(self) -> None:
        if self.selector != "one" and _NODE_IDS.fullmatch(self.selector) is None:
            raise ValueError(f"{self.selector!r} is no selector of drain: one, or node ids as 1,3")


class Topics(OperatorFault, frozen=True, tag="topics"):
    """Created and deleted every `interval_ms`."""

    interval_ms: Positive = 500


class QuorumTransfer(OperatorFault, frozen=True, tag="quorum-transfer"):
    """To the voter that is furthest along."""


class Join(OperatorFault, frozen=True, tag="join"):
    """A new broker; at the end of the fault it gives away what it has, and leaves."""


AnyFault: TypeAlias = (
    Partition | SlowLink | Bandwidth | PacketLoss | ConnectionResets | Kill | Pause | Stop | Restart | RollingRestart
    | ClockBump | ClockStrobe | DiskFull | SlowDisk | DiskError | FailedRead | NoDescriptors | PowerLoss | BitFlip
    | Truncation | EmptiedDisk | Reassignment | CancelledReassignment | PreferredElection | MovedLeader | MinIsr
    | SegmentSize | SegmentAge | Drain | Topics | QuorumTransfer | Join
)  # fmt: skip

# Selectors that hit one node.
SINGLE_NODE: Final = ("one", "leaders", "controllers")
FAULTS: Final[Mapping[str, type[Fault]]] = {str(fault.__struct_config__.tag): fault for fault in get_args(AnyFault)}
"""By kind."""
