"""One partition of a source, and the names that its copy has in the sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SourcePartition:
    """A copy has one writer, one position and one order for each of them."""

    cluster: str
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.cluster}.{self.topic}-{self.partition}"

    def transactional_id(self, prefix: str) -> str:
        """The same in every task, executor and driver: the coordinator fences the writer before (KIP-98)."""
        return f"{prefix}.{without_dots(self.cluster)}.{self.topic}.{self.partition}"


def without_dots(name: str) -> str:
    """A name between dots of a transactional id: `a` and `b.c` must not make the id of `a.b` and `c`."""
    return name.replace("%", "%25").replace(".", "%2E")


def offset_map_topic(job: str, name: str) -> str:
    """The compacted topic in the sink that the positions and runs of this copy are records of."""
    return f"penstock-{job}-offsets.{name}"


INTERNAL_TOPICS: Final = r"^(__|penstock-(mirror|backfill)-offsets\.)"
"""Of Kafka and of Penstock, for Java and Python: a pattern does not mean them."""
