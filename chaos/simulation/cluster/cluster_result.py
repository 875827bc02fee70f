"""What a run of the simulated cluster came to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class ClusterRun:
    seed: int
    shape: str
    """The options that fix what the run was made of."""
    violations: list[str]
    is_live: bool
    virtual_s: float
    acknowledged_count: int
    deleted_count: int
    read_count: int
    leader_epoch_count: int
    check_count: int
    turn_count: int
    faults: Counter[str]
    operations: Counter[str]
    """What the operator, who deletes records too, was answered."""
    zombies: Counter[str]
    """Requests of zombies, by what came of them."""
    client_errors: Counter[str]
    commit_count: int
    """Offsets that members of a group were told to be committed."""
    transaction_count: int
    """Transactions of which clients were told that they are committed."""
    compacted_count: int
    """Records of the table that were sent, and that no replica has at the end."""
    tiered_count: int
    """Segments that were copied to the tier."""
    untiered_count: int
    """Segments that were deleted there."""
    fenced_count: int
    """Broker-only nodes that were fenced though nothing was wrong with them."""
    file_check_count: int
    """Replicas whose files were read, at the end and after crashes of all."""
    trace_hash: str

    @property
    def is_clean(self) -> bool:
        return self.is_live and not self.violations
