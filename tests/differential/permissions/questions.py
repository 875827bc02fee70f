"""All questions: importing this registers them, in the order of the matrix."""

from __future__ import annotations

from differential.permissions import (
    probes_cluster,
    probes_data,
    probes_groups,
    probes_topics,
    probes_transactions,
)
from differential.permissions.probes import PROBES

__all__ = [
    "PROBES",
    "probes_cluster",
    "probes_data",
    "probes_groups",
    "probes_topics",
    "probes_transactions",
]
