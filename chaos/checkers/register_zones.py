"""Linearizability of a register whose writes all have different values, without a search.

A value's cluster is its write and its reads. Its zone lies between the first of its operations that returned and the
last that was invoked: *forward*, where the former comes first: the register has the value all that time; else
*backward*: the cluster fits at one point in it. There is a linearization when no read returns a value before it is
written, no two forward zones overlap, and no backward zone lies within a forward one. This takes n log n, however many
outcomes are unknown, and each violation is proved by four operations at most.
Source: Gibbons and Korach, "Testing Shared Memories" (1997), the read-mapping known.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Literal, NamedTuple


@dataclass(slots=True)
class Cluster:
    """The write of a value and what is needed of its reads. Moments are indices of events; the initial value was
    written before the first."""

    value: Hashable
    invoked: float = -1
    # Of a write whose outcome is unknown, infinite: it happened, if at all, at any later moment.
    returned: float = -1
    is_acknowledged: bool = True
    # The operation that returned first, and the moment; that which was invoked last, and the moment.
    first_returned: float = field(default=inf)
    last_invoked: float = field(default=-inf)
    # By the index of its last event, None for the write.
    first_reader: int | None = None
    last_reader: int | None = None
    earliest_read: int | None = None

    def __post_init__(self) -> None:
        self.first_returned = self.returned
        self.last_invoked = self.invoked

    def read(self, invoked: float, returned: int) -> None:
        if returned < self.first_returned:
            self.first_returned, self.first_reader = returned, returned
        if invoked > self.last_invoked:
            self.last_invoked, self.last_reader = invoked, returned
        if self.earliest_read is None or returned < self.earliest_read:
            self.earliest_read = returned

    @property
    def is_forward(self) -> bool:
        return self.first_returned < self.last_invoked

    @property
    def counts(self) -> bool:
        """A write of unknown outcome that no read saw need not have happened."""
        return self.is_acknowledged or self.earliest_read is not None

    def moments(self) -> tuple[int, ...]:
        """The indices of the completions that make its zone; of a write that has none, of its invocation."""
        write = self.returned if self.returned != inf else self.invoked
        ends = (self.first_reader, self.last_reader)
        return tuple(sorted({int(write if end is None else end) for end in ends} - {-1}))


class Violation(NamedTuple):
    """`early-read`: the first cluster was read before it was written. `overlap`: each was held at a moment between two
    at which the other one was. `within`: the second was written and gone while the first one was held all the time."""

    kind: Literal["early-read", "overlap", "within"]
    first: Cluster
    second: Cluster | None = None

    def operations(self) -> tuple[int, ...]:
        return tuple(sorted({*self.first.moments(), *(self.second.moments() if self.second else ())}))


def violations(clusters: Mapping[Hashable, Cluster]) -> Iterator[Violation]:
    """Of one register, by value; the initial value among them. There is a linearization when there are none."""
    judged = [cluster for cluster in clusters.values() if cluster.counts]
    for cluster in judged:
        if cluster.earliest_read is not None and cluster.earliest_read < cluster.invoked:
            yield Violation("early-read", cluster)
    forward = sorted((one for one in judged if one.is_forward), key=lambda one: one.first_returned)
    held: Cluster | None = None
    for cluster in forward:
        if held is not None and cluster.first_returned < held.last_invoked:
            yield Violation("overlap", held, cluster)
        if held is None or cluster.last_invoked > held.last_invoked:
            held = cluster
    starts = [cluster.first_returned for cluster in forward]
    for cluster in judged:
        if cluster.is_forward:
            continue
        # The last forward zone that begins before it: zones that overlap were reported above.
        place = bisect_right(starts, cluster.last_invoked) - 1
        if place >= 0 and cluster.first_returned < forward[place].last_invoked:
            yield Violation("within", forward[place], cluster)
